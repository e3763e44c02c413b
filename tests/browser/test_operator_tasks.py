"""What an operator does in Chromium: failed jobs go on after a dry run, a schedule is made, run, paused and deleted."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import expect

from wayline.simulator.chat_server import Say
from wayline.testkit import until

from ..integration.console.conftest import AGENT
from .conftest import ALL, BY_KEYS, NO_SCRIPTS, Looks, Window, slow

pytestmark = [pytest.mark.asyncio(loop_scope="module")]


@slow(*ALL, NO_SCRIPTS[0], BY_KEYS)
async def test_a_failed_job_goes_on_after_a_dry_run(window: Window, looks: Looks):
    console = window.console
    # Numbers are left out of a cause.
    cause = (
        f"the key of {looks.theme} {'wide' if looks.width > 390 else 'narrow'} {looks.scripts} {looks.keys} was revoked"
    )
    console.answers(Say(status=401, error={"message": cause}))
    await console.run("Pay.")

    async def is_listed() -> bool:
        groups = (await console.api.get("/v1/dead-letters/groups")).json()["groups"]
        return any(cause in group["message"] for group in groups)

    await until(is_listed, why="the cause is listed")
    console.answers("It is paid.")
    async with window.open(looks) as shown:
        page = await shown.goto("/dead-letters")
        problems = await shown.accessible() if looks.scripts else []
        row = page.locator("[data-row]", has_text=cause)
        await shown.hands.press(row.get_by_role("link").first)
        await shown.hands.press(page.get_by_role("button", name="Dry run"))
        await expect(page.locator("#live")).to_contain_text("would go on after event")
        problems += await shown.accessible() if looks.scripts else []
        await shown.hands.press(page.get_by_role("button", name="Redrive 1"))
        await expect(page.get_by_role("status")).to_contain_text("They go on")
        done = page.locator("#live .status-completed").first
        if looks.scripts:
            await expect(done).to_be_visible()
            problems += await shown.accessible()
        else:

            async def has_ended() -> bool:
                await page.reload()
                return await done.count() > 0

            await until(has_ended, why="the job has ended")

    assert problems == []


@slow(*ALL, NO_SCRIPTS[0], BY_KEYS)
async def test_a_schedule_is_made_run_paused_and_deleted(window: Window, looks: Looks):
    name = re.sub(r"\W+", "-", f"digest {looks}")
    async with window.open(looks) as shown:
        hands = shown.hands
        page = await shown.goto("/schedules")
        await hands.press(page.get_by_role("link", name="New schedule"))
        await hands.fill(page.get_by_role("textbox", name="Name", exact=True), name)
        await hands.fill(page.get_by_role("textbox", name="Cron expression"), "0 7 * * MON-FRI")
        await hands.fill(page.get_by_role("textbox", name="By the clock of"), "Europe/Berlin")
        await hands.press(page.get_by_role("button", name="Show when it fires"))
        await expect(page.get_by_role("status")).to_contain_text("At 07:00 on Monday through Friday")
        problems = await shown.accessible() if looks.scripts else []
        await hands.choose(page.locator("select[name=agent]"), AGENT)
        await hands.fill(page.get_by_label("What it is asked"), "What is new?")
        await hands.press(page.get_by_role("button", name="Save"))
        await expect(page.get_by_role("status")).to_have_text("It is saved.")
        await hands.press(page.get_by_role("button", name="Run now"))
        await page.wait_for_url("**/jobs/*")
        await shown.goto(f"/schedules/named/{name}")
        await expect(page.locator("[data-row]")).to_contain_text("by hand")
        problems += await shown.accessible() if looks.scripts else []
        await hands.press(page.get_by_role("button", name="Pause"))
        await expect(page.get_by_text("It does not fire")).to_be_visible()
        await hands.press(page.get_by_role("button", name="Delete"))
        await hands.press(page.get_by_role("button", name="Delete it"))
        await expect(page.get_by_role("status")).to_have_text("It is deleted.")
        problems += await shown.accessible() if looks.scripts else []

    assert problems == []
