"""Webhooks through the console: made, tested, changed, sent again, rotated and deleted."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from standardwebhooks import Webhook as Verifier

from wayline.notifier.settings import Settings as NotifierSettings
from wayline.simulator.website import Page, Website
from wayline.testkit import until

from .conftest import Console

pytestmark = [pytest.mark.asyncio(loop_scope="module")]
QUICK = {"keys": f"k1:{b64encode(bytes(32)).decode()}", "allowed_hosts": ("127.0.0.1:*",), "linger_ms": 2}
ALSO = ("notifier",)
SETTINGS = {"notifier": NotifierSettings.model_validate(QUICK | {"poll_every_s": 0.2})}
PAYLOAD = "<img src=x onerror=alert(1)>\u202e"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def website() -> AsyncIterator[Website]:
    async with Website() as website:
        yield website


def fields(url: str, **more: Any) -> dict[str, Any]:
    return {"url": url, "events": ["job.completed"], "enabled": "on", "description": "", **more}


def secret_in(page: str) -> str:
    [secret] = re.findall(r">(whsec_[^<]+)<", page)
    return secret


def tag_in(page: str) -> str:
    [tag] = re.findall(r'name="tag" value="([^"]*)"', page)
    return tag.replace("&#34;", '"')


async def test_a_webhook_is_made_tested_and_sent_again(console: Console, website: Website):
    website.pages["/hook"] = lambda _: Page(PAYLOAD)
    async with console.browser() as browser:
        await browser.open("/webhooks")
        made = await browser.send("/webhooks", name="crm", **fields(website.url("/hook")))
        secret = secret_in(made.text)
        twice = await browser.send("/webhooks", name="crm", **fields(website.url("/hook")))
        page = await browser.open("/webhooks/crm")
        tested = await browser.send("/webhooks/crm/test")
        job = await console.run()

        async def delivered() -> str | None:
            found = (await console.api.get("/v1/webhooks/crm/deliveries", params={"job_id": job["job_id"]})).json()
            return next((one["delivery_id"] for one in found["deliveries"] if one["state"] == "delivered"), None)

        delivery_id = await until(delivered, why="the job's end is delivered")
        delivery = await browser.open(f"/webhooks/crm/deliveries/{delivery_id}")
        again = await browser.send("/webhooks/crm/redeliver", delivery_id=delivery_id)

        async def sent_twice() -> bool:
            ids = [one.headers["webhook-id"] for one in website.seen if one.path == "/hook"]
            return ids.count(delivery_id) == 2

        await until(sent_twice, why="it is sent again")

    sent = next(one for one in website.seen if one.headers["webhook-id"] == delivery_id)
    assert Verifier(secret).verify(sent.body, dict(sent.headers))
    assert twice.status_code == 422 and "whsec_" not in twice.text + page.text
    assert "What was answered to the test" in tested.text and "<strong>200</strong>" in tested.text
    assert job["job_id"] in delivery.text and "job.completed" in delivery.text
    assert not [shown for shown in (tested.text, delivery.text) if "<img" in shown or "\u202e" in shown]
    assert again.headers["location"] == f"/webhooks/crm/deliveries/{delivery_id}?done=redelivered"


async def test_a_webhook_is_changed_rotated_disabled_and_deleted(console: Console, website: Website):
    async with console.browser() as browser:
        await browser.open("/webhooks")
        first = secret_in((await browser.send("/webhooks", name="ops", **fields(website.url("/ops")))).text)
        page = (await browser.open("/webhooks/ops")).text
        changed = fields(website.url("/ops"), tag=tag_in(page), agents="helper\r\ncritic", content="on")
        del changed["enabled"]
        saved = await browser.send("/webhooks/ops/change", **changed)
        browser.page = page
        late = await browser.send("/webhooks/ops/change", **{**changed, "description": "late"})
        browser.page = page
        asked = await browser.send("/webhooks/ops/rotate")
        rotated = await browser.send("/webhooks/ops/rotate", confirmed="1")
        now = (await console.api.get("/v1/webhooks/ops")).json()
        question = await browser.send("/webhooks/ops/delete")
        deleted = await browser.send("/webhooks/ops/delete", confirmed="1")
        gone = await browser.open("/webhooks/ops")

    assert (saved.status_code, late.status_code) == (303, 422) and 'value="late"' in late.text
    assert (now["agents"], now["content"], now["enabled"]) == (["helper", "critic"], True, False)
    assert "whsec_" not in asked.text and secret_in(rotated.text) != first and now["former_secret_until"]
    assert "Delete the webhook ops?" in question.text
    assert (deleted.status_code, gone.status_code) == (303, 404)


async def test_what_the_api_refuses_is_told_and_keeps_what_was_typed(console: Console):
    async with console.browser() as browser:
        await browser.open("/webhooks")
        refused = await browser.send("/webhooks", name="own", **fields("https://a.example", events=[]))
        unnamed = await browser.send("/webhooks", name="A/B", **fields("https://a.example"))

    assert [answer.status_code for answer in (refused, unnamed)] == [422, 422]
    assert 'value="https://a.example"' in refused.text and 'role="alert"' in refused.text
    assert "small letters" in unnamed.text
