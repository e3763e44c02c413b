"""What happens to jobs is sent to webhooks: signed, filtered, tried again, given up, each delivery under one id."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from standardwebhooks import Webhook as Verifier
from standardwebhooks import WebhookVerificationError

from wayline.chassis import Delivery
from wayline.contracts import events as e
from wayline.contracts import headers as h
from wayline.contracts.errors import Refused
from wayline.contracts.notices import BudgetAlerted, ToolChanged
from wayline.contracts.webhooks import Redeliver, Redelivered, RotateWebhook, SavedWebhook, TestWebhook, WebhookDelivery
from wayline.notifier.deliveries.retry_plan import WAITS_S
from wayline.simulator.website import Page
from wayline.testkit import until
from wayline.testkit.walks import cases

from .conftest import Hooks

pytestmark = pytest.mark.asyncio(loop_scope="module")


def body(request: Any) -> dict[str, Any]:
    return orjson.loads(request.body)


def signs(secret: str | None, request: Any) -> bool:
    """Return whether a secret made one of a request's signatures, at whatever time."""
    sent_at = datetime.fromtimestamp(int(request.headers["webhook-timestamp"]), UTC)
    made = Verifier(str(secret)).sign(request.headers["webhook-id"], sent_at, request.body.decode())
    return made in request.headers["webhook-signature"].split(" ")


async def test_an_ended_job_is_told_and_the_signature_verifies(hooks: Hooks):
    tenant, receiver = hooks.tenant(), hooks.receiver()
    saved = await hooks.put(tenant, receiver)

    await hooks.complete(tenant, "j1", tags=["team:billing"])

    [request] = await receiver.until_sent(1)
    hooks.clock.at = datetime.now(UTC)
    assert Verifier(str(saved.secret)).verify(request.body, dict(request.headers)) == body(request)
    with pytest.raises(WebhookVerificationError):
        Verifier(str(saved.secret)).verify(request.body + b" ", dict(request.headers))
    told = body(request)
    assert told["type"] == "job.completed" and told["timestamp"].endswith("Z")
    assert told["data"] == {
        **{"job_id": "j1", "agent": "assistant", "user_id": "ann", "session_id": None, "tags": ["team:billing"]},
        **{"parent_job_id": None, "schedule": None, "status": "completed", "cost_usd": "0", "steps": 1},
        **{"partial": False, "links": {"job": "/v1/jobs/j1", "trace": "/v1/jobs/j1/trace"}},
    }
    delivered = await hooks.delivery(tenant, lambda one: one.state == "delivered")
    assert (delivered.answers[-1].status, delivered.answers[-1].body, delivered.attempts) == (200, "thanks", 1)
    assert delivered.delivery_id == request.headers["webhook-id"]


async def test_content_is_sent_by_choice_alone(hooks: Hooks):
    tenant, plain, wordy = hooks.tenant(), hooks.receiver(), hooks.receiver()
    await hooks.put(tenant, plain, "plain")
    await hooks.put(tenant, wordy, "wordy", content=True)

    await hooks.complete(tenant, "j1", answer="tides " * 20_000)
    await hooks.fail(tenant, "j2")

    sent = {body(one)["type"]: one for one in await wordy.until_sent(2)}
    assert len(sent["job.completed"].body) <= 20 * 1024
    assert body(sent["job.completed"])["data"]["answer"].startswith("tides tides")
    assert body(sent["job.failed"])["data"]["error_message"] == "the bank said no"
    assert all(b"tides" not in one.body and b"bank" not in one.body for one in await plain.until_sent(2))


