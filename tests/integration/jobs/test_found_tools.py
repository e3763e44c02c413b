"""Definitions that a search has found: they are paid for, and stay in the prompt as they were first sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from decimal import Decimal
from inspect import Parameter, Signature
from itertools import pairwise
from typing import Any

import pytest
import pytest_asyncio
from mcp.server import MCPServer
from pydantic import Field

from wayline.contracts import events as e
from wayline.contracts.jobs import JobView
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator import Asked, Say, Simulator
from wayline.simulator.chat_server import ChatServer
from wayline.simulator.chat_server import Say as ChatSay
from wayline.testkit import Platform
from wayline.testkit.mcp_servers import serving

from .conftest import chatting, until_listed, with_tools
from .ended_jobs import differences

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

FIELDS = 400
CAP_USD = Decimal("0.05")
both_wires = pytest.mark.parametrize("model", ["anthropic/claude-sonnet-5-5", "openai/gpt-6-sol"])


def rate(currency: str) -> str:
    """Tell what a currency is worth in dollars."""
    return f"1 {currency} is 1.10 USD"


def declaration(**fields: str) -> str:
    """Declare a shipment of goods at the customs."""
    return f"declared with {len(fields)} fields"


def described(name: str, count: int) -> Parameter:
    about = Field(default="", description=f"Box {count}: " + "what the handbook of the customs says of it. " * 4)
    return Parameter(name, Parameter.KEYWORD_ONLY, default=about, annotation=str)


declaration.__signature__ = Signature([described(f"box_{n:03}", n) for n in range(FIELDS)])  # type: ignore[attr-defined]


def form(number: int) -> Callable[..., str]:
    def tool(amount: int) -> str:
        return str(amount)

    tool.__name__, tool.__doc__ = f"form_{number:02}", f"Fill in form {number} of the branch."
    return tool


def bank() -> MCPServer:
    server = MCPServer("bank")
    for tool in (rate, declaration, *map(form, range(4))):
        server.add_tool(tool)
    return server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def simulator(module_platform: Platform) -> AsyncIterator[Simulator]:
    """The providers of services that have the bank's tools."""
    simulator = await module_platform.simulate(declares)
    at: dict[str, Any] = {"anthropic_base_url": simulator.url, "openai_base_url": simulator.openai_url}
    async with serving(bank()) as url:
        server = {"name": "bank", "url": url, "effects": {"rate": "read", "declaration": "read"}}
        await module_platform.start(
            "router",
            "executor",
            "tool_registry",
            router=RouterSettings(**at),
            executor=ExecutorSettings(**at),
            tool_registry=with_tools(server),
        )
        await until_listed(module_platform, "bank__rate")
        yield simulator
        assert await differences(module_platform.bus) == []


async def turn(platform: Platform, job_id: str, words: str, **options: Any) -> JobView:
    """Run a job of the session `s` to its end."""
    body = {"agent": "banker", "input": words, "job_id": job_id, "session_id": "s", "options": options}
    await platform.publish(body)
    return await platform.wait_for(job_id)


def declares(asked: Asked) -> Say:
    """Search for the tool with the huge definition, call it, and end."""
    found = sum(turn.role == "tool" for turn in asked.turns)
    if found == 0:
        return Say(tools=(("tool_search", {"query": "declare a shipment at the customs", "max_results": 1}),))
    return Say(tools=(("bank__declaration", {"box_001": "tea"}),)) if found == 1 else Say(text="declared")


@both_wires
async def test_a_huge_found_definition_stays_within_the_jobs_cap(
    module_platform: Platform, simulator: Simulator, model: str
):
    simulator.play(declares)
    platform = await module_platform.new_tenant()
    await platform.put_agent("banker", tools={"deferred": ["bank__*"]})
    await platform.submit("poor", agent="banker", model=model, budget_usd=str(CAP_USD))
    await platform.wait_for("poor")
    poor_usd, calls = simulator.bill.usd, len(simulator.bill.charges)
    await platform.submit("rich", agent="banker", model=model, budget_usd="5")
    rich = await platform.wait_for("rich")

    assert 0 < poor_usd <= CAP_USD
    assert rich.answer == "declared"
    assert "bank__declaration" in {tool.name for tool in simulator.requests[-1].tools}
    held = [event.worst_usd for event in await platform.events_of("rich", e.ModelRequested)]
    billed = [charge.usd for charge in simulator.bill.charges[calls:]]
    assert len(held) == 3 and max(billed) > Decimal("0.02")
    assert all(worst is not None and paid <= worst for paid, worst in zip(billed, held, strict=True))


