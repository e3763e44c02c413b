"""The statements that find jobs: one condition for each thing that is asked for, and no other.

A statement with a condition for everything, each of them void where it is null, gets one plan for all questions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from wayline.contracts.feedback import GOOD_FROM
from wayline.contracts.traces import ListJobs
from wayline.tracing.job_words import CITED, ID, LABEL, TAG, TENANT, TOOL, words_of
from wayline.tracing.rows import moment

COUNTED_MAX = 20_000
"""Jobs that are counted by what they are of, the newest ones."""
NEAR = 2_000
"""The newest jobs, among which words are looked for first."""
Place = tuple[Decimal | None, datetime, str]
"""Where a page ended: what it is in order of, the time and the id of its last job."""
FOUND = """
    tenant, job_id, trace_id, status, agent, agent_version, session_id, user_id, provider, model, tier, route_reason,
    estimated_cost_usd, steps, usage, cost_usd, costs, left(answer, {shown}) AS answer, partial, reason, citations,
    error_code, error_message, waiting_for, created_at, ended_at, input, fingerprint, schedule, beyond, tags, feedback,
    {place} AS place"""
PLACES = {
    "newest": None,
    "dearest": "coalesce(cost_usd, -1)",
    "slowest": "extract(epoch FROM ended_at - created_at)",
}
"""What jobs are in order of, the largest first, before they are in order of their time."""
JUDGED = {
    "up": f"feedback IS NOT NULL AND feedback_score >= {GOOD_FROM}",
    "down": f"feedback IS NOT NULL AND feedback_score < {GOOD_FROM}",
    "any": "feedback IS NOT NULL",
    "none": "feedback IS NULL",
}
WITHOUT_LABEL = f"beyond ->> 'agent_label' IS NOT NULL AND (words @@ $$'{LABEL}'$$::tsquery) IS NOT TRUE"
"""In so many words, so that the index of these few is taken: jobs whose words lack their label."""
SECONDS = "extract(epoch FROM coalesce(ended_at, now()) - created_at)"


@dataclass(frozen=True)
class Statement:
    """A statement and what stands for its parameters."""

    sql: str
    arguments: tuple[Any, ...]


@dataclass
class _Where:
    """Conditions that grow with their parameters."""

    arguments: list[Any] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    arms: list[str] = field(default_factory=list)
    """A job also meets one of these, and no job more than one; an OR of them would be served by no index."""

    def add(self, condition: str, *values: Any) -> None:
        """Add a condition; `{}` stands for each of its values."""
        self.conditions.append(self.filled(condition, *values))

    def filled(self, condition: str, *values: Any) -> str:
        """Return a condition with what stands for its values."""
        return condition.format(*(self.place(value) for value in values))

    def place(self, value: Any) -> str:
        """Add a parameter, and return what stands for it."""
        self.arguments.append(value)
        return f"${len(self.arguments)}"

    def __str__(self) -> str:
        return "\n    AND ".join(self.conditions)


def page_statements(asked: ListJobs, after: Place | None, *, shown: int) -> Iterator[Statement]:
    """Yield the statements that read a page, and one job more where there is another, until one of them fills it.

    `shown` is how many characters of an answer are read. What is looked for by words is first looked for among the
    newest jobs: a common word fills the page from them, and of a rare one the index has few.
    """
    order = PLACES[asked.sort]
    columns = FOUND.format(shown=shown, place=order or "NULL")
    end = f"ORDER BY {f'{order} DESC, ' if order else ''}created_at DESC, job_id DESC LIMIT {asked.limit + 1}"
    where = _where(asked)
    if asked.sort == "slowest":
        where.add("ended_at IS NOT NULL")
    if after is not None:
        where.add(*_after(after, order))
    if not where.arms:
        yield Statement(f"SELECT {columns}\nFROM jobs\nWHERE {where}\n{end}", tuple(where.arguments))
        return
    if asked.sort == "newest":
        either = " OR ".join(f"({arm})" for arm in where.arms)
        newest = f"SELECT * FROM jobs WHERE {where} ORDER BY created_at DESC, job_id DESC LIMIT {NEAR}"
        yield Statement(f"SELECT {columns}\nFROM ({newest}) AS jobs\nWHERE {either}\n{end}", tuple(where.arguments))
    matched = f"WITH matched AS MATERIALIZED ({_from_arms(where)})"
    joined = "FROM jobs JOIN matched USING (tenant, job_id)"
    yield Statement(f"{matched}\nSELECT {columns}\n{joined}\nWHERE tenant = $1\n{end}", tuple(where.arguments))


def counts_statement(asked: ListJobs) -> Statement:
    """Return the statement that counts the jobs of a filter: in all, by status, by agent and by model."""
    where = _where(asked)
    columns = "status, agent, provider, model, created_at, job_id"
    # Each job is looked up once: what it is counted by comes with the match.
    source = f"({_from_arms(where, columns)}) AS matched" if where.arms else f"jobs WHERE {where}"
    sql = f"""
