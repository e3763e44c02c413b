"""Schedules in the console, on the whole platform: made, run once by hand, changed, paused, deleted."""

from __future__ import annotations

import html
import re

import pytest

from wayline.testkit import until

from .conftest import AGENT, Browser, Console

pytestmark = [pytest.mark.asyncio(loop_scope="module")]
NEW = {
    **{"kind": "cron", "cron": "0 7 * * MON-FRI", "timezone": "Europe/Berlin", "agent": AGENT, "input": "What is new?"},
    **{"enabled": "on", "overlap": "skip"},
}


async def create(browser: Browser, name: str) -> None:
    await browser.open("/schedules/new")
    created = await browser.send("/schedules/new", name=name, **NEW)
    assert created.headers["location"] == f"/schedules/named/{name}?done=saved", created.text
    await browser.open(f"/schedules/named/{name}")


async def test_a_schedule_is_made_after_showing_when_it_fires(console: Console):
    async with console.browser() as browser:
        await browser.open("/schedules/new")
        wrong = await browser.send("/schedules/new", **{**NEW, "name": "shown", "cron": "61 * * * *"})
        shown = await browser.send("/schedules/new", when="1", **NEW)
        await create(browser, "shown")
        page = browser.page
        await browser.open("/schedules/new")
        twice = await browser.send("/schedules/new", name="shown", **NEW)
        listed = await browser.open("/schedules")
    coming = (await console.api.get("/v1/schedules/shown")).json()["next_firings"]

    assert (wrong.status_code, "Bad minute" in wrong.text) == (422, True)
    assert "At 07:00 on Monday through Friday" in shown.text
    previewed = re.findall(r"<li>(\w{3} [\d-]+ 07:00 \w+)</li>", shown.text)
    assert len(coming) == len(previewed) == 5
    assert re.findall(r"<li><time[^>]*>([^<]*)</time>", page) == previewed
    assert twice.status_code == 422 and "shown" in twice.text
    assert "/schedules/named/shown" in listed.text


async def test_a_form_that_is_sent_twice_runs_once(console: Console):
    async with console.browser() as browser:
        await create(browser, "byhand")
        key = re.search(r'name="key" value="([0-9a-f]+)"', browser.page)
        assert key is not None
        first = await browser.send("/schedules/named/byhand/run", key=key[1])
        await browser.open("/schedules/named/byhand")
        second = await browser.send("/schedules/named/byhand/run", key=key[1])

        async def priced() -> bool:
            page = (await browser.open("/schedules/named/byhand")).text
            return "status-completed" in page and 'class="money"' in page

        await until(priced, why="the firing shows its job and what it cost")
        firings = (await console.api.get("/v1/schedules/byhand")).json()["firings"]

    assert first.headers["location"] == second.headers["location"] == f"/jobs/{firings[0]['job_id']}"
    assert len(firings) == 1 and "by hand" in browser.page


async def test_a_schedule_is_paused_changed_and_deleted(console: Console):
    at = "/schedules/named/changed"
    async with console.browser() as browser:
        await create(browser, "changed")
        paused = await browser.send(f"{at}/disable")
        await browser.open(at)
        shown = browser.page
        await browser.send(f"{at}/enable")
        await browser.open(f"{at}/edit")
        tag = re.search(r'name="tag" value="([^"]+)"', browser.page)
        assert tag is not None
        changes = {**NEW, "cron": "0 8 * * *", "tags": "team:ops", "tag": html.unescape(tag[1])}
        changed = await browser.send(f"{at}/edit", **changes)
        await browser.open(f"{at}/edit")
        stale = await browser.send(f"{at}/edit", **{**changes, "cron": "0 9 * * *"})
        saved = (await console.api.get("/v1/schedules/changed")).json()
        asked = await browser.send(f"{at}/delete")
        deleted = await browser.send(f"{at}/delete", confirmed="1")
        gone = await browser.open(at)

    assert paused.headers["location"] == f"{at}?done=disabled" and "It does not fire" in shown
    assert changed.headers["location"] == f"{at}?done=saved"
    assert (saved["cron"], saved["job"]["options"]["tags"], saved["enabled"]) == ("0 8 * * *", ["team:ops"], True)
    assert (stale.status_code, 'role="alert"' in stale.text) == (422, True)
    assert "Delete the schedule changed?" in asked.text
    assert (deleted.headers["location"], gone.status_code) == ("/schedules?done=deleted", 404)
