"""A long job whose agent asks for a budgeted context never exceeds it, and can recall what was shortened away."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
import pytest_asyncio
from mcp.server import MCPServer

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator import Asked, Fault, Say, Simulator
from wayline.testkit import Platform, until
from wayline.testkit.mcp_servers import serving

from .conftest import http_with_key, with_tools

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

CLAUDE, GPT = "anthropic/claude-sonnet-5-5", "openai/gpt-6.1-terra"
STEPS = 50
THOUGHTS = ("thinking", "redacted_thinking", "reasoning")
"""What providers call the blocks that are bound to the prompt before them."""
RECALLING = 45
BUDGET_TOKENS = 30_000
PAGE = "The tide comes in and goes out again, as it did yesterday. " * 200
AGENT = AgentConfig(
    instructions="Read the book.",
    tools=("book__page",),
    context="budgeted",
    max_steps=STEPS,
    adapt_steps=False,
    max_output_tokens=1_500,
)


@asynccontextmanager
async def book() -> AsyncIterator[str]:
    """An MCP server whose pages are too long to be shown whole; each hides a word in its middle."""
    mcp = MCPServer("book")

    @mcp.tool()
    def page(number: int) -> str:
        """Read a page."""
        return f"Page {number}.\n{PAGE}\nThe secret word is pearl{number}.\n{PAGE}"

    async with serving(mcp) as url:
        yield url


def aside(asked: Asked) -> bool:
    return asked.attempt.rpartition("/")[2].startswith("a")


def reads(asked: Asked) -> Say:
    if aside(asked):
        return Say(text="Pages were read, one at each step.")
    step = int(asked.attempt.split("/")[2])
    if step == STEPS:
        return Say(text="It was pearl5.", thinking="Enough.")
    if step == RECALLING:
        return Say(tools=(("recall_details", {"step": 5, "call": "1", "query": "secret"}),), thinking="What was it?")
    return Say(text=f"Page {step}.", tools=(("book__page", {"number": step}),), thinking=f"On, after {step}.")


def items(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a prompt is made of, in its order: the items of Responses, the blocks of Messages."""
    if "input" in body:
        return body["input"]
    messages = [message["content"] for message in body["messages"]]
    return [block for content in messages if isinstance(content, list) for block in content]


def assert_pairs_are_whole(body: dict[str, Any]) -> None:
    """Check that a prompt holds each call before its one result, and no result of a call that it does not hold."""
    calls: list[str] = []
    results: list[str] = []
    for item in items(body):
        match item["type"]:
            case "tool_use":
                calls.append(item["id"])
            case "function_call":
                calls.append(item["call_id"])
            case "tool_result" | "function_call_output":
                results.append(item.get("tool_use_id") or item["call_id"])
                assert results[-1] in calls
            case _:
                pass
    assert results == calls
    assert len(set(calls)) == len(calls)


def thoughts_of(body: dict[str, Any]) -> list[bytes]:
    """Return the blocks of thinking that a prompt holds, byte for byte."""
    return [orjson.dumps(item, option=orjson.OPT_SORT_KEYS) for item in items(body) if item["type"] in THOUGHTS]


def verbatim_thoughts(events: list[e.Event]) -> list[bytes]:
    """Return the blocks of thinking that the provider sent, as the log holds them."""
    answers = [event.message.verbatim for event in events if isinstance(event, e.ModelCompleted)]
    blocks = [block for verbatim in answers if verbatim is not None for block in verbatim.blocks]
    return [orjson.dumps(block, option=orjson.OPT_SORT_KEYS) for block in blocks if block["type"] in THOUGHTS]


async def read_book(platform: Platform, provider: Simulator, model: str) -> list[e.Event]:
    urls: dict[str, Any] = {"anthropic_base_url": provider.url, "openai_base_url": provider.openai_url}
    router, executor = RouterSettings(**urls), ExecutorSettings(**urls, tool_wait_s=2.0)
    async with book() as url:
        registry = with_tools({"name": "book", "url": url, "effects": {"page": "read"}})
        await platform.start(
            "router", "tool_registry", "executor", router=router, executor=executor, tool_registry=registry
        )
        await platform.put_agent("reader", AGENT)
        await platform.submit("j1", "Read me the book.", agent="reader", model=model, budget_usd="20")
        await platform.wait_for("j1", within=120)
    return await platform.events("j1")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def services(module_platform: Platform) -> Platform:
    """A router and a gateway, for the tests that run no job."""
    await module_platform.start("router", "gateway")
    return module_platform


async def until_routed(platform: Platform, job_id: str) -> list[e.JobRouted]:
    found: list[e.JobRouted] = []

    async def begun() -> bool:
        found[:] = await platform.events_of(job_id, e.JobRouted)
        return bool(found)

    await until(begun, why=f"{job_id} is routed")
    return found