WITH found AS (
    SELECT status, agent, provider, model
    FROM {source}
    ORDER BY created_at DESC, job_id DESC
    LIMIT {COUNTED_MAX}
), kinds AS (
    SELECT status, agent, provider || '/' || model AS model, count(*) AS jobs FROM found GROUP BY 1, 2, 3
)
SELECT grouping(status, agent, model) AS of, status, agent, model, coalesce(sum(jobs), 0)::bigint AS jobs
FROM kinds
GROUP BY GROUPING SETS ((status), (agent), (model), ())
ORDER BY jobs DESC"""
    return Statement(sql, tuple(where.arguments))


def _after(place: Place, order: str | None) -> tuple[Any, ...]:
    """Return the condition, and its values, that a job comes after the last one of the page before."""
    if order is None:
        return "(created_at, job_id) < ({}::timestamptz, {}::text)", *place[1:]
    return f"({order}, created_at, job_id) < ({{}}::numeric, {{}}::timestamptz, {{}}::text)", *place


def _from_arms(where: _Where, columns: str = "tenant, job_id") -> str:
    """Return a statement that reads the jobs of each arm, each found by its own index."""
    return " UNION ALL ".join(f"SELECT {columns} FROM jobs WHERE {where} AND {arm}" for arm in where.arms)


def _where(asked: ListJobs) -> _Where:
    where = _Where()
    where.add("tenant = {}", asked.tenant)
    for condition, value in _equal(asked):
        if value is not None:
            where.add(condition, value)
    _add_words(where, asked)
    if asked.cites is not None:
        passage = {"document_id": asked.cites, **({"chunk_id": asked.cites_chunk} if asked.cites_chunk else {})}
        where.add("citations @> {}::text::jsonb", json.dumps([passage]))
    if asked.feedback is not None:
        where.add(JUDGED[asked.feedback])
    if asked.parent == "none":
        where.add("beyond -> 'parent' IS NULL")
    elif asked.parent is not None:
        where.add("beyond #>> '{{parent,job_id}}' = {}", asked.parent)
    return where


def _equal(asked: ListJobs) -> Iterator[tuple[str, Any]]:
    """Yield each simple condition with its value, which is None where nothing was asked."""
    statuses = {*asked.statuses, *([asked.status] if asked.status else [])}
    agents = {*asked.agents, *([asked.agent] if asked.agent else [])}
    yield "status = ANY ({}::text[])", sorted(status.value for status in statuses) or None
    yield "agent = ANY ({}::text[])", sorted(agents) or None
    yield "agent_version = {}", asked.agent_version
    yield "beyond ->> 'agent_label' = {}", asked.agent_label
    yield "fingerprint = {}", asked.fingerprint
    yield "schedule ->> 'schedule' = {}", asked.schedule
    yield "session_id = {}", asked.session_id
    yield "user_id = {}", asked.user_id
    yield "job_id = ANY ({}::text[])", None if asked.job_ids is None else list(asked.job_ids)
    # In so many words, so that the index of parked jobs is taken.
    waiting = "status = 'parked' AND waiting_for ->> 'why' = ANY ({}::text[])"
    yield waiting, None if asked.waiting_for is None else list(asked.waiting_for)
    yield "{} IN (model, provider || '/' || model)", asked.model
    yield "tier = {}", asked.tier
    yield "lane = {}", asked.lane
    yield "error_code = {}", asked.error_code
    yield "beyond #>> '{{origin,job_id}}' = {}", asked.origin
    # In so many words, so that the index of jobs on which people decided is taken.
    decided = "beyond ->> 'decided_at' IS NOT NULL AND beyond ->> 'decided_at' >= {}"
    yield decided, None if asked.decided_since is None else moment(asked.decided_since)
    yield "created_at >= {}", asked.since
    yield "created_at < {}", asked.until
    yield "cost_usd >= {}", asked.cost_min
    yield "cost_usd <= {}", asked.cost_max
    yield f"{SECONDS} >= {{}}::float8", asked.seconds_min
    yield f"{SECONDS} <= {{}}::float8", asked.seconds_max
    # In so many words, so that the index of judged jobs is taken.
    yield "feedback IS NOT NULL AND feedback_score >= {}::float8", asked.score_min
    yield "feedback IS NOT NULL AND feedback_score <= {}::float8", asked.score_max


def _add_words(where: _Where, asked: ListJobs) -> None:
    """Add what is looked up in the index of words, and beside it the same for jobs that are not in there yet."""
    if not (asked.q or asked.tags or asked.tool or asked.cites):
        if asked.agent_label:
            _add_label(where, asked.tenant, asked.agent_label)
        return
    words = words_of([asked.q])
    named = [TENANT + asked.tenant, *(TAG + tag for tag in asked.tags), *([TOOL + asked.tool] if asked.tool else [])]
    named += [CITED + asked.cites] if asked.cites else []
    query = " & ".join(map(_quoted, named))
    pending = ["words IS NULL"]
    if asked.q:
        # Words and ids are found by their beginnings.
        beginning = asked.q.strip().lower()
        all_words = " & ".join(f"{_quoted(word)}:*" for word in words)
        by_id = f"{_quoted(ID + beginning)}:*"
        query += f" & ({by_id} | ({all_words}))" if words else f" & {by_id}"
        told = "lower(concat_ws(' ', input, error_message)) LIKE ALL ({}::text[]) OR " if words else ""
        values = [[f"%{_literal(word)}%" for word in words]] if words else []
        pending.append(where.filled(f"({told}lower(job_id) LIKE {{}})", *values, f"{_literal(beginning)}%"))
    if asked.tags:
        pending.append(where.filled("tags @> {}::text[]", list(asked.tags)))
    if asked.tool:
        called = json.dumps([{"tool": asked.tool}])
        pending.append(
            where.filled(
                "EXISTS (SELECT FROM steps WHERE steps.tenant = jobs.tenant AND steps.job_id = jobs.job_id"
                " AND steps.calls @> {}::text::jsonb)",
                called,
            )
        )
    where.arms = [where.filled("words @@ {}::text::tsquery", query), " AND ".join(pending)]


def _add_label(where: _Where, tenant: str, label: str) -> None:
    """Add a label that is looked up in the index of words, and beside it the jobs whose label is not in there."""
    query = f"{_quoted(TENANT + tenant)} & {_quoted(LABEL + label)}"
    where.arms = [where.filled("words @@ {}::text::tsquery", query), WITHOUT_LABEL]


def _quoted(lexeme: str) -> str:
    doubled = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{doubled}'"


def _literal(text: str) -> str:
    """Return a text as a pattern that means it and nothing else."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
