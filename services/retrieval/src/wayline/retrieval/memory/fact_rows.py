"""Facts as rows of their table. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wayline.contracts.memory import Fact, FoundFact, Quoted, SubjectRef, SummarizedFact
from wayline.retrieval.memory.comparison_keys import comparison_keys
from wayline.retrieval.memory.fact_text import FactText
from wayline.retrieval.memory.plan_save import Owner, Retired, Row
from wayline.retrieval.memory.rank_facts import Found
from wayline.retrieval.memory.rank_facts import Row as Stored
from wayline.store import Record

if TYPE_CHECKING:
    from datetime import datetime

_ELSEWHERE = {"subject", "other_subject", "quoted", "conflicts_with", "conversations", "stands_for"}
_COLUMNS = tuple(name for name in Fact.model_fields if name not in _ELSEWHERE)
_NAMED = ("subject_type", "subject_id", "other_type", "other_id", "quote_job", "quote_seq", "quote_at")
COLUMNS = ", ".join(_COLUMNS + _NAMED)
"""Of the table those of which a fact is made."""


def fact_of(row: Record) -> Fact:
    """Read a fact from its row."""
    return Fact(**_fields(row))


def found_fact_of(found: Found) -> FoundFact:
    """Read a fact that is recalled."""
    row, fit = found
    why = {name: round(value, 4) for name in ("semantic", "keyword", "fuzzy") if (value := getattr(fit, name))}
    return FoundFact(**_fields(row), similarity=round(min(1.0, fit.fit), 4), why=why)


def summarized_of(row: Record) -> SummarizedFact:
    """Read a fact that a summary stands for."""
    fields = {name: row[name] for name in ("fact_id", "version", "text", "quote", "job_id", "step")}
    return SummarizedFact(**fields, quoted=_quoted(row))


def row_of(row: Record) -> Row:
    """Read what is compared of a fact from its row."""
    vector = row["embedding"].to_numpy() if row["embedding"] is not None else None
    given = row["expiry_given"]
    has_keys = row["compared_by"] is not None
    words = FactText(row["text"])
    return Row(fact_of(row), words, vector, replaces=row["replaces"], expiry_given=given, has_keys=has_keys)


def keys_of(row: Row) -> list[str]:
    """Return the keys by which a fact is found for comparing."""
    return comparison_keys(row.words, keywords=row.fact.keywords, about=row.fact.about)


def arguments_of(
    tenant: str, owner: Owner, row: Row, *, key: str | None, model: str, retired: Retired | None, now: datetime
) -> tuple[Any, ...]:
    """Return the arguments of `insert_fact`, in the order of its columns."""
    fact = row.fact
    subject, other, quoted = fact.subject, fact.other_subject, fact.quoted
    state = retired.state if retired else fact.state
    embedded = (row.vector, model, len(row.vector)) if row.vector is not None else (None, None, None)
    return (
        *(tenant, fact.fact_id, fact.version, fact.kind, owner.name, fact.user_id),
        *((subject.type, subject.id) if subject else (None, None)),
        *((other.type, other.id) if other else (None, None)),
        *(fact.text, row.words.text_hash, fact.category, fact.tier, fact.importance, fact.confidence),
        *(list(fact.keywords), fact.about, fact.source, state, fact.trust, fact.quote),
        *((quoted.job_id, quoted.seq) if quoted else (None, None)),
        *(row.replaces, fact.agent, fact.job_id, fact.step, fact.conversation, key, list(fact.tainted_by)),
        *(fact.recorded_at, fact.valid_from, fact.last_said_at),
        *((now, retired.because) if retired else (None, None)),
        *(fact.expires_at, row.expiry_given, fact.times, fact.uses, fact.last_used_at),
        *(sorted(row.words.terms | keyword_terms(fact)), sorted(row.words.trigrams)),
        *embedded,
        quoted.said_at if quoted else None,
        keys_of(row),
    )


def keyword_terms(fact: Fact) -> frozenset[str]:
    """Return the words of a fact's keywords."""
    return FactText(" ".join(fact.keywords)).terms


def _fields(row: Stored) -> dict[str, Any]:
    fields: dict[str, Any] = {name: row[name] for name in _COLUMNS}
    fields["subject"] = _subject(row["subject_type"], row["subject_id"])
    fields["other_subject"] = _subject(row["other_type"], row["other_id"])
    fields["quoted"] = _quoted(row)
    return fields


def _quoted(row: Stored) -> Quoted | None:
    if not row["quote_job"]:
        return None
    return Quoted(job_id=row["quote_job"], seq=row["quote_seq"], said_at=row["quote_at"])


def _subject(kind: str | None, name: str | None) -> SubjectRef | None:
    return SubjectRef(type=kind, id=name) if kind is not None and name is not None else None