def rates(asked: Asked) -> Say:
    """Search in the first job, and call what was found in both jobs, the second time by its name alone."""
    found = sum(turn.role == "tool" for turn in asked.turns)
    if found == 0:
        return Say(tools=(("tool_search", {"query": "what is a franc worth?", "max_results": 1}),))
    if found == 1 or (found == 2 and "euro" in str(asked.turns[-1].text)):
        return Say(tools=(("bank__rate", {"currency": "EUR" if found == 2 else "CHF"}),))
    return Say(text="done")


def parts(body: dict[str, Any]) -> list[Any]:
    """Return what a request says after its system prompt, in order and without markers of the cache."""
    said = body["messages"] if "messages" in body else body["input"][1:]
    return [_unmarked(part) for part in said]


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        marks = ("cache_control", "prompt_cache_breakpoint")
        return {name: _unmarked(one) for name, one in value.items() if name not in marks}
    return [_unmarked(one) for one in value] if isinstance(value, list) else value


@both_wires
async def test_found_tools_stay_as_sent_when_the_agent_changes(
    module_platform: Platform, simulator: Simulator, model: str
):
    simulator.play(rates)
    platform = await module_platform.new_tenant()
    for job_id, words, instructions in (("j1", "a franc?", "Help."), ("j2", "and the euro?", "Help politely.")):
        await platform.put_agent("banker", tools={"deferred": ["bank__*"]}, instructions=instructions)
        ended = await turn(platform, job_id, words, model=model)
        assert ended.answer == "done"

    bodies = [asked.body for asked in simulator.requests]
    assert len(bodies) == 5
    for before, after in pairwise(map(parts, bodies)):
        assert after[: len(before)] == before
    assert [turn.text for turn in simulator.requests[-1].turns if turn.role == "tool"][-1] == "1 EUR is 1.10 USD"
    breaks = [event.cache_break for event in await platform.events_of("j2", e.ModelRequested)]
    assert breaks == ["agent_changed", None]


@pytest.mark.asyncio(loop_scope="function")
async def test_a_required_tool_of_a_later_turn_is_announced(platform: Platform):
    def script(body: dict[str, Any]) -> ChatSay:
        last = body["messages"][-1]
        if "TOOL GUIDANCE" in str(last["content"]):
            return ChatSay(tools=(("use_tool", {"name": "bank__form_03", "arguments": {"amount": 7}}),))
        return ChatSay(text="done")

    async with serving(bank()) as url, ChatServer(script) as chat:
        server = {"name": "bank", "url": url, "effects": {"form_03": "read"}}
        await platform.start(
            "router", "executor", "tool_registry", executor=chatting(chat), tool_registry=with_tools(server)
        )
        await until_listed(platform, "bank__form_03")
        await platform.put_agent("banker", tools={"deferred": ["bank__*"]})
        await turn(platform, "j1", "hello", model="chat/m")
        ended = await turn(platform, "j2", "fill it in", model="chat/m", required_tools=["bank__form_03"])

    assert (ended.status, ended.answer) == ("completed", "done")
    first, second, third = [body for _, body in chat.calls]
    assert "bank__form_03 (new, call it through use_tool): Fill in form 3" in second["messages"][-1]["content"]
    assert second["tools"] == first["tools"]
    assert third["messages"][: len(second["messages"])] == second["messages"]
    labels = [event.note.label for event in await platform.events_of("j2", e.ContextInjected)]
    assert labels == ["TOOL GUIDANCE"]