async def test_each_event_of_jobs_comes_and_filters_hold_back_others(hooks: Hooks):
    tenant, every, few, tagged = hooks.tenant(), hooks.receiver(), hooks.receiver(), hooks.receiver()
    await hooks.put(tenant, every, "every")
    await hooks.put(tenant, few, "few", events=("job.cancelled", "approval.requested"), agents=("assistant",))
    await hooks.put(tenant, tagged, "tagged", tags=("team:a", "team:b"))
    approval = {"call": "c1", "tool": "pay", "arguments": {"amount": 3}, "why": "tool", "expires_at": hooks.clock.at}

    await hooks.complete(tenant, "done", agent="critic", tags=["team:b"])
    await hooks.fail(tenant, "broken")
    await hooks.cancel(tenant, "stopped")
    approvals = [{**approval, "approval_id": name} for name in ("a1", "a2")]
    head = await hooks.park(tenant, "waits", why="approval", wait_id="w1", approvals=approvals)
    # One of them was decided: the job waits for the other as before.
    again = e.JobParked(**hooks.told("waits", 3), signals_seen=1, waiting={**WAITING, "approvals": approvals[1:]})
    await hooks.append(tenant, "waits", head, again)
    await hooks.park(tenant, "queued", why="turn", wait_id="turn")

    requests = await every.until_sent(7)
    await until_read(hooks)
    told = sorted((body(one)["type"], body(one)["data"]["job_id"]) for one in requests)
    assert told == [
        *(("approval.requested", "waits"), ("approval.requested", "waits"), ("job.cancelled", "stopped")),
        *(("job.completed", "done"), ("job.failed", "broken"), ("job.parked", "waits"), ("job.parked", "waits")),
    ]
    assert sorted(body(one)["type"] for one in await few.until_sent(3)) == ["approval.requested"] * 2 + [
        "job.cancelled"
    ]
    assert [body(one)["data"]["job_id"] for one in await tagged.until_sent(1)] == ["done"]


WAITING = {"why": "approval", "wait_id": "w1"}


async def test_tenants_are_told_of_their_own_jobs_alone(hooks: Hooks):
    (one, ones), (two, twos) = (hooks.tenant(), hooks.receiver()), (hooks.tenant(), hooks.receiver())
    await hooks.put(one, ones)
    await hooks.put(two, twos)

    await hooks.complete(one, "same-id")
    await hooks.complete(two, "same-id")

    await ones.until_sent(1)
    await twos.until_sent(1)
    await until_read(hooks)
    assert len(ones.requests) == len(twos.requests) == 1
    assert ones.ids.keys().isdisjoint(twos.ids)


async def test_what_happened_before_a_webhook_is_not_told(hooks: Hooks):
    tenant, receiver = hooks.tenant(), hooks.receiver()
    await hooks.complete(tenant, "before")
    hooks.clock.pass_(seconds=1)
    await hooks.put(tenant, receiver)

    await hooks.complete(tenant, "after")

    assert [body(one)["data"]["job_id"] for one in await receiver.until_sent(1)] == ["after"]


async def test_a_delivery_that_fails_eight_times_is_put_aside(hooks: Hooks):
    tenant, receiver = hooks.tenant(), hooks.receiver(answer=lambda n: Page("no", status=503 if n <= 8 else 204))
    await hooks.put(tenant, receiver)
    await hooks.complete(tenant, "j1")
    for number, wait_s in enumerate(WAITS_S, start=1):
        pending = await hooks.delivery(tenant, lambda one, number=number: one.attempts == number)
        assert pending.next_at is not None
        assert wait_s <= (pending.next_at - pending.answers[-1].at).total_seconds() <= 1.2 * wait_s + 5
        await hooks.pass_time(seconds=wait_s * 1.2 + 5)

    given_up = await hooks.delivery(tenant, lambda one: one.state == "failed")

    assert len(receiver.requests) == 8 and len(receiver.ids) == 1
    assert given_up.reason == "all 8 tries failed, the last one so: it answered 503"
    assert (await hooks.webhook(tenant)).failed == 1
    letters = [one for one in await hooks.platform.dead_letters() if one[h.TENANT] == tenant]
    assert [(one[h.DEAD_STREAM], one[h.DEAD_CODE]) for one in letters] == [("WEBHOOKS", "webhook_failed")]

    sent = await hooks.platform.bus.ask(Redeliver(tenant=tenant, name="crm"), Redelivered)

    assert sent == Redelivered(deliveries=1)
    await hooks.delivery(tenant, lambda one: one.state == "delivered")
    assert len(receiver.requests) == 9 and len(receiver.ids) == 1
    assert (await hooks.webhook(tenant)).failing_since is None


