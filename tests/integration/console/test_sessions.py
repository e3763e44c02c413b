"""Sessions through the console: read, gone on with, steered and forgotten."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from wayline.simulator.chat_server import Say
from wayline.testkit import until

from .conftest import AGENT, Console

pytestmark = [pytest.mark.asyncio(loop_scope="module")]


async def ended(console: Console, job_id: str) -> dict[str, Any]:
    """Return a job at its end."""

    async def at_end() -> dict[str, Any] | None:
        job = (await console.api.get(f"/v1/jobs/{job_id}")).json()
        return job if job["ended_at"] else None

    return await until(at_end, why=f"{job_id} has ended")


async def test_a_session_goes_on_by_its_own_agent_and_user(console: Console):
    await console.run("A train to Porto?", session_id="trip/1", user_id="ann")
    async with console.browser() as browser:
        listed = await browser.open(f"/sessions?agent={AGENT}&user=ann")
        await browser.open("/sessions/one?id=trip/1")
        sent = await browser.send("/sessions/one/continue?id=trip/1", input="And back?")
        job = await ended(console, sent.headers["location"].rpartition("/")[2])
        page = await browser.open("/sessions/one?id=trip/1")
        empty = await browser.send("/sessions/one/continue?id=trip/1", input="")
        missing = await browser.open("/sessions/one?id=none")
    told = (await console.api.get("/v1/sessions/trip%2F1")).json()

    assert 'href="/sessions/one?id=trip/1"' in listed.text
    assert (job["session_id"], job["user_id"], job["agent"], told["turns"]) == ("trip/1", "ann", AGENT, 2)
    assert page.text.index("And back?") < page.text.index("A train to Porto?")
    assert (empty.status_code, missing.status_code) == (422, 404)


async def test_a_running_job_is_steered_and_its_session_kept(console: Console):
    release = asyncio.Event()
    console.answers(Say(text="One two three.", hold=release), "Sunday as well.")
    running = await console.api.post("/v1/jobs", json={"agent": AGENT, "input": "Trains?", "session_id": "busy"})
    job_id = running.json()["job_id"]

    async with console.browser() as browser:

        async def is_busy() -> bool:
            return 'value="steer" checked' in (await browser.open("/sessions/one?id=busy")).text

        await until(is_busy, why="the session is busy")
        refused = await browser.send("/sessions/one/forget?id=busy", confirmed="1")
        await browser.open("/sessions/one?id=busy")
        sent = await browser.send("/sessions/one/continue?id=busy", input="Also Sunday.", when_busy="steer")
        release.set()
        job = await ended(console, job_id)
        steering = await ended(console, sent.headers["location"].rpartition("/")[2])

        async def is_idle() -> bool:
            return "status-idle" in (await browser.open("/sessions/one?id=busy")).text

        await until(is_idle, why="the session is idle")
        asked = await browser.send("/sessions/one/forget?id=busy")
        forgotten = await browser.send("/sessions/one/forget?id=busy", confirmed="1")
        gone = await browser.open("/sessions/one?id=busy")

    assert refused.status_code == 422 and 'role="alert"' in refused.text
    # Where the first one ended before it could say these words, the second one has said them itself.
    said = job if steering["handed_to"] == job_id else steering
    assert (steering["session_id"], said["answer"]) == ("busy", "Sunday as well.")
    assert "Its next job begins a new conversation." in asked.text
    assert (forgotten.status_code, gone.status_code) == (303, 404)
