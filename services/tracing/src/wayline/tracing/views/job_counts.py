"""How many jobs meet what is asked for, by status, agent and model.

Without words they are counted from an index alone. With words the row of each is read, so the newest are counted in
spans of time: as long as is likely to hold what is still missing.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from wayline.contracts.traces import JobCounts, ListJobs
from wayline.store import Connection
from wayline.tracing.views.job_conditions import Statement, conditions_of, scope_of
from wayline.tracing.views.job_search import NEAR, NEWEST

COUNTED_MAX = 20_000
"""Jobs that are counted, the newest ones."""
COUNTED_BY_WORDS_MAX = 5_000
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


def first_counts_statement(asked: ListJobs) -> Statement:
    """Return the statement that counts those of the newest jobs that have the words."""
    where = conditions_of(asked)
    newest = f"(SELECT * FROM jobs WHERE {where.scoped} {NEWEST} LIMIT {NEAR}) AS jobs"
    return where.statement(_counting(f"SELECT {COLUMNS} FROM {newest} WHERE {where.whole}", COUNTED_BY_WORDS_MAX))


def span_counts_statement(asked: ListJobs, before: Place, since: datetime | None, *, most: int) -> Statement:
    """Return the statement that counts those with the words that come after one job and are no older than that."""
    where = conditions_of(asked)
    where.add_scope("(created_at, job_id) < ({}::timestamptz, {}::text)", *before)
    if since is not None:
        where.add_scope("created_at >= {}::timestamptz", since)
    return where.statement(_counting(where.from_arms(COLUMNS), most))


def ends_statement(asked: ListJobs) -> Statement:
    """Return the statement that names the last of the newest jobs, with the times of the newest and the oldest."""
    where = scope_of(asked)
    jobs = f"FROM jobs WHERE {where.scoped}"
    ends = f"(SELECT max(created_at) {jobs}) AS newest, (SELECT min(created_at) {jobs}) AS oldest"
    return where.statement(f"SELECT created_at, job_id, {ends} {jobs} {NEWEST} OFFSET {NEAR - 1} LIMIT 1")


async def count_jobs(conn: Connection, asked: ListJobs) -> JobCounts:
    """Count the jobs that meet what is asked for, of more than are counted the newest."""
    where = conditions_of(asked)
    if not where.arms or where.are_few:
        most = COUNTED_BY_WORDS_MAX if where.arms else COUNTED_MAX
        return _job_counts(await _kinds(conn, counts_statement(asked)), counted_max=most)
    found = await _kinds(conn, first_counts_statement(asked))
    ends_of = ends_statement(asked)
    ends = await conn.fetchrow(ends_of.sql, *ends_of.arguments)
    if ends is None:
        return _job_counts(found, counted_max=COUNTED_BY_WORDS_MAX)
    before: Place | None = (ends["created_at"], ends["job_id"])
    while before is not None and (missing := COUNTED_BY_WORDS_MAX - found.total()) > 0:
        # As if jobs had come as often, and with the words as often, as the newer ones.
        growth = min(missing / max(found.total(), 1) * MARGIN, GROWTH_MAX)
        since = before[0] - max(ends["newest"] - before[0], SPAN_MIN) * growth
        until = None if since <= ends["oldest"] else since
        found += await _kinds(conn, span_counts_statement(asked, before, until, most=missing))
        before = None if until is None else (until, "")
    return _job_counts(found, counted_max=COUNTED_BY_WORDS_MAX)


def _counting(found: str, most: int) -> str:
    return f"""
SELECT status, agent, provider || '/' || model AS model, count(*) AS jobs
FROM ({found} {NEWEST} LIMIT {most}) AS found
GROUP BY 1, 2, 3"""


async def _kinds(conn: Connection, statement: Statement) -> Counter[Kind]:
    rows = await conn.fetch(statement.sql, *statement.arguments)
    return Counter({(row["status"], row["agent"], row["model"]): row["jobs"] for row in rows})


def _job_counts(kinds: Counter[Kind], *, counted_max: int) -> JobCounts:
    status, agent, model = Counter[str](), Counter[str](), Counter[str]()
    for (of_status, of_agent, of_model), jobs in kinds.items():
        status[of_status] += jobs
        agent[of_agent] += jobs
        if of_model is not None:
            model[of_model] += jobs
    return JobCounts(
        jobs=kinds.total(),
        counted_max=counted_max,
        status=dict(status.most_common()),
        agent=dict(agent.most_common()),
        model=dict(model.most_common()),
    )
