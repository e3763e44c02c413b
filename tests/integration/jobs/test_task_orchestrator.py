"""The bundled planner through every service: without a model, whole in the latest result, known to later plans."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from wayline.contracts.jobs import JobView
from wayline.contracts.task_graphs import QueryTaskGraph, TaskGraph
from wayline.simulator.chat_server import ChatServer, Say, turns
from wayline.testkit import Platform, until

from .conftest import chatting, http_with_key, index_document
from .stage import Stage, open_stage

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

SHOP = json.loads((Path(__file__).parents[2] / "unit" / "planning" / "coffee_shop.json").read_text())
PLAN = """# Party

1. Book the venue
2. Send the invitations
3. Order the cake

The invitations are sent once the venue is booked.
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(module_platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with open_stage(
        module_platform, tmp_path_factory.mktemp("effects"), services=("retrieval", "gateway")
    ) as stage:
        yield stage


async def planned(platform: Platform, job_id: str, asked: Any, **fields: Any) -> tuple[JobView, dict[str, Any]]:
    """Run the planner, and return its job and its plan."""
    await platform.publish({"agent": "task-orchestrator", "input": asked, "job_id": job_id, "user_id": "ann", **fields})
    job = await platform.wait_for(job_id)
    assert job.answer is not None, job.error
    return job, json.loads(job.answer)


async def graph(platform: Platform, name: str) -> TaskGraph:
    return await platform.bus.ask(QueryTaskGraph(tenant=platform.tenant, names=(name,)), TaskGraph)


async def test_a_plan_without_a_model_is_known_to_later_plans(stage: Stage):
    platform = await stage.play(lambda _: Say())
    http = await http_with_key(platform)
    await index_document(platform, "party", "party.md", PLAN)

    first, plan = await planned(platform, "j1", {"outcome": "A party", "document_ids": ["party"]})
    stored = await until_stored(platform)
    _, again = await planned(platform, "j2", {"outcome": "x", "tasks": ["Send the invitations", "Book the venue"]})

    assert plan["execution_waves"] == [{"wave": 1, "tasks": ["1", "3"]}, {"wave": 2, "tasks": ["2"]}]
    assert plan["dependencies"][0]["document_id"] == "party" and "does not reason" in plan["reasoning"]
    assert (first.steps, plan["execution_metadata"]["calls"]) == (6, 5) and not first.partial
    assert [(one.task, one.needs, one.source_job) for one in stored.edges] == [
        ("Send the invitations", "Book the venue", "j1")
    ]
    assert [one["source_job"] for one in again["dependencies"]] == ["j1"]

    async def latest() -> dict[str, Any] | None:
        found = (await http.get("/v1/agents/task-orchestrator/latest", params={"user_id": "ann"})).json()
        return found["outcome"] if found["job_id"] == "j2" else None

    outcome = await until(latest, why="the newest result is kept")
    assert outcome is not None
    assert json.loads(outcome["answer"]) == again and not outcome["cut"]


async def until_stored(platform: Platform) -> TaskGraph:
    """Wait until the plan is stored, and return what is known of the task `Send the invitations`."""

    async def known() -> TaskGraph | None:
        found = await graph(platform, "send the invitations")
        return found if found.edges else None

    stored = await until(known, why="the plan is stored")
    assert stored is not None
    return stored


async def test_a_fork_assembles_the_same_plan_from_the_shared_log(stage: Stage):
    platform = await stage.play(lambda _: Say())
    http = await http_with_key(platform)
    _, plan = await planned(platform, "j1", SHOP | {"dependencies": None, "cycles": None})

    answer = await http.post("/v1/jobs/j1/fork", params={"wait": 30}, json={"after": await _last_tool(platform)})

    forked = json.loads(answer.json()["answer"])
    assert {**forked, "execution_metadata": 0} == {**plan, "execution_metadata": 0}
    assert forked["execution_metadata"]["calls"] == plan["execution_metadata"]["calls"]
    assert len(plan["prioritized_tasks"]) == 30 and sum("cut" in one for one in plan["dependencies"]) == 3


async def _last_tool(platform: Platform) -> int:
    return max(event.seq for event in await platform.events("j1") if event.type == "tool.completed")


async def test_strangers_words_taint_a_plan_and_those_after_it(stage: Stage):
    platform = await stage.play(lambda _: Say())
    await index_document(platform, "party", "https://party.example/plan", PLAN)

    await planned(platform, "j1", {"outcome": "A party", "document_ids": ["party"]})
    stored = await until_stored(platform)
    await planned(platform, "j2", {"outcome": "x", "tasks": ["Send the invitations", "Book the venue"]})

    assert all(one.untrusted for one in (*stored.edges, *stored.tasks))
    assert (await platform.job("j1")).tools.tainted_by is not None
    assert (await platform.job("j2")).tools.tainted_by == "query_task_graph"


@pytest.mark.asyncio(loop_scope="function")
async def test_a_plan_is_stored_once_retrieval_is_back(platform: Platform):
    tasks = [{"id": "1", "name": "Book the venue"}, {"id": "2", "name": "Send the invitations", "text": "After 1."}]
    answer = {"prioritized_tasks": [{"id": "1", "reason": "r"}], "reasoning": "r"}
    script = turns(Say(tools=(("detect_dependencies", {"tasks": tasks}),)), Say(text=json.dumps(answer)))
    async with ChatServer(script) as chat:
        await platform.start("router", "tool_registry", "executor", executor=chatting(chat))

        job, plan = await planned(platform, "j1", {"outcome": "A party"}, options={"model": "chat/m"})
        await platform.start("retrieval")
        stored = await until_stored(platform)

        assert [(one["task"], one["needs"]) for one in plan["dependencies"]] == [("2", "1")] and not job.partial
        assert [one.source_job for one in stored.edges] == ["j1"]


async def test_a_model_that_answers_no_json_ends_in_an_empty_plan(stage: Stage):
    platform = await stage.play(lambda _: Say(text="I would rather not."))
    job, plan = await planned(platform, "j1", {"outcome": "A party"}, options={"model": "chat/m"})

    assert plan["prioritized_tasks"] == [] and "JSON" in plan["execution_metadata"]["empty_because"]
    assert job.partial and job.reason is not None and "JSON" in job.reason
