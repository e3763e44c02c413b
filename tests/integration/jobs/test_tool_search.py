"""An agent with many tools finds them when it needs them: few are in its prompts, and no prompt is ever rewritten."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
import pytest_asyncio
from mcp.server import MCPServer

from wayline.contracts import events as e
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator import Say as Reply
from wayline.simulator import Simulator
from wayline.simulator.chat_server import Say, Script
from wayline.testkit import Platform
from wayline.testkit.mcp_servers import serving

from .conftest import until_listed, with_tools
from .stage import Stage, open_stage

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

OTHERS = 40
CALLED: list[str] = []


def rate(currency: str) -> str:
    """Tell what a currency is worth in dollars."""
    CALLED.append(currency)
    return f"1 {currency} is 1.10 USD"


def rate_history(currency: str, days: int = 7) -> str:
    """Tell what a currency was worth on each of the last days."""
    return f"{days} days of {currency}"


@asynccontextmanager
async def bank() -> AsyncIterator[dict[str, Any]]:
    """A server with the two tools above among many others, as a registry is told of it."""
    CALLED.clear()
    server = MCPServer("bank")
    server.add_tool(rate)
    server.add_tool(rate_history)
    for number in range(OTHERS):
        server.add_tool(_another(number))
    async with serving(server) as url:
        yield {"name": "bank", "url": url, "effects": {"rate": "read", "rate_history": "read"}}


def _another(number: int) -> Callable[..., str]:
    def tool(amount: int) -> str:
        return str(amount)

    tool.__name__ = f"form_{number:02}"
    tool.__doc__ = f"Fill in form {number} of the branch."
    return tool


def results(body: dict[str, Any]) -> list[str]:
    return [message["content"] for message in body["messages"] if message["role"] == "tool"]


def offered(body: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in body["tools"]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(module_platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with bank() as server, open_stage(module_platform, tmp_path_factory.mktemp("effects"), server) as stage:
        await until_listed(module_platform, "bank__rate")
        yield stage


async def play(stage: Stage, script: Script, **agent: Any) -> Platform:
    """Have the model follow a script for an agent `banker`; nothing has been called before."""
    CALLED.clear()
    platform = await stage.play(script)
    await platform.put_agent("banker", **agent)
    return platform


def rules(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether a request begins with the whole of the one before it."""
    return after["tools"] == before["tools"] and after["messages"][: len(before["messages"])] == before["messages"]


async def test_a_found_tool_is_called_and_no_prompt_is_rewritten(stage: Stage):
    def script(body: dict[str, Any]) -> Say:
        found = results(body)
        if not found:
            return Say(tools=(("tool_search", {"query": "what is a franc worth?"}),))
        if len(found) == 1:
            return Say(tools=(("use_tool", {"name": "bank__rate", "arguments": {"currency": "CHF"}}),))
        return Say(text=found[-1])

    # With steps to spare: before its last one a job is told so, which is a note of its own.
    platform = await play(stage, script, tools=("*",), max_steps=10)
    await platform.submit("j1", agent="banker", model="chat/m")
    ended = await platform.wait_for("j1")

    assert (ended.answer, CALLED) == ("1 CHF is 1.10 USD", ["CHF"])
    bodies = [body for _, body in stage.chat.calls]
    assert all(rules(before, after) for before, after in pairwise(bodies))
    assert {"tool_search", "use_tool", "get_current_time"} <= set(offered(bodies[0]))
    assert not [name for name in offered(bodies[0]) if name.startswith("bank__")]
    assert "There are tools of bank, effects." in next(
        tool["function"]["description"] for tool in bodies[0]["tools"] if tool["function"]["name"] == "tool_search"
    )
    assert results(bodies[1])[0].startswith("bank__rate (call it through use_tool): Tell what a currency is worth")
    events = await platform.events("j1")
    asked = [event for event in events if isinstance(event, e.ModelRequested)]
    assert [event.cache_break for event in asked] == [None, None, None]
    (discovered,) = [event for event in events if isinstance(event, e.ToolsDiscovered)]
    assert (discovered.tools[0].name, discovered.call) == ("bank__rate", "1/1")
    assert not [event for event in events if isinstance(event, e.ContextInjected)]
    spared = [event.deferred_tokens for event in asked]
    assert spared[0] > spared[1] == spared[2] > 500
    assert ended.costs is not None and ended.costs.tool_tokens_saved == sum(spared)


