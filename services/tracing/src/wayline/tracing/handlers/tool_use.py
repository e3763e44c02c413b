"""Which recorded calls and parked jobs use some tools."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from datetime import datetime, timedelta
from typing import Any

import orjson

from wayline.contracts.tool_use import (
    SHOWN_MAX,
    VERSIONS_MAX,
    AgentsToolUse,
    AgentToolUse,
    AgentVersion,
    AllToolFigures,
    FindParkedJobs,
    GetAgentsToolUse,
    GetAllToolFigures,
    GetToolFigures,
    GetToolUse,
    ListRecordedCalls,
    NamedToolFigures,
    ParkedJob,
    ParkedJobs,
    RecordedCall,
    RecordedCalls,
    ToolCallCount,
    ToolFigures,
    ToolUse,
    UsedTool,
)
from wayline.contracts.tools import RECALL, RUN_AGENT, RUN_CODE, TOOL_SEARCH, USE_TOOL
from wayline.store import Record, Store
from wayline.tracing.errors import BadCursor

PAGE_CALLS_MAX = 500
PAGE_BYTES_MAX = 128 * 1024
"""Of the arguments of one page: an answer has to fit into one message of the bus."""

STEPS_MAX = 50_000
"""That are looked at for the calls of tools: the newest."""
TOOLS_SHOWN_MAX = 2_000
"""Of one answer: the most called ones."""
JOBS_MAX = 1_000
"""Of an agent: the newest ones say what it needs now."""
JOBS_MIN = 10
"""What fewer jobs have in common proposes nothing."""
OFTEN = 0.5
OWN = frozenset({RECALL, RUN_AGENT, RUN_CODE, TOOL_SEARCH, USE_TOOL})
"""Tools of the executor, which are there wherever they are needed."""

Place = tuple[datetime, str, int, int]
"""When a call's step began, its job, its step, and its number in the step."""


class ToolUseAnswers:
    """Reads for one tenant at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get_tool_use(self, asked: GetToolUse) -> ToolUse:
        """Count the recorded calls of tools, and name the agents of parked jobs."""
        sql, tenant = self._store.sql, asked.tenant
        async with self._store.tenant(tenant) as conn:
            counts = await conn.fetch(sql.tool_call_counts, tenant, list(asked.tools), asked.since)
            parked = await conn.fetch(sql.parked_agents, tenant, VERSIONS_MAX)
        total = next((row for row in counts if row["tool"] is None), None)
        return ToolUse(
            counts=tuple(ToolCallCount(tool=row["tool"], calls=row["calls"]) for row in counts if row["tool"]),
            jobs=0 if total is None else total["jobs"],
            parked=tuple(AgentVersion(name=row["agent"], version=row["agent_version"]) for row in parked),
        )

    async def get_tool_figures(self, asked: GetToolFigures) -> ToolFigures:
        """Count how the calls of a tool ended, and how long they took."""
        sql, tenant = self._store.sql.tool_figures, asked.tenant
        rows = await self._store.fetch(tenant, sql, tenant, asked.tool, asked.since, STEPS_MAX)
        together = next(row for row in rows if row["status"] is None)
        return ToolFigures(
            calls=together["calls"],
            jobs=together["jobs"],
            failed={row["error"] or "unknown": row["calls"] for row in rows if row["status"] == "failed"},
            p50_ms=together["p50_ms"],
            p95_ms=together["p95_ms"],
        )

    async def get_all_tool_figures(self, asked: GetAllToolFigures) -> AllToolFigures:
        """Count the calls of every tool, those that failed, and how long they took."""
        sql, tenant = self._store.sql.figures_of_tools, asked.tenant
        rows = await self._store.fetch(tenant, sql, tenant, asked.since, STEPS_MAX, TOOLS_SHOWN_MAX)
        return AllToolFigures(tools=tuple(NamedToolFigures(**dict(row)) for row in rows))

    async def get_agents_tool_use(self, asked: GetAgentsToolUse) -> AgentsToolUse:
        """Return which tools the newest jobs of agents called, and which of them most of these jobs called."""
        rows = await self._store.fetch(
            asked.tenant, self._store.sql.tools_of_agents, asked.tenant, asked.agent, asked.since, JOBS_MAX
        )
        jobs = {row["agent"]: row["jobs"] for row in rows if row["tool"] is None}
        used: dict[str, list[UsedTool]] = {agent: [] for agent in jobs}
        for row in rows:
            if row["tool"] is not None and row["tool"] not in OWN:
                used[row["agent"]].append(UsedTool(tool=row["tool"], jobs=row["jobs"]))
        return AgentsToolUse(
            agents=tuple(
                AgentToolUse(agent=agent, jobs=jobs[agent], tools=tuple(tools), always=_often(tools, jobs[agent]))
                for agent, tools in used.items()
            )
        )

    async def find_parked_jobs(self, asked: FindParkedJobs) -> ParkedJobs:
        """Return parked jobs that wait because of a call of one of the tools, or belong to one of the agents."""
        names = [agent.name for agent in asked.agents]
        versions = [agent.version for agent in asked.agents]
        rows = await self._store.fetch(
            asked.tenant, self._store.sql.parked_jobs, asked.tenant, list(asked.tools), names, versions, SHOWN_MAX
        )
        jobs = tuple(ParkedJob(**{name: row[name] for name in ParkedJob.model_fields}) for row in rows)
        return ParkedJobs(total=rows[0]["total"] if rows else 0, jobs=jobs)

    async def list_recorded_calls(self, asked: ListRecordedCalls) -> RecordedCalls:
        """Return a page of recorded calls, newest first."""
        after = read_place(asked.cursor) if asked.cursor else (None, None, None, None)
        rows = await self._store.fetch(
            asked.tenant,
            self._store.sql.recorded_calls,
            asked.tenant,
            list(asked.tools),
            asked.since,
            *after,
            PAGE_CALLS_MAX,
            PAGE_BYTES_MAX,
        )
        last = rows[-1] if rows else None
        return RecordedCalls(
            calls=tuple(_recorded(row) for row in rows),
            next_cursor=_place(last) if last is not None and last["more"] else None,
        )


def _often(tools: list[UsedTool], jobs: int) -> tuple[str, ...]:
    return tuple(one.tool for one in tools if jobs >= JOBS_MIN and one.jobs > OFTEN * jobs)


def _recorded(row: Record) -> RecordedCall:
    given: Any = orjson.loads(row["arguments"])
    return RecordedCall(
        job_id=row["job_id"],
        step=row["step"],
        call=row["call"],
        tool=row["tool"],
        # Arguments that are too long are kept as cut text.
        arguments=given if isinstance(given, dict) else None,
        error=row["error"],
    )


def _place(row: Record) -> str:
    place = [row["started_at"].isoformat(), row["job_id"], row["step"], row["number"]]
    return urlsafe_b64encode(orjson.dumps(place)).decode()


def read_place(cursor: str) -> Place:
    try:
        at, job_id, step, number = orjson.loads(urlsafe_b64decode(cursor.encode()))
        place = datetime.fromisoformat(at), str(job_id), int(step), int(number)
    except (ValueError, TypeError, OverflowError, NotBase64):
        raise BadCursor(cursor) from None
    if place[0].utcoffset() != timedelta(0) or "\x00" in place[1] or not all(0 <= n < 2**31 for n in place[2:]):
        raise BadCursor(cursor)
    return place
