"""A user's newest run of an agent, over HTTP: while it runs, once it has ended, and when it was refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from wayline.simulator.chat_server import Say
from wayline.testkit import Platform, until

from .conftest import http_with_key
from .stage import Stage, open_stage

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

PATH = "/v1/agents/assistant/latest"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(module_platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with open_stage(module_platform, tmp_path_factory.mktemp("effects"), services=("gateway",)) as stage:
        yield stage


async def submit(platform: Platform, job_id: str, *, user: str | None = "ann", **options: Any) -> None:
    body = {"agent": "assistant", "input": f"I am {job_id}.", "job_id": job_id, "user_id": user}
    await platform.publish({**body, "options": {"model": "chat/m", **options}})


async def latest(http: httpx2.AsyncClient, user: str = "ann") -> dict[str, Any]:
    answer = await http.get(PATH, params={"user_id": user})
    return answer.json() | {"http": answer.status_code}


async def until_kept(platform: Platform, job_id: str) -> None:
    """Wait until a run's end is in its row."""
    store = await platform.store("router")
    sql = "SELECT ended_at IS NOT NULL FROM latest_results WHERE job_id = $1"
    await until(lambda: store.fetchval(platform.tenant, sql, job_id), why=f"the end of {job_id} is kept")


async def test_a_newest_run_is_shown_while_it_runs_and_after(stage: Stage):
    hold = asyncio.Event()
    platform = await stage.play(lambda body: Say(text="All is well.", hold=hold))
    http = await http_with_key(platform)
    assert (await latest(http))["http"] == 404
    await submit(platform, "j1")
    await platform.wait_until("j1", lambda job: job.model.asked is not None, "it calls its model")

    running = await latest(http)
    hold.set()
    await platform.wait_for("j1")
    await until_kept(platform, "j1")
    done = await latest(http)
    await submit(platform, "other", user="bob")
    await submit(platform, "nobodys", user=None)
    await platform.wait_for("nobodys")

    assert (running["job_id"], running["status"], running["outcome"]) == ("j1", "running", None)
    assert running["plan"]["model"] == "m" and running["accepted_at"] is not None
    assert (done["status"], done["outcome"]["answer"], done["outcome"]["cut"]) == (
        "completed",
        "All is well.",
        False,
    )
    assert (done["metadata"]["steps"], done["accepted_at"]) == (1, running["accepted_at"])
    assert done["links"]["self"] == "/v1/jobs/j1"
    assert (await latest(http))["job_id"] == "j1"
    assert (await http.get(PATH)).status_code == 422


async def test_a_refused_run_is_the_newest_one_too(stage: Stage):
    platform = await stage.play(lambda _: Say(text="All is well."))
    http = await http_with_key(platform)
    await submit(platform, "j1")
    await platform.wait_for("j1")

    await submit(platform, "dry", dry_run=True)
    await submit(platform, "broke", budget_usd="0.000001")
    await platform.wait_for("broke")
    await until_kept(platform, "broke")

    found = await latest(http)
    assert (found["job_id"], found["status"]) == ("broke", "failed")
    assert found["outcome"]["error"]["code"] in {"price_unknown", "budget_too_small"}


async def test_an_end_without_settlement_is_read_from_the_log(stage: Stage):
    """A run that has ended and whose row does not say so is shown as it ended."""
    platform = await stage.play(lambda _: Say(text="All is well."))
    http = await http_with_key(platform)
    await submit(platform, "j1")
    await platform.wait_for("j1")
    await until_kept(platform, "j1")
    store = await platform.store("router")
    await store.execute(platform.tenant, "UPDATE latest_results SET ended_at = NULL, outcome = NULL, status = 'queued'")

    found = await latest(http)

    assert (found["status"], found["outcome"]["answer"]) == ("completed", "All is well.")