async def test_the_next_job_of_a_session_knows_the_found_tools(stage: Stage):
    def script(body: dict[str, Any]) -> Say:
        last = body["messages"][-1]
        if last["role"] == "tool":
            return Say(text=last["content"])
        if "euro" in str(last["content"]):
            return Say(tools=(("use_tool", {"name": "bank__rate", "arguments": {"currency": "EUR"}}),))
        return Say(tools=(("tool_search", {"query": "what is a franc worth?"}),))

    platform = await play(stage, script, tools=("*",))
    for job_id, words in (("j1", "find it"), ("j2", "and the euro?")):
        body = {"agent": "banker", "input": words, "job_id": job_id, "session_id": "s"}
        await platform.publish({**body, "options": {"model": "chat/m"}})
        ended = await platform.wait_for(job_id)

    assert ended.answer == "1 EUR is 1.10 USD"
    bodies = [body for _, body in stage.chat.calls]
    assert all(rules(before, after) for before, after in pairwise(bodies))
    (continued,) = [event for event in await platform.events("j2") if isinstance(event, e.SessionContinued)]
    assert "bank__rate" in continued.context.tools_discovered
    # A prompt with the tools of the job before is spared as much.
    first, second = [await platform.events(job_id) for job_id in ("j1", "j2")]
    spared = [[one.deferred_tokens for one in told if isinstance(one, e.ModelRequested)] for told in (first, second)]
    assert spared[1] == [spared[0][-1]] * 2


async def test_a_tool_that_was_not_loaded_is_not_called_but_loaded(stage: Stage):
    def script(body: dict[str, Any]) -> Say:
        found = results(body)
        if not found:
            # Beside each other: what the first one finds does not make the second one's call a known one.
            search, direct = ("tool_search", {"query": "worth of a franc"}), ("bank__rate", {"currency": "CHF"})
            return Say(tools=(search, direct, ("bank__nothing", {})))
        if len(found) == 3:
            return Say(tools=(("bank__rate_history", {"currency": "CHF"}),))
        return Say(text="\n".join(found))

    platform = await play(stage, script, tools=("*",), ask_tools={"bank__rate": "always"})
    await platform.submit("j1", agent="banker", model="chat/m")
    ended = await platform.wait_for("j1")

    assert (ended.status, CALLED) == ("completed", [])
    done = {(one.step, one.call): one for one in await platform.events("j1") if isinstance(one, e.ToolCompleted)}
    direct, unknown, history = done[1, "2"].error, done[1, "3"].error, done[2, "1"]
    assert direct is not None and direct.code == "refused"
    assert direct.message.startswith("bank__rate was not called, because it had not been loaded. It is now; call it")
    assert '"currency"' in direct.message
    assert unknown is not None and unknown.code == "unknown_tool" and "tool_search finds tools" in unknown.message
    # It was found in the step before.
    assert history.content == "7 days of CHF"


async def test_a_disabled_tool_that_fits_is_named(stage: Stage):
    def script(body: dict[str, Any]) -> Say:
        found = results(body)
        if not found:
            calls = [("tool_search", {"query": "what was a franc worth on the last days?"})]
            calls += [("tool_search", {"query": "zebra"}), ("tool_search", {"query": " "})]
            return Say(tools=tuple(calls))
        return Say(text="fine")

    platform = await play(stage, script, tools=("*",), tools_off=("bank__rate_history",))
    await platform.submit("j1", agent="banker", model="chat/m")
    await platform.wait_for("j1")

    shown, nothing, empty = results(stage.chat.calls[-1][1])
    assert "bank__rate (call it through use_tool)" in shown
    assert "bank__rate_history fits too, but cannot be called here: it is among the agent's `tools_off`" in shown
    assert "take bank__rate_history out of the `tools_off` of the agent" in shown
    assert nothing.startswith("None of ") and "try other words" in nothing
    assert empty.startswith("tool_search takes `query`")


