"""A webhook in Chromium: its receiver fails, is mended, and is sent again what it missed."""

from __future__ import annotations

from base64 import b64encode

import pytest
from playwright.async_api import expect

from wayline.notifier.settings import Settings as NotifierSettings
from wayline.simulator.website import Page, Website
from wayline.testkit import until

from .conftest import ALL, WAIT_MS, Looks, Window, slow

pytestmark = [pytest.mark.asyncio(loop_scope="module")]
ALSO = ("notifier",)
QUICK = {"keys": f"k1:{b64encode(bytes(32)).decode()}", "allowed_hosts": ("127.0.0.1:*",), "linger_ms": 2}
SETTINGS = {"notifier": NotifierSettings.model_validate(QUICK | {"poll_every_s": 0.2})}


@slow(*ALL)
async def test_a_receiver_that_failed_is_sent_again_what_it_missed(window: Window, looks: Looks):
    async with Website() as website, window.open(looks) as shown:
        website.pages["/hook"] = lambda _: Page("<b>not today</b>", status=410)
        page = await shown.goto("/webhooks")
        if await page.get_by_label("Name", exact=True).is_hidden():
            await page.get_by_text("New webhook").click()
        name = f"crm-{looks.theme}-{looks.width}"
        await page.get_by_label("Name", exact=True).fill(name)
        await page.get_by_label("Address").fill(website.url("/hook"))
        problems = await shown.accessible()
        await page.get_by_role("button", name="Make it").click()
        await expect(page.get_by_text("Its secret, this once")).to_be_visible()
        job = await window.console.run()

        async def gave_up() -> bool:
            found = (await window.console.api.get(f"/v1/webhooks/{name}")).json()
            return found["failed"] > 0 and found["disabled"] is not None

        await until(gave_up, why="the receiver does not want it")
        await shown.goto(f"/webhooks/{name}?state=failed")
        await expect(page.get_by_text("disabled:").first).to_be_visible()
        problems += await shown.accessible()

        website.pages["/hook"] = lambda _: Page("thanks")
        await page.get_by_label("Enabled").check()
        await page.get_by_role("button", name="Save").click()
        await page.get_by_role("button", name="Send again what was given up").click()
        await page.get_by_role("link", name="job.completed").first.click()
        await expect(page.get_by_text(job["job_id"]).first).to_be_visible()

        async def has_arrived() -> bool:
            await page.reload()
            return await page.locator(".status-delivered").count() > 0

        await until(has_arrived, within=WAIT_MS / 1_000, why="it is delivered")
        await expect(page.get_by_text("<b>not today</b>")).to_be_visible()
        problems += await shown.accessible()

    assert problems == []
