"""A tenant's settings over HTTP, and the jobs that go by them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from wayline.contracts import events as e
from wayline.executor.replay import replay
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator import Say as Answer
from wayline.simulator import Simulator, turns
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import Platform, until

from .conftest import chatting, http_with_key, with_tools
from .stage import Stage, open_stage
from .test_discovering import box, listing, look

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

MODEL = "chat/m"
PLAIN: dict[str, Any] = {"instructions": "Answer."}
PATH = "/v1/settings"


async def change(http: Any, **fields: Any) -> dict[str, Any]:
    answer = await http.patch(PATH, json=fields)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def routed(platform: Platform, job_id: str) -> e.JobRouted:
    found: list[e.JobRouted] = []

    async def begun() -> bool:
        found[:] = await platform.events_of(job_id, e.JobRouted)
        return bool(found)

    await until(begun, why=f"{job_id} is routed")
    return found[0]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(module_platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with open_stage(module_platform, tmp_path_factory.mktemp("effects"), services=("gateway",)) as stage:
        yield stage


async def test_settings_over_http_merge_reset_and_refuse(stage: Stage):
    platform = await stage.play(lambda _: Say())
    http = await http_with_key(platform)

    first = (await http.get(PATH)).json()
    await change(http, max_steps=8, tools=["search_*"], web_search=False)
    changed = await change(http, style="direct", max_steps=None)

    assert first["style"] == "balanced"
    assert (first["max_steps"], first["max_cost_usd"], first["show_reasoning"]) == (5, "0.10", False)
    assert [first[switch] for switch in ("web_search", "memory", "images")] == [True] * 3
    assert first["updated_at"] is None
    assert (changed["max_steps"], changed["style"], changed["tools"]) == (5, "direct", ["search_*"])
    assert set(first["defaults"]) - set(changed["defaults"]) == {"style", "tools", "web_search"}
    assert (await http.get(PATH)).json() == changed
    for wrong, field in (
        ({"max_steps": 0}, "max_steps"),
        ({"max_cost_usd": "0"}, "max_cost_usd"),
        ({"style": "loud"}, "style"),
        ({"tools": ["two words"]}, "tools"),
        ({"max_step": 3}, "max_step"),
        ({"memory": "perhaps"}, "memory"),
    ):
        refused = await http.patch(PATH, json=wrong)
        assert (refused.status_code, refused.headers["content-type"]) == (422, "application/problem+json")
        assert field in refused.text
    assert (await http.get(PATH)).json() == changed


@pytest.mark.asyncio(loop_scope="function")
async def test_changed_settings_reach_the_next_job_and_no_running_one(platform: Platform):
    held = asyncio.Event()
    async with ChatServer(lambda _: Say(text="Yes.", hold=None if held.is_set() else held)) as chat:
        services = ("router", "router", "tool_registry", "executor", "gateway")
        await platform.start(*services, executor=chatting(chat))
        http = await platform.http()
        await platform.put_agent("chatty", **PLAIN)
        await platform.submit("before", agent="chatty", model=MODEL)
        await until(lambda: bool(chat.calls), why="the first job runs")

        await change(http, max_steps=9, style="direct", max_seconds=77)
        await asyncio.gather(*(platform.submit(f"after-{n}", agent="chatty", model=MODEL) for n in range(8)))
        after = [await routed(platform, f"after-{n}") for n in range(8)]
        held.set()
        await asyncio.gather(*(platform.wait_for(job) for job in ("before", *(f"after-{n}" for n in range(8)))))

    # Either of two routers may have admitted each.
    assert {(one.limits.max_steps, one.limits.max_seconds, one.config.style) for one in after} == {(6, 77, "direct")}
    before = await routed(platform, "before")
    assert (before.limits.max_steps, before.limits.max_seconds, before.config.style) == (3, 600, "balanced")
    heads = [body["messages"][0]["content"] for _, body in chat.calls]
    assert [head.partition(".")[0] for head in heads] == ["Style: balanced", *["Style: direct"] * 8]
    assert all(head.endswith("\n\nAnswer.") for head in heads)


async def test_jobs_override_agents_and_agents_override_settings(stage: Stage):
    platform = await stage.play(lambda _: Say())
    http = await http_with_key(platform)
    await change(http, max_steps=9, max_output_tokens=777, max_cost_usd="0.5")
    await platform.put_agent("own", **PLAIN, max_steps=5, adapt_steps=False, max_cost_usd="0.25")
    await platform.submit("a", agent="own", max_steps=2, budget_usd="0.02")
    await platform.submit("b", agent="own")
    limits = [(await routed(platform, job)).limits for job in "ab"]
    shown = (await http.get("/v1/agents/own")).json()

    assert [(one.max_steps, one.max_output_tokens, str(one.budget_usd)) for one in limits] == [
        (2, 777, "0.02"),
        (5, 777, "0.25"),
    ]
    assert (shown["config"]["max_steps"], shown["config"]["max_output_tokens"]) == (5, 777)
    assert "max_output_tokens" in shown["inherits"]
    assert "max_steps" not in shown["inherits"]


async def test_a_jobs_own_options_stay_within_its_agents(stage: Stage):
    platform = await stage.play(lambda _: Say())
    http = await http_with_key(platform)
    await change(http, memory=False)
    await platform.put_agent("own", **PLAIN, max_steps=5, tools=("search_*", "get_time"), show_reasoning=False)
    await platform.put_agent("left", **PLAIN)
    asked = {"max_steps": 50, "agent_style": "direct", "show_reasoning": True, "memory": True, "images": False}
    await platform.submit("a", agent="own", tools=("search_web", "pay"), **asked)
    await platform.submit("b", agent="left", **asked)
    own, left = [await routed(platform, job) for job in "ab"]

    assert (own.limits.max_steps, left.limits.max_steps) == (5, 50)
    assert (own.config.style, own.config.tools, left.config.tools) == ("direct", ("search_web",), ("*",))
    assert [one.config.show_reasoning for one in (own, left)] == [False, True]
    assert [(one.config.memory, one.config.images) for one in (own, left)] == [(False, False)] * 2
    assert {"*memory", "image_generate*"} <= set(own.config.tools_off)
    assert (await http.get("/v1/agents/own")).json()["config"]["tools"] == ["search_*", "get_time"]


def web_search(query: str) -> str:
    """Search the web."""
    return f"found {query}"


@pytest.mark.asyncio(loop_scope="function")
async def test_a_switch_that_is_off_takes_its_tools_away(platform: Platform):
    def script(body: dict[str, Any]) -> Say:
        called = any(message["role"] == "tool" for message in body["messages"])
        return Say(text="Done.") if called else Say(tools=(("box__web_search", {"query": "tides"}),))

    async with ChatServer(script) as chat, box(look, web_search) as server:
        registry = with_tools(server.settings())
        services = ("router", "tool_registry", "executor", "gateway")
        await platform.start(*services, executor=chatting(chat), tool_registry=registry)
        await listing(platform, "look", "web_search")
        await change(await platform.http(), web_search=False)
        await platform.put_agent("worker", **PLAIN, ask="never", ask_when_tainted=False)
        await platform.put_agent("searcher", **PLAIN, ask="never", ask_when_tainted=False, web_search=True)
        await platform.submit("off", agent="worker", model=MODEL)
        await platform.wait_for("off")
        await platform.submit("on", agent="searcher", model=MODEL)
        await platform.wait_for("on")

    offered = [{tool["function"]["name"] for tool in body["tools"]} for _, body in chat.calls]
    assert [("box__web_search" in names, "box__look" in names) for names in offered] == [(False, True)] * 2 + [
        (True, True)
    ] * 2
    [refused] = await platform.events_of("off", e.ToolCompleted)
    [answered] = await platform.events_of("on", e.ToolCompleted)
    assert refused.error is not None
    assert (refused.error.code, answered.content) == ("unknown_tool", "found tides")


async def test_an_adapted_step_limit_is_recorded_and_replays(stage: Stage):
    def script(body: dict[str, Any]) -> Say:
        # Other arguments at each step: the same call again and again is taken for a loop.
        step = sum(message["role"] == "assistant" for message in body["messages"])
        return Say(text="So far.", tools=(("get_current_time", {"timezone": f"Etc/GMT+{step}"}),))

    platform = await stage.play(script)
    http = await http_with_key(platform)
    await change(http, max_steps=10)
    await platform.put_agent("worker", **PLAIN)
    await platform.submit("j1", "hello", agent="worker", model=MODEL)
    job = await platform.wait_for("j1")
    told = (await http.get("/v1/jobs/j1/events?progress=true")).text

    limits = (await routed(platform, "j1")).limits
    assert (limits.max_steps, limits.steps_cap, limits.steps_level) == (6, 10, "simple")
    assert (job.steps, job.partial) == (6, True)
    assert job.reason == "the job's 6 steps, a simple job's share of 10, are used up"
    assert '"of":6' in told
    assert replay(await platform.events("j1")).divergence is None


@pytest.mark.parametrize("shown", [False, True])
@pytest.mark.asyncio(loop_scope="function")
async def test_thinking_is_shown_only_where_settings_say_so(platform: Platform, shown: bool):
    async with Simulator(turns(Answer(text="Seven.", thinking="Three and four."))) as simulator:
        urls: dict[str, Any] = {"anthropic_base_url": simulator.url}
        await platform.start(
            "router", "executor", "gateway", router=RouterSettings(**urls), executor=ExecutorSettings(**urls)
        )
        http = await platform.http()
        if shown:
            await change(http, show_reasoning=True)
        await platform.put_agent("thinker", instructions="Think.", model="anthropic/claude-sonnet-5-5", tools=())
        await platform.submit("j1", agent="thinker", budget_usd="1")
        await platform.wait_for("j1")
        # What was decided for a job holds for it, whatever is changed later.
        await change(http, show_reasoning=not shown)
        completed = [event for event in await platform.events("j1") if isinstance(event, e.ModelCompleted)]
        whole = (await http.get("/v1/jobs/j1/events", headers={"accept": "application/json"})).text
        later = (await http.get(f"/v1/jobs/j1/events?after={completed[0].seq - 1}")).text
        progress = (await http.get("/v1/jobs/j1/events?progress=true")).text
        exported = (await http.get("/v1/jobs/j1/export")).text

    assert completed[0].message.thinking == "Three and four."
    assert [("Three and four." in text) for text in (whole, later, progress)] == [shown] * 3
    assert "Seven." in whole
    assert "Three and four." in exported
