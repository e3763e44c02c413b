"""How many jobs meet what is asked for, by status, agent and model.

Without words they are counted from an index alone. With words the row of each is read. Words that stand in many of the
newest jobs are counted among those alone, whatever is stored besides: their entries of the index would be read whole.
Of others the newest are counted in spans of time: as long as is likely to hold what is still missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from wayline.contracts.traces import JobCounts, ListJobs
from wayline.store import Connection, Record
from wayline.tracing.views.job_conditions import Statement, conditions_of, scope_of
from wayline.tracing.views.job_search import NEAR, NEWEST

COUNTED_MAX = 20_000
"""Jobs that are counted, the newest ones."""
COUNTED_BY_WORDS_MAX = 2_000
READ_MAX = 10_000
"""The newest jobs among which words that stand in many of them are counted."""
MANY_OF_NEAR = 40
"""So many of the first jobs have words that stand in many."""
GROWTH_MAX = 64
"""How many times as long as all before it a span may be: how often words stand in older jobs is not known."""
SPAN_MIN = timedelta(seconds=1)
MARGIN = 1.1
COLUMNS = "status, agent, provider, model, created_at, job_id"

Place = tuple[datetime, str]
Kind = tuple[str, str, str | None]
"""Status, agent and model."""


def counts_statement(asked: ListJobs) -> Statement:
    """Return the statement that counts the newest jobs, where no index of words is needed."""
    where = conditions_of(asked)
    most = COUNTED_BY_WORDS_MAX if where.arms else COUNTED_MAX
    return where.statement(_counting(f"SELECT {COLUMNS} FROM jobs WHERE {where.whole}", most))


def near_counts_statement(asked: ListJobs, before: Place | None = None, *, read: int, most: int) -> Statement:
    """Return the statement that counts those with the words among so many jobs, the newest ones or those after one."""
    where = conditions_of(asked)
    if before is not None:
        where.add_scope(*_after(before))
    newest = f"(SELECT * FROM jobs WHERE {where.scoped} {NEWEST} LIMIT {read}) AS jobs"
    return where.statement(_counting(f"SELECT {COLUMNS} FROM {newest} WHERE {where.whole}", most))


def span_counts_statement(asked: ListJobs, before: Place, since: datetime | None, *, most: int) -> Statement:
    """Return the statement that counts those with the words that come after one job and are no older than that."""
    where = conditions_of(asked)
    where.add_scope(*_after(before))
    if since is not None:
        where.add_scope("created_at >= {}::timestamptz", since)
    return where.statement(_counting(where.from_arms(COLUMNS), most))


def ends_statement(asked: ListJobs) -> Statement:
    """Return the statement that names the last of the newest jobs, with the times of the newest and the oldest.

    `last_read`: the time of the last one among which words that stand in many are counted; NULL where there are fewer.
    """
    where = scope_of(asked)
    jobs = f"FROM jobs WHERE {where.scoped}"
    ends = f"(SELECT max(created_at) {jobs}) AS newest, (SELECT min(created_at) {jobs}) AS oldest"
    ends += f", (SELECT created_at {jobs} {NEWEST} OFFSET {READ_MAX} - 1 LIMIT 1) AS last_read"
    return where.statement(f"SELECT created_at, job_id, {ends} {jobs} {NEWEST} OFFSET {NEAR - 1} LIMIT 1")


async def count_jobs(conn: Connection, asked: ListJobs) -> JobCounts:
    """Count the jobs that meet what is asked for, of more than are counted the newest."""
    where = conditions_of(asked)
    if not where.arms or where.are_few:
        most = COUNTED_BY_WORDS_MAX if where.arms else COUNTED_MAX
        return _job_counts(await _kinds(conn, counts_statement(asked)), counted_max=most)
    most = COUNTED_BY_WORDS_MAX
    found = await _kinds(conn, near_counts_statement(asked, read=NEAR, most=most))
    ends_of = ends_statement(asked)
    ends = await conn.fetchrow(ends_of.sql, *ends_of.arguments)
    if ends is None or found.total() >= most:
        return _job_counts(found, counted_max=most)
    before, missing = (ends["created_at"], ends["job_id"]), most - found.total()
    if found.total() >= MANY_OF_NEAR:
        found += await _kinds(conn, near_counts_statement(asked, before, read=READ_MAX - NEAR, most=missing))
        return _job_counts(found, counted_max=most, since=ends["last_read"] if found.total() < most else None)
    found += await _count_spans(conn, asked, before, ends=ends, few=found.total())
    return _job_counts(found, counted_max=most)


async def _count_spans(conn: Connection, asked: ListJobs, before: Place, *, ends: Record, few: int) -> Counter[Kind]:
    """Count what comes after one of the newest jobs, in spans of time; `few` were found before."""
    found, place = Counter[Kind](), before
    while (missing := COUNTED_BY_WORDS_MAX - few - found.total()) > 0:
        # As if jobs had come as often, and with the words as often, as the newer ones.
        growth = min(missing / max(few + found.total(), 1) * MARGIN, GROWTH_MAX)
        since = place[0] - max(ends["newest"] - place[0], SPAN_MIN) * growth
        until = None if since <= ends["oldest"] else since
        found += await _kinds(conn, span_counts_statement(asked, place, until, most=missing))
        if until is None:
            break
        place = (until, "")
    return found


def counts_of(rows: Sequence[Record]) -> JobCounts:
    """Count jobs that were read: all that meet what is asked for."""
    return _job_counts(Counter(map(_kind, rows)), counted_max=COUNTED_MAX)


def _kind(row: Record) -> Kind:
    parts = row["provider"], row["model"]
    return row["status"], row["agent"], None if None in parts else "/".join(parts)


def _counting(found: str, most: int) -> str:
    return f"""
SELECT status, agent, provider || '/' || model AS model, count(*) AS jobs
FROM ({found} {NEWEST} LIMIT {most}) AS found
GROUP BY 1, 2, 3"""


async def _kinds(conn: Connection, statement: Statement) -> Counter[Kind]:
    rows = await conn.fetch(statement.sql, *statement.arguments)
    return Counter({(row["status"], row["agent"], row["model"]): row["jobs"] for row in rows})


def _after(place: Place) -> tuple[Any, ...]:
    return "(created_at, job_id) < ({}::timestamptz, {}::text)", *place


def _job_counts(kinds: Counter[Kind], *, counted_max: int, since: datetime | None = None) -> JobCounts:
    status, agent, model = Counter[str](), Counter[str](), Counter[str]()
    for (of_status, of_agent, of_model), jobs in kinds.items():
        status[of_status] += jobs
        agent[of_agent] += jobs
        if of_model is not None:
            model[of_model] += jobs
    return JobCounts(
        jobs=kinds.total(),
        counted_max=counted_max,
        counted_since=since,
        status=dict(status.most_common()),
        agent=dict(agent.most_common()),
        model=dict(model.most_common()),
    )
