"""Recorded calls of tools, counted and read page by page, of one tenant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from wayline.contracts.tool_use import (
    AgentsToolUse,
    GetAgentsToolUse,
    GetToolUse,
    ListRecordedCalls,
    RecordedCall,
    RecordedCalls,
    ToolCallCount,
    ToolUse,
    UsedTool,
)
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


async def test_tools_of_most_jobs_of_an_agent_are_proposed(platform: TracingPlatform, start: Start):
    await start()
    for number in range(tool_use.JOBS_MIN):
        log = Log(platform.bus, f"j{number}", "acme")
        calls = ("1",) if number < 6 else ()
        ended = [log.tool_answered(1, call="1")] if calls else []
        await log.append(log.submitted(), log.routed(), log.claimed(), log.asked_model(1))
        await log.append(log.model_answered(1, calls=calls), *ended, log.completed(steps=1))
    await write(platform, "open")
    await write(platform, "j1", tenant="other")
    await platform.wait_until_read()

    used = await platform.bus.ask(GetAgentsToolUse(tenant="acme", since=SINCE), AgentsToolUse)
    [mine] = used.agents
    nobodys = await platform.bus.ask(GetAgentsToolUse(tenant="acme", agent="gone", since=SINCE), AgentsToolUse)
    theirs = await platform.bus.ask(GetAgentsToolUse(tenant="other", since=SINCE), AgentsToolUse)

    assert (mine.jobs, mine.tools, mine.always) == (10, (UsedTool(tool="search", jobs=6),), ("search",))
    assert (nobodys.agents, theirs.agents) == ((), ())
