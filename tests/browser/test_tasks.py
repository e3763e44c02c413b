"""What people do in the console, in Chromium: nothing is said, asked elsewhere or refused by the policy meanwhile."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Any
from zoneinfo import available_timezones

import pytest
from playwright.async_api import expect

from wayline.console.render.waterfall import ROWS_FIRST
from wayline.simulator.chat_server import Say
from wayline.testkit import until

from ..integration.console.conftest import AGENT, Console
from .conftest import ALL, BY_KEYS, NO_SCRIPTS, Looks, Window, slow

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

EVERY_LOOK = pytest.mark.parametrize(
    "looks", [ALL[0], *(pytest.param(looks, marks=pytest.mark.slow) for looks in (*ALL[1:], BY_KEYS))], ids=str
)


async def stored(console: Console, job_id: str) -> None:
    """Wait until a search finds a job."""

    async def found() -> bool:
        jobs = (await console.api.get("/v1/jobs", params={"q": job_id})).json()["jobs"]
        return bool(jobs) and jobs[0]["ended_at"] is not None

    await until(found, why="tracing has the job")


async def parked(console: Console, job_id: str) -> dict[str, Any]:
    async def waits() -> Any:
        job = (await console.api.get(f"/v1/jobs/{job_id}")).json()
        return job if job["status"] == "parked" else None

    return await until(waits, why="the job waits")


@EVERY_LOOK
async def test_a_job_is_submitted_and_watched_to_its_end(window: Window, looks: Looks):
    window.console.answers("The **end**.")
    async with window.open(looks) as shown:
        page = await shown.goto("/jobs/new")
        await shown.hands.choose(page.locator("select[name=agent]"), AGENT)
        await shown.hands.fill(page.get_by_label("What shall it do?"), "Is it so?")
        await shown.hands.press(page.get_by_role("button", name="Submit", exact=True))
        await expect(page.locator(".said strong")).to_have_text("end")
        await expect(page.locator("[data-ended='1']")).to_have_count(1)
        await until(lambda: shown.streams == [], why="the stream is closed")
        found = await shown.accessible()

    assert found == []


@slow(*ALL)
async def test_a_job_is_found_by_a_word(window: Window, looks: Looks):
    window.console.answers("An ocelot.")
    job = await window.console.run("Which animal?")
    await stored(window.console, job["job_id"])
    async with window.open(looks) as shown:
        page = await shown.goto("/")
        await page.keyboard.press("/")
        await page.keyboard.type("ocelot")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("link", name=job["job_id"])).to_be_visible()
        problems = await shown.accessible()
        await page.keyboard.press("j")
        await page.keyboard.press("Enter")
        await expect(page.locator("h1 span")).to_have_text(job["job_id"])

    assert problems == []


async def asks(console: Console) -> str:
    """Submit a job whose call waits for a person, and return its id."""
    await console.save("asker", tools=("get_current_time",), ask_tools={"get_current_time": "always"})
    console.answers(Say(tools=(("get_current_time", {"timezone": "UTC"}),)), "Done.")
    job_id = (await console.api.post("/v1/jobs", json={"agent": "asker", "input": "What time is it?"})).json()["job_id"]
    await parked(console, job_id)
    return job_id


async def asks_everywhere(console: Console, last: Say | str) -> str:
    """Submit a job of eighty calls, whose trace is longer than its page at first, and return its id."""
    zones = iter(sorted(available_timezones()))
    calls = [tuple(("get_current_time", {"timezone": zone}) for zone in islice(zones, 20)) for _ in range(4)]
    await console.save("clock", tools=("get_current_time",), max_steps=30)
    console.answers(*(Say(text="Looking.", tools=tools) for tools in calls), last)
    sent = {"agent": "clock", "input": "What time is it everywhere?"}
    job_id = (await console.api.post("/v1/jobs", json=sent)).json()["job_id"]

    async def is_long() -> bool:
        trace = await console.api.get(f"/v1/jobs/{job_id}/trace")
        return trace.status_code == 200 and trace.json()["totals"]["spans"] > ROWS_FIRST

    await until(is_long, why="the job has more spans than its page at first")
    return job_id


@slow(*ALL, *NO_SCRIPTS, BY_KEYS)
async def test_a_call_is_approved_with_a_changed_argument(window: Window, looks: Looks):
    job_id = await asks(window.console)
    async with window.open(looks) as shown:
        page = await shown.goto(f"/jobs/{job_id}")
        form = page.locator(".approval")
        await shown.hands.fill(form.locator("[name='arg.timezone']"), "Europe/Zurich")
        await shown.hands.press(form.get_by_role("button", name="Show my changes"))
        form = page.locator(f"[id^='wait-{job_id}']")
        await expect(form.locator(".line-added mark")).to_have_text("Europe/Zurich")
        problems = await shown.accessible() if looks.scripts else []
        await shown.hands.press(form.get_by_role("button", name="Approve"))
        await expect(page.get_by_role("status")).to_contain_text("The decision was sent")
        await stored(window.console, job_id)
        await shown.goto(f"/jobs/{job_id}")
        await shown.hands.press(page.locator(".tool summary"))
        await expect(page.locator(".tool")).to_contain_text("Europe/Zurich")

    assert problems == []


@slow(*ALL, *NO_SCRIPTS, BY_KEYS)
async def test_a_parked_job_goes_on_once_its_budget_is_raised(window: Window, looks: Looks):
    console = window.console
    sent = {"agent": AGENT, "input": "Is it dear?", "options": {"budget_usd": "0.00000001", "at_cap": "park"}}
    job_id = (await console.api.post("/v1/jobs", json=sent)).json()["job_id"]
    await parked(console, job_id)
    async with window.open(looks) as shown:
        page = await shown.goto(f"/jobs/{job_id}")
        problems = await shown.accessible() if looks.scripts else []
        await shown.hands.fill(page.get_by_label("Let it spend in all"), "0.50")
        await shown.hands.press(page.get_by_role("button", name="Raise"))
        await expect(page.locator(".done")).to_have_text("The job may spend more now.")
        await stored(console, job_id)
        await shown.goto(f"/jobs/{job_id}")
        await expect(page.locator(".status").first).to_have_text("completed")

    assert problems == []


@slow(*ALL, *NO_SCRIPTS, BY_KEYS)
async def test_a_budget_with_an_alert_is_made_and_deleted(window: Window, looks: Looks):
    await window.console.run()
    async with window.open(looks) as shown:
        page = await shown.goto("/costs?days=1")
        hands = shown.hands
        await hands.press(page.get_by_role("link", name="New budget"))
        await hands.fill(page.get_by_label("Name"), "walk")
        await hands.fill(page.get_by_label("Limit in dollars"), "5")
        await hands.fill(page.get_by_label("Alerts"), "50 90")
        await hands.press(page.get_by_role("button", name="Save"))
        await expect(page.get_by_role("status")).to_have_text("It is saved.")
        await expect(page.get_by_role("heading", name="Budget walk")).to_be_visible()
        problems = await shown.accessible() if looks.scripts else []
        await hands.press(page.get_by_role("button", name="Delete …"))
        await hands.press(page.get_by_role("button", name="Delete it"))
        await expect(page.get_by_role("status")).to_have_text("It is deleted.")

    assert problems == []


@pytest.mark.slow
async def test_a_job_is_written_found_and_approved_by_keys_alone(window: Window):
    job_id = await asks(window.console)
    async with window.open() as shown:
        page = await shown.goto("/")
        await page.keyboard.press("g")
        await page.keyboard.press("j")
        await page.wait_for_url("**/jobs")
        await page.keyboard.press("j")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/jobs/job_*")
        await page.keyboard.press("g")
        await page.keyboard.press("a")
        await page.wait_for_url("**/approvals")
        call = page.locator(f"[id^='wait-{job_id}']")
        for _ in range(20):
            await page.keyboard.press("j")
            if await call.evaluate("(one) => one.contains(document.activeElement)"):
                break
        await page.keyboard.press("a")
        await expect(call.get_by_role("button", name="Approve")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("status")).to_contain_text("The decision was sent")


@pytest.mark.slow
@pytest.mark.parametrize("looks", NO_SCRIPTS, ids=str)
async def test_a_job_is_submitted_and_read_without_scripts(window: Window, looks: Looks):
    async with window.open(looks) as shown:
        page = await shown.goto("/jobs/new")
        await page.get_by_label("What shall it do?").fill("Is it so?")
        await page.get_by_role("button", name="Submit", exact=True).click()
        job_id = page.url.partition("?")[0].rpartition("/")[2]
        await stored(window.console, job_id)
        await shown.goto(f"/jobs/{job_id}")
        await expect(page.locator(".said .prose").last).to_have_text("Yes.")
        if looks.width == 390:
            await page.get_by_text("Menu", exact=True).click()
        await page.get_by_role("link", name="Costs").click()
        await expect(page.locator("figure table").first).to_be_visible()


@slow(*ALL, *NO_SCRIPTS)
async def test_many_jobs_are_cancelled_after_a_dry_run(window: Window, looks: Looks):
    console = window.console
    release = asyncio.Event()
    console.answers(Say(text="One two.", hold=release))
    tag = f"walk:{looks.theme}{looks.width}{looks.scripts}".lower()
    sent = {"agent": AGENT, "input": "Wait.", "options": {"tags": [tag]}}
    jobs = [(await console.api.post("/v1/jobs", json=sent)).json()["job_id"] for _ in range(3)]

    async def listed() -> bool:
        return len((await console.api.get("/v1/jobs", params={"tag": tag})).json()["jobs"]) == len(jobs)

    await until(listed, why="tracing has the jobs")
    async with window.open(looks) as shown:
        page = await shown.goto(f"/jobs?s=tag:{tag}")
        await page.get_by_label("With").select_option("all")
        await page.get_by_placeholder("reason, dollars").fill("not needed")
        await page.get_by_role("button", name="See what it would do").click()
        await expect(page.locator(".confirm")).to_contain_text("3 jobs")
        problems = await shown.accessible() if looks.scripts else []
        assert {(await console.api.get(f"/v1/jobs/{one}")).json()["status"] for one in jobs} <= {"queued", "running"}
        await page.get_by_role("button", name="Cancel them").click()
        await page.wait_for_url("**/jobs/actions/action_*")
        for job_id in jobs:
            await stored(console, job_id)
        release.set()
        await page.reload()
        await expect(page.locator("tbody tr td").nth(2)).to_have_text("3")

    assert problems == []


@slow(*ALL)
async def test_a_job_is_forked_from_an_event_and_compared(window: Window, looks: Looks):
    console = window.console
    await console.save("clock", tools=("get_current_time",))
    console.answers(Say(tools=(("get_current_time", {"timezone": "UTC"}),)), "It is noon.")
    job = await console.run("What time is it?", agent="clock")
    console.answers("It is midnight.")
    async with window.open(looks) as shown:
        page = await shown.goto(f"/jobs/{job['job_id']}?view=events&kind=tool.completed")
        await page.locator(".event summary").click()
        await page.get_by_role("link", name="Fork after this event").click()
        problems = await shown.accessible()
        await page.get_by_label("Result of get_current_time").fill("2030-01-01T00:00:00Z")
        await page.get_by_role("button", name="Begin the fork").click()
        await page.wait_for_url("**/beside*")
        await stored(console, page.url.partition("/beside")[0].rpartition("/")[2])
        await page.reload()
        await expect(page.locator(".diff mark").first).to_have_text("noon")
        await expect(page.locator(".half").last).to_contain_text("2030-01-01")
        problems += await shown.accessible()

    assert problems == []


@pytest.mark.slow
async def test_new_jobs_are_counted_and_rows_change_where_they_stand(window: Window):
    console = window.console
    release = asyncio.Event()
    console.answers(Say(text="One two.", hold=release))
    job_id = (await console.api.post("/v1/jobs", json={"agent": AGENT, "input": "First."})).json()["job_id"]

    async def listed() -> bool:
        return bool((await console.api.get("/v1/jobs", params={"q": job_id})).json()["jobs"])

    await until(listed, why="tracing has the job")
    async with window.open() as shown:
        page = await shown.goto("/jobs")
        row = page.locator(f"[data-job='{job_id}']")
        await until(lambda: len(shown.streams) == 1, why="the list listens")
        await row.get_by_role("checkbox").check()
        place = await row.bounding_box()
        await console.api.post("/v1/jobs", json={"agent": AGENT, "input": "Second."})
        await expect(page.get_by_role("link", name="1 new")).to_be_visible()
        release.set()
        await expect(row.locator(".status")).to_have_text("completed")
        await expect(row.get_by_role("checkbox")).to_be_checked()

        assert await row.bounding_box() == place
        await page.get_by_role("link", name="1 new").click()
        await expect(page.locator("[data-row]").first).not_to_have_attribute("data-job", job_id)
