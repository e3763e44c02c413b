"""Bodies stay within their limit, and only wanted events are told, each under one id."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from wayline.contracts.webhooks import BODY_MAX_BYTES, Attempt, WebhookConfig
from wayline.notifier.deliveries.delivery_table import view
from wayline.notifier.deliveries.retry_plan import WAITS_S, DeliveryOutcome, after_attempt
from wayline.notifier.events.bodies import body_of
from wayline.notifier.events.event import Event, delivery_id, wants
from wayline.notifier.webhooks.signing import new_secret, signed_headers

AT = datetime(2026, 11, 20, 6, tzinfo=UTC)


def event(**fields: Any) -> Event:
    return Event(**{"tenant": "acme", "key": "j1/2", "type": "job.completed", "at": AT, "data": {}, **fields})


@given(st.dictionaries(st.sampled_from(["answer", "reason", "arguments"]), st.text(max_size=30_000) | st.integers()))
def test_a_body_with_content_never_exceeds_its_limit(content: dict[str, Any]):
    encoded = body_of(event(content=content, data={"job_id": "j1"}), content=True, public_url="https://a.example/")

    assert len(encoded.encode()) <= BODY_MAX_BYTES
    assert orjson.loads(encoded)["data"]["job_id"] == "j1"


def test_content_that_fits_is_whole_and_links_are_addresses():
    told = event(content={"answer": "€" * 6_000}, links={"job": "/v1/jobs/j1"})

    data = orjson.loads(body_of(told, content=True, public_url="https://a.example/"))["data"]

    assert data == {"answer": "€" * 6_000, "links": {"job": "https://a.example/v1/jobs/j1"}}


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ({}, True),
        ({"events": ("job.failed",)}, False),
        ({"agents": ("critic", "editor")}, True),
        ({"agents": ("editor",)}, False),
        ({"tags": ("a:1", "b:2")}, True),
        ({"tags": ("b:2",)}, False),
        ({"agents": ("critic",), "tags": ("b:2",)}, False),
    ],
)
def test_filters_hold_back_what_was_not_asked_for(filters: dict[str, Any], wanted: bool):
    told = event(job_id="j1", agent="critic", tags=("a:1",))

    assert wants(WebhookConfig(url="https://a.example", **filters), told) is wanted


def test_filters_of_jobs_let_other_events_pass():
    assert wants(WebhookConfig(url="https://a.example", agents=("critic",)), event(type="budget.alert"))


def test_a_delivery_has_one_id_and_no_other_has_it():
    one = event()
    ids = [
        delivery_id(one, uid="u1"),
        delivery_id(one, uid="u2"),
        delivery_id(one, uid="u1", url="https://a.example"),
        delivery_id(event(tenant="other"), uid="u1"),
        delivery_id(event(key="j1/3"), uid="u1"),
        delivery_id(event(type="job.parked"), uid="u1"),
    ]

    assert delivery_id(event(data={"other": 1}), uid="u1") == ids[0]
    assert len(set(ids)) == len(ids)


@given(st.text(max_size=200), st.lists(st.integers(0, 1), min_size=1, max_size=2))
def test_the_reference_library_verifies_each_signature(text: str, which: list[int]):
    secrets = [new_secret(), new_secret()]
    body, now = text.encode(), int(datetime.now(UTC).timestamp())

    headers = signed_headers("msg_1", now, body, [secrets[one] for one in which])

    for one in which:
        made = Webhook(secrets[one]).sign("msg_1", datetime.fromtimestamp(now, UTC), text)
        assert made in headers["webhook-signature"].split(" ")
    encoded = orjson.dumps(text)
    Webhook(secrets[0]).verify(encoded, signed_headers("msg_2", now, encoded, secrets))


def attempt(status: int | None = None, error: str | None = "no", **fields: Any) -> Attempt:
    return Attempt(at=AT, status=status, error=error, **fields)


@pytest.mark.parametrize("number", range(1, 8))
def test_a_failed_try_is_followed_by_the_next_within_the_jitter(number: int):
    for chance in (0.0, 1.0):
        outcome = after_attempt(attempt(503), number=number, retried=True, chance=chance)
        assert outcome.next_at is not None
        assert (outcome.next_at - AT).total_seconds() == pytest.approx(WAITS_S[number - 1] * (1 + 0.2 * chance))


def test_the_last_failure_a_410_and_a_lone_try_give_up():
    last = after_attempt(attempt(503), number=8, retried=True, chance=0)
    gone = after_attempt(attempt(410), number=1, retried=True, chance=0)
    lone = after_attempt(attempt(), number=1, retried=False, chance=0)

    assert last == DeliveryOutcome(reason="all 8 tries failed, the last one so: no")
    assert gone == DeliveryOutcome(reason="no", is_gone=True)
    assert lone == DeliveryOutcome(reason="no")
    assert after_attempt(attempt(200, None), number=8, retried=True, chance=0) == DeliveryOutcome(delivered=True)


def test_a_receiver_may_ask_for_a_wait_of_a_day():
    for asked, waited in ((1.0, 5.0), (600.0, 600.0), (1e9, 86_400.0)):
        outcome = after_attempt(attempt(429), number=1, retried=True, chance=0, retry_after_s=asked)
        assert outcome.next_at is not None and (outcome.next_at - AT).total_seconds() == waited


@pytest.mark.parametrize(
    ("state", "claim", "told"), [("pending", None, AT), ("pending", "c1", None), ("failed", None, None)]
)
def test_no_next_try_is_told_of_a_delivery_being_sent(state: str, claim: str | None, told: datetime | None):
    row: Any = {
        "id": "msg_1",
        "name": "crm",
        "type": "job.completed",
        "state": state,
        "job_id": "j1",
        "occurred_at": AT,
    }
    row |= {"attempts": 0, "due_at": AT, "claim": claim, "reason": "", "url": "https://crm.example/", "body": "{}"}

    assert view(row | {"answers": []}).next_at == told