async def test_a_receiver_that_answers_410_is_disabled_and_enabled_by_saving(hooks: Hooks):
    tenant, receiver = hooks.tenant(), hooks.receiver(answer=lambda n: Page("gone", status=410 if n == 1 else 200))
    await hooks.put(tenant, receiver)
    await hooks.complete(tenant, "j1")
    await hooks.delivery(tenant, lambda one: one.state == "failed")

    disabled = await until(lambda: _disabled(hooks, tenant), why="the webhook is disabled")
    await hooks.complete(tenant, "unheard")
    await until_read(hooks)
    with pytest.raises(Refused, match="is disabled: enable it first"):
        await hooks.platform.bus.ask(Redeliver(tenant=tenant, name="crm"), Redelivered)
    enabled = await hooks.put(tenant, receiver)
    await hooks.platform.bus.ask(Redeliver(tenant=tenant, name="crm"), Redelivered)

    assert disabled.disabled is not None and "410" in disabled.disabled.reason
    assert enabled.enabled and enabled.disabled is None and enabled.secret is None
    await hooks.delivery(tenant, lambda one: one.state == "delivered")
    assert [body(one)["data"]["job_id"] for one in receiver.requests] == ["j1", "j1"]
    codes = [one[h.DEAD_CODE] for one in await hooks.platform.dead_letters() if one[h.TENANT] == tenant]
    assert sorted(codes) == ["webhook_disabled", "webhook_failed"]


async def test_five_days_of_failures_disable_a_webhook(hooks: Hooks):
    tenant, receiver = hooks.tenant(), hooks.receiver(answer=lambda _: Page("no", status=500))
    await hooks.put(tenant, receiver)
    await hooks.complete(tenant, "first")
    await hooks.delivery(tenant, lambda one: one.attempts == 1)

    for day in range(1, 5):
        assert (await hooks.webhook(tenant)).enabled
        await hooks.pass_time(days=1, minutes=1)
        await hooks.complete(tenant, f"day-{day}")
        await hooks.delivery(tenant, lambda one, day=day: one.job_id == f"day-{day}" and len(one.answers) > 0)

    # What waits is tried again, and fails on the fifth day.
    await hooks.pass_time(days=1, minutes=1)
    disabled = await until(lambda: _disabled(hooks, tenant), why="the webhook is disabled")
    assert disabled.disabled is not None and disabled.disabled.reason == "every try has failed for 5 days"
    assert disabled.pending == 0 and disabled.failed == 5


async def _disabled(hooks: Hooks, tenant: str) -> Any:
    found = await hooks.webhook(tenant)
    return None if found.enabled else found


@pytest.mark.parametrize(
    ("url", "why"),
    cases(
        [
            ("http://10.1.2.3/hook", "10.1.2.3 may not be reached"),
            ("http://169.254.169.254/latest", "may not be reached"),
            ("http://127.0.0.1.nip/", "127.0.0.1.nip could not be reached"),
        ]
    ),
)
async def test_an_inward_address_is_not_reached(hooks: Hooks, url: str, why: str):
    tenant = hooks.tenant()
    await hooks.put(tenant, url)

    tried = await hooks.platform.bus.ask(TestWebhook(tenant=tenant, name="crm"), WebhookDelivery)

    assert tried.state == "failed" and why in str(tried.answers[-1].error)


async def test_a_redirect_is_a_failure_and_is_not_followed(hooks: Hooks):
    tenant, inside = hooks.tenant(), hooks.receiver()
    away = hooks.receiver(answer=lambda _: Page(status=307, headers={"Location": inside.url}))
    await hooks.put(tenant, away)

    await hooks.complete(tenant, "j1")

    tried = await hooks.delivery(tenant, lambda one: one.attempts == 1)
    assert tried.state == "pending" and "redirects are not followed" in str(tried.answers[-1].error)
    assert inside.requests == []


async def test_a_hanging_receiver_holds_up_no_other_tenant(hooks: Hooks):
    slow, quick, open_ = hooks.tenant(), hooks.tenant(), asyncio.Event()
    hanging, receiver = hooks.receiver(answer=lambda _: Page("late", hold=open_)), hooks.receiver()
    for number in range(6):
        await hooks.put(slow, hanging, f"slow-{number}")
    await hooks.put(quick, receiver)
    try:
        for number in range(8):
            await hooks.complete(slow, f"slow-{number}")
        # No more than the share of the tenant, and of each of its webhooks.
        await hanging.until_sent(16)

        await hooks.complete(quick, "quick")

        await receiver.until_sent(1)
        assert len(hanging.requests) == 16
    finally:
        open_.set()
    await hanging.until_sent(48)
    assert set(hanging.ids.values()) == {1}