@pytest.mark.parametrize("model", [CLAUDE, GPT])
@pytest.mark.asyncio(loop_scope="function")
async def test_a_budgeted_job_stays_below_its_budget_and_recalls(platform: Platform, model: str):
    async with Simulator(reads) as simulator:
        events = await read_book(platform, simulator, model)

    sent = [asked.body for asked in simulator.requests if not aside(asked)]
    assert len(sent) == STEPS
    for body in sent:
        assert_pairs_are_whole(body)
    received = verbatim_thoughts(events)
    assert len(received) == STEPS
    for step, held in enumerate(map(thoughts_of, sent)):
        # The last ones, whole and in their order: a summary takes those before it away, and never some between.
        assert held == received[step - len(held) : step]
    compacted = [event for event in events if isinstance(event, e.ContextCompacted)]
    assert sum(not thoughts_of(body) for body in sent[1:]) <= len(compacted)
    job = await platform.job("j1")
    assert (job.life.status, job.life.error) == ("completed", None)
    assert [event for event in events if isinstance(event, e.ModelFailed)] == []
    answered = [event for event in events if isinstance(event, e.ModelCompleted)]
    assert len(answered) == STEPS
    assert max(event.usage.input + event.usage.output for event in answered) <= BUDGET_TOKENS
    assert len(compacted) >= 5
    results = {event.step: event for event in events if isinstance(event, e.ToolCompleted)}
    assert results[5].full is not None and "pearl5" not in results[5].content
    assert "pearl5" in results[RECALLING].content


@pytest.mark.asyncio(loop_scope="function")
async def test_a_budget_holds_where_no_summary_can_be_had(platform: Platform):

    async with Simulator(reads) as simulator:
        simulator.faults = lambda asked: Fault(error="spend_cap", status=400) if aside(asked) else Fault()
        events = await read_book(platform, simulator, CLAUDE)

    answered = [event for event in events if isinstance(event, e.ModelCompleted)]
    assert len(answered) == STEPS
    assert max(event.usage.input + event.usage.output for event in answered) <= BUDGET_TOKENS
    notes = [event.note.text for event in events if isinstance(event, e.ContextCompacted)]
    assert notes and "- book__page:" in notes[0]


@pytest.mark.parametrize(
    ("agent", "options"),
    [
        ({}, {"model": "chat/m"}),
        ({"model": "offline/extractive"}, {}),
        ({"routing": {"mode": "locked", "primary": "offline/extractive"}}, {}),
        ({"routing": {"primary": "offline/extractive"}}, {}),
    ],
    ids=["the job names a model", "the agent names a model", "locked", "by rules"],
)
async def test_a_budgeted_jobs_level_is_recorded_whoever_chose_its_model(
    services: Platform, agent: dict[str, Any], options: dict[str, Any]
):
    platform = await services.new_tenant()
    await platform.put_agent("reader", AgentConfig(context="budgeted", **agent))
    await platform.submit("j1", "hello", agent="reader", **options)
    [routed] = await until_routed(platform, "j1")

    assert routed.limits.context_level == "simple"


async def test_an_input_longer_than_its_budget_is_refused(services: Platform):
    http = await http_with_key(await services.new_tenant())
    await http.put("/v1/agents/reader", json={"context": "budgeted"})
    body = {"agent": "reader", "input": "word " * 500}
    plan = (await http.post("/v1/jobs", json={**body, "options": {"dry_run": True}})).json()
    done = (await http.post("/v1/jobs?wait=20", json=body)).json()
    await http.put("/v1/agents/reader", json={"context": "window"})
    routed = (await http.post("/v1/jobs", json={**body, "options": {"dry_run": True}})).json()

    assert (done["status"], done["error"]["code"]) == ("failed", "input_too_long")
    assert "about 625 tokens of text, and its agent's budgeted context takes 500" in done["error"]["message"]
    assert plan["refusal"] == done["error"]
    assert routed["refusal"] is None


async def test_a_budgeted_agent_is_saved_with_a_warning_for_long_instructions(services: Platform):
    http = await http_with_key(await services.new_tenant())
    long = "Answer kindly. " * 200
    saved = [
        (await http.put(f"/v1/agents/a{n}", json=body)).json()
        for n, body in enumerate(
            (
                {"context": "budgeted", "instructions": long},
                {"context": "window", "instructions": long},
                {"context": "budgeted", "instructions": "Answer kindly."},
            )
        )
    ]

    assert [len(agent["warnings"]) for agent in saved] == [1, 0, 0]
    assert "a budgeted context plans 500 for it" in saved[0]["warnings"][0]
