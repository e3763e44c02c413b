"""Webhooks: the list, one of them, and a delivery with its request and answers."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from starlette.datastructures import FormData

from wayline.console.pages import webhook_delivery
from wayline.console.pages.frame import Frame
from wayline.console.pages.webhooks import (
    EVENTS,
    LIST_TEMPLATE,
    NEW_WEBHOOK,
    STATES,
    TEMPLATE,
    WebhookPage,
    config_of,
    may_keep,
)
from wayline.console.render.environment import Templates
from wayline.contracts.webhooks import (
    EVENT_TYPES,
    Attempt,
    Disabled,
    SentRequest,
    Webhook,
    WebhookConfig,
    WebhookDelivery,
)

ME = {"tenant": "acme", "name": "ann", "scopes": ["webhooks"], "open": False, "version": "1", "user_id": None}
NOW = datetime(2026, 5, 1, tzinfo=UTC)
FRAME = Frame("Webhooks", "/webhooks", ME, "token", "system", "/webhooks", now=NOW)
PAYLOAD = '"><script>alert(1)</script><svg onload=alert(2)>\u202e'


def webhook_of(**fields: Any) -> dict[str, Any]:
    usual = {"name": "crm", "version": 1, "url": "https://crm.example/x", "events": EVENT_TYPES, "enabled": True}
    return Webhook(**{**usual, "created_at": NOW, "updated_at": NOW, **fields}).model_dump(mode="json")


def delivery_of(**fields: Any) -> dict[str, Any]:
    sent = SentRequest(url="https://crm.example/x", headers={"webhook-id": "msg"}, body='{"type": "job.failed"}')
    usual = {"delivery_id": "msg_" + "0" * 32, "webhook": "crm", "type": "job.failed", "state": "failed", "attempts": 2}
    return WebhookDelivery(**{**usual, "occurred_at": NOW, "request": sent, **fields}).model_dump(mode="json")


def list_of(*webhooks: dict[str, Any], may: bool = True, **typed: Any) -> str:
    values = {
        "webhooks": list(webhooks),
        "problem": "",
        "typed": {**NEW_WEBHOOK, **typed},
        "events": EVENTS,
        "may": may,
    }
    return Templates().render(LIST_TEMPLATE, frame=FRAME, **values).decode()


def page_of(webhook: dict[str, Any], *deliveries: dict[str, Any], may: bool = True, **more: Any) -> str:
    page = WebhookPage(webhook, '"tag"', list(deliveries), **more)
    values = {"shown": {**webhook, **page.typed}, "events": EVENTS, "states": STATES, "may": may}
    return Templates().render(TEMPLATE, page=page, frame=FRAME, **values).decode()


def delivery_page(delivery: dict[str, Any]) -> str:
    body = webhook_delivery.readable(delivery["request"]["body"])
    return Templates().render(webhook_delivery.TEMPLATE, frame=FRAME, delivery=delivery, body=body, may=True).decode()


def test_the_events_of_the_form_are_those_of_the_api():
    assert EVENTS == EVENT_TYPES


def test_a_form_describes_a_webhook_whole():
    form = FormData(
        [
            ("url", "https://a.example"),
            *[("events", event) for event in ("job.failed", "tool.changed", "other")],
            *[("agents", "helper\r\ncritic"), ("tags", ""), ("description", "CRM"), ("enabled", "on")],
        ]
    )
    config = config_of(form)

    assert WebhookConfig.model_validate(config).model_dump(mode="json") == {
        "url": "https://a.example",
        "events": ["job.failed", "tool.changed"],
        "agents": ["helper", "critic"],
        "tags": [],
        "description": "CRM",
        "content": False,
        "enabled": True,
    }


def test_the_list_says_what_is_wrong_with_each_webhook():
    disabled = webhook_of(name="old", enabled=False, disabled=Disabled(at=NOW, reason="it answered 410"), failed=7)
    html = list_of(disabled, webhook_of(failing_since=NOW), webhook_of(name="jobs", url=None))

    assert "disabled: it answered 410" in html and 'href="/webhooks/old?state=failed">7' in html
    assert "since 2026-05-01 00:00:00 UTC" in html and "that jobs name themselves" in html
    assert "No webhooks yet" in list_of()


def test_a_secret_is_shown_only_where_it_is_new():
    assert "whsec_x" in page_of(webhook_of(), secret="whsec_x") and "this once" not in page_of(webhook_of())


def test_why_a_delivery_was_given_up_is_said_once():
    answer = {"at": NOW.isoformat(), "duration_ms": 1.0, "status": None, "error": "nobody listens", "body": ""}
    html = page_of(webhook_of(), delivery_of(reason="nobody listens") | {"answers": [answer]})
    other = page_of(webhook_of(), delivery_of(reason="eight tries failed") | {"answers": [answer]})

    assert html.count("nobody listens") == 1
    assert "eight tries failed" in other and "nobody listens" in other


def test_the_webhook_of_jobs_is_neither_changed_nor_deleted():
    html = page_of(webhook_of(name="jobs", url=None))

    assert re.findall(r'action="/webhooks/jobs/(\w+)"', html) == ["redeliver", "rotate"]


def test_a_key_without_the_scope_is_told_which_it_lacks():
    html = page_of(webhook_of(failed=1), may=False)

    assert html.count("disabled title") == 5 and "the scope webhooks" in html
    assert "lacks the scope webhooks" in list_of(may=False) and "No webhooks yet" not in list_of(may=False)


@pytest.mark.parametrize(
    ("scopes", "user", "may"),
    [(["admin"], None, True), (["webhooks"], None, True), (["webhooks"], "ann", False), (["read"], None, False)],
)
def test_a_key_of_one_user_keeps_no_webhooks(scopes: list[str], user: str | None, may: bool):
    assert may_keep({"scopes": scopes, "user_id": user}) is may


def test_a_delivery_shows_its_request_and_every_answer():
    answers = (Attempt(at=NOW, status=500, body="no"), Attempt(at=NOW, error="timed out", duration_ms=15_000))
    html = delivery_page(delivery_of(answers=answers, reason="eight tries failed", job_id="j1"))

    assert "POST https://crm.example/x" in html and "webhook-id: msg" in html and "job.failed" in html
    assert html.index("timed out") < html.index("<strong>500</strong>") and "eight tries failed" in html


def test_a_delivery_that_is_being_sent_says_so():
    answer = Attempt(at=NOW, status=500, error="it answered 500")
    sent = delivery_of(state="pending", answers=(answer,), next_at=None)
    html, listed, waits = (
        delivery_page(sent),
        page_of(webhook_of(), sent),
        delivery_page(sent | {"next_at": NOW.isoformat()}),
    )

    assert "<dd>now</dd>" in html and "Look again" in html and "now</td>" in listed and "<dd>now</dd>" not in waits
    assert (html.count("it answered 500"), listed.count("it answered 500")) == (1, 1)
    assert "<strong>500" not in html and "500 it answered" not in listed


def test_what_receivers_and_others_wrote_stays_words():
    answers = (Attempt(at=NOW, status=200, body=PAYLOAD, error=PAYLOAD),)
    sent = SentRequest(url=f"https://x/{PAYLOAD}", headers={PAYLOAD: PAYLOAD}, body=PAYLOAD)
    delivery = delivery_of(answers=answers, request=sent, reason=PAYLOAD, type=PAYLOAD)
    webhook = webhook_of(url=f"https://x/{PAYLOAD}", description=PAYLOAD, tags=(PAYLOAD,), agents=(PAYLOAD,))
    html = page_of(webhook, delivery, problem=PAYLOAD, tested=delivery) + list_of(webhook) + delivery_page(delivery)

    assert "<script>alert" not in html and "<svg onload" not in html and "\u202e" not in html
