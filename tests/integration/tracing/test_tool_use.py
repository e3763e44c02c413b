"""Recorded calls of tools, counted and read page by page, of one tenant."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

import pytest

from wayline.contracts.chat import AssistantMessage, ToolCall
from wayline.contracts.tool_use import (
    AgentsToolUse,
    AllToolFigures,
    GetAgentsToolUse,
    GetAllToolFigures,
    GetToolFigures,
    GetToolUse,
    ListRecordedCalls,
    RecordedCall,
    RecordedCalls,
    ToolCallCount,
    ToolFigures,
    ToolUse,
    UsedTool,
)
from wayline.contracts.tools import RECALL, RUN_AGENT, RUN_CODE, TOOL_SEARCH, ToolError
from wayline.tracing.handlers import tool_use

from .conftest import Log, Start, TracingPlatform

SINCE = datetime.now(UTC) - timedelta(days=30)
CALLS = tuple(str(number) for number in range(7))


async def write(platform: TracingPlatform, job_id: str, *, tenant: str = "acme", days_ago: float = 0) -> None:
    """Write the log of a job that called `search` seven times in one step."""
    log = Log(platform.bus, job_id, tenant)
    log.at -= timedelta(days=days_ago)
    await log.append(log.submitted(), log.routed(), log.claimed(), log.asked_model(1))
    await log.append(log.model_answered(1, calls=CALLS), *(log.asked_tool(1, call) for call in CALLS))
    await log.append(*(log.tool_answered(1, call=call) for call in CALLS))


async def pages(platform: TracingPlatform, tenant: str = "acme") -> list[tuple[RecordedCall, ...]]:
    found, cursor = [], None
    while True:
        ask = ListRecordedCalls(tenant=tenant, tools=("search",), since=SINCE, cursor=cursor)
        page = await platform.bus.ask(ask, RecordedCalls)
        found.append(page.calls)
        cursor = page.next_cursor
        if cursor is None:
            return found


async def test_calls_of_a_month_are_counted_for_one_tenant(platform: TracingPlatform, start: Start):
    await start()
    await write(platform, "j1")
    await write(platform, "j2", days_ago=29)
    await write(platform, "j3", days_ago=31)
    await write(platform, "j1", tenant="other")
    await platform.wait_until_read()

    ask = GetToolUse(tenant="acme", tools=("search", "never"), since=SINCE)
    use = await platform.bus.ask(ask, ToolUse)

    assert (use.counts, use.jobs) == ((ToolCallCount(tool="search", calls=14),), 2)
    assert [{call.job_id for call in page} for page in await pages(platform)] == [{"j1", "j2"}]
    assert [len(page) for page in await pages(platform, "other")] == [7]


async def test_a_failed_call_is_listed_with_its_error(platform: TracingPlatform, start: Start):
    await start()
    log = Log(platform.bus, "j1", "acme")
    await log.append(log.submitted(), log.routed(), log.claimed(), log.asked_model(1))
    await log.append(log.model_answered(1, calls=("1", "2")), *(log.asked_tool(1, call) for call in ("1", "2")))
    await log.append(log.tool_answered(1, call="1"), log.tool_answered(1, call="2", failed=True))
    await platform.wait_until_read()

    [page] = await pages(platform)

    assert {call.call: call.error for call in page} == {"1": None, "2": "tool_failed"}


async def test_a_tools_calls_are_counted_by_their_ends(platform: TracingPlatform, start: Start):
    await start()
    await write(platform, "j1")
    await write(platform, "old", days_ago=31)
    await write(platform, "j1", tenant="other")
    log = Log(platform.bus, "j2", "acme")
    await log.append(log.submitted(), log.routed(), log.claimed(), log.asked_model(1))
    await log.append(log.model_answered(1, calls=("1", "2")), *(log.asked_tool(1, call) for call in ("1", "2")))
    await log.append(log.tool_answered(1, call="1"), log.tool_answered(1, call="2", failed=True))
    await platform.wait_until_read()

    figures = await platform.bus.ask(GetToolFigures(tenant="acme", tool="search", since=SINCE), ToolFigures)
    never = await platform.bus.ask(GetToolFigures(tenant="acme", tool="never", since=SINCE), ToolFigures)

    assert (figures.calls, figures.jobs, figures.failed) == (9, 2, {"tool_failed": 1})
    assert figures.p50_ms is not None and figures.p95_ms is not None and figures.p50_ms <= figures.p95_ms
    assert never == ToolFigures()

    everything = await platform.bus.ask(GetAllToolFigures(tenant="acme", since=SINCE), AllToolFigures)
    [one] = everything.tools
    assert (one.tool, one.calls, one.failed) == ("search", figures.calls, 1)
    assert (one.p50_ms, one.p95_ms) == (figures.p50_ms, figures.p95_ms)


@pytest.mark.parametrize(("calls", "size"), [(4, 10_000), (500, 30)], ids=["by number", "by bytes"])
async def test_pages_hold_every_call_once(
    platform: TracingPlatform, start: Start, monkeypatch: pytest.MonkeyPatch, calls: int, size: int
):
    monkeypatch.setattr(tool_use, "PAGE_CALLS_MAX", calls)
    monkeypatch.setattr(tool_use, "PAGE_BYTES_MAX", size)
    await start()
    for job_id in ("j1", "j2"):
        await write(platform, job_id)
    await platform.wait_until_read()

    found = await pages(platform)

    assert len(found) > 2
    assert sorted((call.job_id, call.call, call.arguments["q"]) for page in found for call in page) == [
        (job_id, call, call) for job_id in ("j1", "j2") for call in CALLS
    ]


async def end_job(platform: TracingPlatform, job_id: str, tools: Collection[str], *, unknown: str = "") -> None:
    """Write the log of a job that called tools in one step; of those one may be unknown."""
    log = Log(platform.bus, job_id, "acme")
    begun = (log.submitted(), log.routed(), log.claimed(), log.asked_model(1))
    message = AssistantMessage(tool_calls=tuple(ToolCall(call=name, tool=name) for name in tools))
    answered = log.model_answered(1).model_copy(update={"message": message})
    no_tool = ToolError(code="unknown_tool", message="there is no such tool here")
    ended = [
        log.tool_answered(1, call=name, failed=name == unknown).model_copy(
            update={"tool": name, "error": no_tool if name == unknown else None}
        )
        for name in tools
    ]
    await log.append(*begun, answered, *ended, log.completed(steps=1))


async def test_tools_of_more_than_half_of_ten_jobs_are_proposed(platform: TracingPlatform, start: Start):
    await start()
    for number in range(10):
        await end_job(platform, f"j{number}", ["search"] * (number < 6) + ["rate"] * (number < 5))
    await write(platform, "open")
    await write(platform, "j1", tenant="other")
    await platform.wait_until_read()

    used = await platform.bus.ask(GetAgentsToolUse(tenant="acme", since=SINCE), AgentsToolUse)
    [mine] = used.agents
    nobodys = await platform.bus.ask(GetAgentsToolUse(tenant="acme", agent="gone", since=SINCE), AgentsToolUse)
    theirs = await platform.bus.ask(GetAgentsToolUse(tenant="other", since=SINCE), AgentsToolUse)

    called = (UsedTool(tool="search", jobs=6), UsedTool(tool="rate", jobs=5))
    assert (mine.jobs, mine.tools, mine.always) == (10, called, ("search",))
    assert (nobodys.agents, theirs.agents) == ((), ())


async def test_fewer_than_ten_jobs_propose_nothing(platform: TracingPlatform, start: Start):
    await start()
    for number in range(9):
        await end_job(platform, f"j{number}", ["search"])
    await platform.wait_until_read()

    used = await platform.bus.ask(GetAgentsToolUse(tenant="acme", since=SINCE), AgentsToolUse)

    assert [(one.jobs, one.always) for one in used.agents] == [(9, ())]


async def test_unknown_tools_and_the_executors_own_do_not_count(platform: TracingPlatform, start: Start):
    await start()
    own = [RECALL, RUN_AGENT, RUN_CODE, TOOL_SEARCH]
    for number in range(10):
        await end_job(platform, f"j{number}", ["search", "no_such_tool", *own], unknown="no_such_tool")
    await platform.wait_until_read()

    used = await platform.bus.ask(GetAgentsToolUse(tenant="acme", since=SINCE), AgentsToolUse)

    assert [one.tools for one in used.agents] == [(UsedTool(tool="search", jobs=10),)]