async def test_after_a_rotation_both_secrets_sign_for_a_day(hooks: Hooks):
    tenant, receiver = hooks.tenant(), hooks.receiver()
    before = await hooks.put(tenant, receiver)
    after = await hooks.platform.bus.ask(RotateWebhook(tenant=tenant, name="crm"), SavedWebhook)
    await hooks.complete(tenant, "j1")
    [both] = await receiver.until_sent(1)
    await hooks.pass_time(days=1, seconds=1)
    await hooks.complete(tenant, "j2")
    [_, one] = await receiver.until_sent(2)

    assert signs(before.secret, both) and signs(after.secret, both)
    assert signs(after.secret, one) and not signs(before.secret, one)
    assert before.secret != after.secret and (await hooks.webhook(tenant)).model_extra is None


async def test_a_job_names_an_address_of_its_own(hooks: Hooks):
    tenant, own, named, every = hooks.tenant(), hooks.receiver(), hooks.receiver(), hooks.receiver()
    await hooks.put(tenant, every, "every", events=("job.failed",))
    await hooks.put(tenant, named, "named", events=("job.parked",))
    secret = await hooks.platform.bus.ask(RotateWebhook(tenant=tenant, name="jobs"), SavedWebhook)

    await hooks.complete(tenant, "j1", webhook={"url": own.url, "content": True})
    await hooks.complete(tenant, "j2", webhook={"name": "named"})

    [to_own], [to_named] = await own.until_sent(1), await named.until_sent(1)
    assert signs(secret.secret, to_own)
    assert body(to_own)["data"]["answer"] == "42" and "answer" not in body(to_named)["data"]
    assert every.requests == []
    [delivered] = await hooks.deliveries(tenant, "jobs", job_id="j1")
    assert delivered.request.url == own.url


async def test_budgets_tools_and_dead_letters_are_told(hooks: Hooks):
    tenant, receiver, bus = hooks.tenant(), hooks.receiver(), hooks.platform.bus
    await hooks.put(tenant, receiver, agents=("critic",), content=True)
    at = hooks.clock.at
    alert = BudgetAlerted(
        tenant=tenant, budget="month", threshold="0.8", used_usd="8.1", limit_usd="10", starts_at=at, at=at
    )
    changed = ToolChanged(tenant=tenant, server="bank", tool="pay", definition_sha256="f" * 64, at=at)
    hooks.clock.at = min(hooks.clock.at, datetime.now(UTC)) - timedelta(minutes=1)
    other = hooks.receiver()
    await hooks.put(tenant, other, "letters", events=("dead_letter.created",), content=True)

    await bus.publish(alert, msg_id="a1")
    await bus.publish(alert, msg_id="a1-again")
    await bus.publish(changed, msg_id="t1")
    letter = Delivery("SUBMIT", "router", 7, 1, f"jobs.submit.{tenant}", body=b"{")
    await bus.put_aside(letter, code="invalid", reason="no JSON")

    sent = {body(one)["type"]: body(one)["data"] for one in await other.until_sent(1)}
    assert sent["dead_letter.created"]["reason"] == "no JSON" and sent["dead_letter.created"]["code"] == "invalid"
    told = {body(one)["type"]: body(one)["data"] for one in await receiver.until_sent(2)}
    assert told["budget.alert"]["threshold"] == "0.8" and told["tool.changed"]["tool"] == "pay"
    await until_read(hooks)
    assert sum(body(one)["type"] == "budget.alert" for one in receiver.requests) == 1


async def until_read(hooks: Hooks) -> None:
    """Wait until all that is stored was read, and nothing is on its way to a receiver."""

    async def read() -> bool:
        infos = [
            await hooks.platform.bus.js.consumer_info(stream, "notifier") for stream in ("EVENTS", "NOTICES", "DEAD")
        ]
        return all(one.num_pending == 0 and one.num_ack_pending == 0 for one in infos)

    await until(read, why="the notifier has read everything")
    await hooks.sender.settled()