async def test_always_and_deferred_decide_what_is_in_the_prompt(stage: Stage):
    loading = {"always": ["bank__rate*"], "deferred": ["bank__*", "bank__rate_history"]}
    platform = await play(stage, lambda body: Say(text="hello"), tools=loading)
    await platform.submit("j1", agent="banker", model="chat/m")
    await platform.wait_for("j1")

    assert offered(stage.chat.calls[0][1]) == ["bank__rate", "recall_details", "tool_search", "use_tool"]


def finds_and_calls(asked: Any) -> Reply:
    """Search for a tool, and call it by its name, as a model that was told of it as a tool."""
    found = sum(turn.role == "tool" for turn in asked.turns)
    if found == 0:
        return Reply(tools=(("tool_search", {"query": "what is a franc worth?"}),), thinking="I need a rate.")
    if found == 1:
        assert "bank__rate" in {tool.name for tool in asked.tools}
        return Reply(tools=(("bank__rate", {"currency": "CHF"}),), thinking="There it is.")
    return Reply(text="done")


async def find_and_call(platform: Platform, model: str) -> Simulator:
    """Let a job search for a tool and call it, and return the provider that it asked."""
    async with bank() as server:
        simulator = await platform.simulate(finds_and_calls)
        at: dict[str, Any] = {"anthropic_base_url": simulator.url, "openai_base_url": simulator.openai_url}
        await platform.start(
            "router",
            "executor",
            "tool_registry",
            router=RouterSettings(**at),
            executor=ExecutorSettings(**at),
            tool_registry=with_tools(server),
        )
        await until_listed(platform, "bank__rate")
        await platform.put_agent("banker", tools=("*",), tools_off=("bank__rate_history",), instructions="Bank. " * 900)
        await platform.submit("j1", agent="banker", model=model)
        ended = await platform.wait_for("j1")

    assert (ended.status, ended.answer, CALLED) == ("completed", "done", ["CHF"])
    return simulator


@pytest.mark.asyncio(loop_scope="function")
async def test_claude_is_sent_references_and_calls_found_tools_directly(platform: Platform):
    simulator = await find_and_call(platform, "anthropic/claude-sonnet-5-5")

    bodies = [asked.body for asked in simulator.requests]
    deferred = [[tool["name"] for tool in body["tools"] if tool.get("defer_loading")] for body in bodies]
    assert deferred == [[], ["bank__rate"], ["bank__rate"]]
    asked = [event for event in await platform.events("j1") if isinstance(event, e.ModelRequested)]
    assert [event.cache_break for event in asked] == [None, None, None]
    for before, after in pairwise(simulator.bill.charges):
        assert after.usage.cache_read >= before.usage.cache_read + before.usage.cache_write_5m > 0


@pytest.mark.asyncio(loop_scope="function")
async def test_gpt_is_given_found_functions_and_calls_them_directly(platform: Platform):
    simulator = await find_and_call(platform, "openai/gpt-6-sol")

    bodies = [asked.body for asked in simulator.requests]
    assert all(body["tools"] == bodies[0]["tools"] for body in bodies)
    assert "bank__rate" not in {tool.get("name") for tool in bodies[0]["tools"]}
    [search] = [item for item in bodies[2]["input"] if item.get("type") == "tool_search_call"]
    [output] = [item for item in bodies[2]["input"] if item.get("type") == "tool_search_output"]
    assert (search["call_id"], [tool["name"] for tool in output["tools"]]) == (output["call_id"], ["bank__rate"])
    assert "bank__rate_history fits too, but" in bodies[1]["input"][-1]["content"][0]["text"]
    asked = [event for event in await platform.events("j1") if isinstance(event, e.ModelRequested)]
    assert [event.cache_break for event in asked] == [None, None, None]
    for before, after in pairwise(simulator.bill.charges):
        assert after.usage.cache_read >= before.usage.cache_read + before.usage.cache_write_5m > 0
