"""Conditions that jobs meet, as SQL: one for each thing that is asked for, and no other.

A statement with a condition for everything, each of them void where it is null, gets one plan for all questions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from wayline.contracts.feedback import GOOD_FROM
from wayline.contracts.traces import ListJobs
from wayline.tracing.job_words import CITED, ID, LABEL, TAG, TENANT, TOOL, words_of
from wayline.tracing.rows import moment

JUDGED = {
    "up": f"feedback IS NOT NULL AND feedback_score >= {GOOD_FROM}",
    "down": f"feedback IS NOT NULL AND feedback_score < {GOOD_FROM}",
    "any": "feedback IS NOT NULL",
    "none": "feedback IS NULL",
}
SECONDS = "extract(epoch FROM coalesce(ended_at, now()) - created_at)"
FEW = (
    *("user_id", "session_id", "schedule", "fingerprint", "job_ids", "waiting_for", "decided_since"),
    *("feedback", "score_min", "score_max"),
)
"""Of what is asked for, what an index of its own has few jobs of."""


@dataclass(frozen=True)
class Statement:
    """A statement and what stands for its parameters."""

    sql: str
    arguments: tuple[Any, ...]


@dataclass
class Conditions:
    """Conditions that grow with their parameters."""

    arguments: list[Any] = field(default_factory=list)
    scope: list[str] = field(default_factory=list)
    """Whose jobs, of which time, and behind which: what the order in which jobs are read is cut by."""
    others: list[str] = field(default_factory=list)
    arms: list[str] = field(default_factory=list)
    """A job also meets one of these, and no job more than one; an OR of them would be served by no index."""
    are_few: bool = False
    """An index of its own has few jobs that meet the others."""

    def add_scope(self, condition: str, *values: Any) -> None:
        """Add a condition of the scope; `{}` stands for each of its values."""
        self.scope.append(self.filled(condition, *values))

    def add(self, condition: str, *values: Any) -> None:
        """Add another condition."""
        self.others.append(self.filled(condition, *values))

    def filled(self, condition: str, *values: Any) -> str:
        """Return a condition with what stands for its values."""
        return condition.format(*(self.place(value) for value in values))

    def place(self, value: Any) -> str:
        """Add a parameter, and return what stands for it."""
        self.arguments.append(value)
        return f"${len(self.arguments)}"

    def statement(self, sql: str) -> Statement:
        """Return a statement with all parameters."""
        return Statement(sql, tuple(self.arguments))

    @property
    def scoped(self) -> str:
        return _all(self.scope)

    @property
    def plain(self) -> str:
        """Return all but the arms."""
        return _all([*self.scope, *self.others])

    @property
    def whole(self) -> str:
        """Return everything as one condition."""
        either = " OR ".join(f"({arm})" for arm in self.arms)
        return _all([*self.scope, *self.others, *([f"({either})"] if either else [])])

    def from_arms(self, columns: str = "tenant, job_id") -> str:
        """Return a statement that reads the jobs of each arm, each found by its own index."""
        return " UNION ALL ".join(f"SELECT {columns} FROM jobs WHERE {self.plain} AND {arm}" for arm in self.arms)


def _all(conditions: list[str]) -> str:
    return "\n    AND ".join(conditions)


def scope_of(asked: ListJobs) -> Conditions:
    """Return whose jobs are asked for, and of which time."""
    where = Conditions()
    where.add_scope("tenant = {}", asked.tenant)
    if asked.since is not None:
        where.add_scope("created_at >= {}", asked.since)
    if asked.until is not None:
        where.add_scope("created_at < {}", asked.until)
    return where


def conditions_of(asked: ListJobs) -> Conditions:
    """Return everything that is asked of jobs."""
    where = scope_of(asked)
    for condition, value in _equal(asked):
        if value is not None:
            where.add(condition, value)
    _add_words(where, asked)
    if asked.feedback is not None:
        where.add(JUDGED[asked.feedback])
    if asked.parent == "none":
        where.add("beyond -> 'parent' IS NULL")
    elif asked.parent is not None:
        where.add("beyond #>> '{{parent,job_id}}' = {}", asked.parent)
    where.are_few = asked.feedback != "none" and any(getattr(asked, name) is not None for name in FEW)
    return where


def _equal(asked: ListJobs) -> Iterator[tuple[str, Any]]:
    """Yield each simple condition with its value, which is None where nothing was asked."""
    statuses = {*asked.statuses, *([asked.status] if asked.status else [])}
    agents = {*asked.agents, *([asked.agent] if asked.agent else [])}
    yield "status = ANY ({}::text[])", sorted(status.value for status in statuses) or None
    yield "agent = ANY ({}::text[])", sorted(agents) or None
    yield "agent_version = {}", asked.agent_version
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
    yield "cost_usd >= {}", asked.cost_min
    yield "cost_usd <= {}", asked.cost_max
    yield f"{SECONDS} >= {{}}::float8", asked.seconds_min
    yield f"{SECONDS} <= {{}}::float8", asked.seconds_max
    # In so many words, so that the index of judged jobs is taken.
    yield "feedback IS NOT NULL AND feedback_score >= {}::float8", asked.score_min
    yield "feedback IS NOT NULL AND feedback_score <= {}::float8", asked.score_max


def _add_words(where: Conditions, asked: ListJobs) -> None:
    """Add what is looked up in the index of words, and beside it the same for jobs that are not in there yet."""
    if not (asked.q or asked.tags or asked.tool or asked.cites or asked.agent_label):
        return
    words = words_of([asked.q])
    named = [TENANT + asked.tenant, *(TAG + tag for tag in asked.tags), *([TOOL + asked.tool] if asked.tool else [])]
    named += [CITED + asked.cites] if asked.cites else []
    named += [LABEL + asked.agent_label] if asked.agent_label else []
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
    if asked.agent_label:
        pending.append(where.filled("beyond ->> 'agent_label' = {}", asked.agent_label))
    found = [where.filled("words @@ {}::text::tsquery", query)]
    if asked.cites:
        passage = {"document_id": asked.cites, **({"chunk_id": asked.cites_chunk} if asked.cites_chunk else {})}
        rests = where.filled("citations @> {}::text::jsonb", json.dumps([passage]))
        found.append(rests)
        pending.append(rests)
    where.arms = [" AND ".join(found), " AND ".join(pending)]


def _quoted(lexeme: str) -> str:
    doubled = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{doubled}'"


def _literal(text: str) -> str:
    """Return a text as a pattern that means it and nothing else."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
