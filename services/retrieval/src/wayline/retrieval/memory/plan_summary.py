"""Whether a summary may take the places of the facts that it names, and which fact it is. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

from wayline.contracts.memory import KEYWORDS_MAX, Fact, FactOutcome, FactTrust, WrittenBy
from wayline.contracts.memory_summaries import NewSummary
from wayline.retrieval.memory.compare_facts import names_in, says_the_same
from wayline.retrieval.memory.fact_refusals import Refusal, refusal
from wayline.retrieval.memory.fact_rules import INFERRED_CONFIDENCE_MAX
from wayline.retrieval.memory.fact_text import FactText
from wayline.retrieval.memory.plan_consolidation import before_of
from wayline.retrieval.memory.plan_save import QUARANTINED, Plan, Retired, Row

if TYPE_CHECKING:
    from numpy.typing import NDArray

KEPT_SHARE_MIN = 0.5
"""Of each fact's words those that its summary holds."""
CONNECTING = frozenset(
    "also and as both but well too sowie und auch aber et aussi mais y también pero и также e anche".split()
)
"""Words that say nothing and need not stand in any fact."""
CHANGED = Refusal("changed", "one of its facts is another version by now, is gone, or is in another summary")
UNLIKE = Refusal("unlike", "its facts are of more than one category, tier or trust")
DATED = Refusal("dated", "one of its facts has a time of its own")
CONFLICT = Refusal("conflict", "something else is remembered that contradicts one of its facts")
DENIED = Refusal("denied", "one of its facts, or it, denies something: denials are kept as they were said")
UNSAID = Refusal("unsaid", "it has words, names or numbers that none of its facts has")
LOST = Refusal("lost", "it leaves out a name, a number, or most words of one of its facts")
KNOWN = Refusal("known", "another fact says the same")


@dataclass(slots=True)
class SummaryPlan:
    """What is written, in one transaction: of each summary the fact, and which facts it stands for."""

    plan: Plan = field(default_factory=Plan)
    stands_for: dict[str, tuple[Row, ...]] = field(default_factory=dict)


class SummaryStep(NamedTuple):
    """A change of a fact as it is noted, to be undone by."""

    what: str
    fact_id: str
    version: int
    before: dict[str, Any]


def summary_steps(summary_id: str, rows: Sequence[Row]) -> list[SummaryStep]:
    """Return what a summary changed, its own beginning last: it is undone first."""
    steps = [
        SummaryStep("summarized", row.fact.fact_id, row.fact.version, before_of(row.fact, into=summary_id))
        for row in rows
    ]
    return [*steps, SummaryStep("summary", summary_id, 1, {})]


@dataclass(frozen=True, slots=True)
class KnownFacts:
    """The facts of a user that are not history."""

    rows: Mapping[str, Row]
    contradicted: AbstractSet[str]
    """Those that an active fact contradicts."""


def plan_summaries(
    summaries: Sequence[NewSummary],
    written: WrittenBy,
    known: KnownFacts,
    *,
    vectors: Sequence[NDArray | None],
    new_id: Callable[[int], str],
    now: datetime,
) -> SummaryPlan:
    """Decide on each summary in turn; no fact is summarised twice, and none whose time is over lives on in one."""
    planned, taken = SummaryPlan(), set[str]()
    given = known.rows.items()
    counting = {fact_id: row for fact_id, row in given if (end := row.fact.expires_at) is None or end > now}
    known = KnownFacts(counting, known.contradicted)
    for number, (summary, vector) in enumerate(zip(summaries, vectors, strict=True)):
        facts = [known.rows.get(one.fact_id) for one in summary.of]
        rows = tuple(row for row in facts if row is not None)
        if (why := _refused(summary, rows, known, taken)) is not None:
            planned.plan.outcomes.append(FactOutcome(outcome="refused", code=why.code, reason=why.reason))
            continue
        fact = _summary(new_id(number), summary.text, rows, written, now)
        taken |= {row.fact.fact_id for row in rows}
        planned.plan.inserts.append(Row(fact, FactText(fact.text), vector))
        if fact.state == "quarantined":
            planned.plan.outcomes.append(
                FactOutcome(outcome="quarantined", fact_id=fact.fact_id, version=1, code="tainted", reason=QUARANTINED)
            )
            continue
        planned.plan.outcomes.append(FactOutcome(outcome="saved", fact_id=fact.fact_id, version=1))
        planned.stands_for[fact.fact_id] = rows
        because = f"fact {fact.fact_id} stands for it"
        planned.plan.retired += [Retired(row.fact.fact_id, row.fact.version, "superseded", because) for row in rows]
    return planned


def _refused(summary: NewSummary, rows: Sequence[Row], known: KnownFacts, taken: AbstractSet[str]) -> Refusal | None:
    named = {(one.fact_id, one.version) for one in summary.of}
    if named != {(row.fact.fact_id, row.fact.version) for row in rows} or len(named) != len(summary.of):
        return CHANGED
    if taken & {row.fact.fact_id for row in rows}:
        return CHANGED
    trusts = {row.fact.trust for row in rows} - {"stranger"}
    if len({(row.fact.category, row.fact.tier) for row in rows}) > 1 or len(trusts) > 1:
        return UNLIKE
    if any(row.expiry_given or row.fact.valid_from is not None for row in rows):
        return DATED
    if known.contradicted & {row.fact.fact_id for row in rows}:
        return CONFLICT
    if (why := refusal(summary.text)) is not None:
        return why
    words = FactText(summary.text)
    if (why := _misstated(words, [row.words for row in rows])) is not None:
        return why
    others = (row for row in known.rows.values() if row not in rows and row.fact.state == "active")
    return KNOWN if any(says_the_same(row.words, words) for row in others) else None


def _misstated(summary: FactText, facts: Sequence[FactText]) -> Refusal | None:
    """Return what a summary says that its facts do not, or leaves out."""
    if any(words.negated or words.claims != words.terms for words in (summary, *facts)):
        return DENIED
    said = frozenset[str]().union(*(words.terms for words in facts))
    numbers = {number for words in facts for number in words.numbers}
    plain = " ".join(words.plain for words in facts)
    if summary.terms - said - CONNECTING or set(summary.numbers) - numbers:
        return UNSAID
    if any(FactText(name).plain not in plain for name in names_in(summary)):
        return UNSAID
    for words in facts:
        kept = len(words.terms & summary.terms) >= max(1, ceil(len(words.terms) * KEPT_SHARE_MIN))
        named = all(FactText(name).plain in summary.plain for name in names_in(words))
        if not kept or not named or not set(words.numbers) <= set(summary.numbers):
            return LOST
    return None


def _summary(fact_id: str, text: str, rows: Sequence[Row], written: WrittenBy, now: datetime) -> Fact:
    """Return the fact that a summary becomes: as sure as the least sure of its facts, and as important as the most."""
    facts = [row.fact for row in rows]
    trust = _least([fact.trust for fact in facts], written)
    confidence = min(fact.confidence for fact in facts)
    ends = [fact.expires_at for fact in facts]
    used = [fact.last_used_at for fact in facts if fact.last_used_at is not None]
    keywords = dict.fromkeys(keyword for fact in facts for keyword in fact.keywords)
    return facts[0].model_copy(
        update={
            "fact_id": fact_id,
            "version": 1,
            "text": text,
            "importance": max(fact.importance for fact in facts),
            "confidence": confidence if trust == "own" else min(confidence, INFERRED_CONFIDENCE_MAX),
            "keywords": tuple(keywords)[:KEYWORDS_MAX],
            "about": None,
            "source": written.source,
            "state": "quarantined" if trust == "stranger" else "active",
            "trust": trust,
            "quote": None,
            "quoted": None,
            "agent": written.agent,
            "job_id": written.job_id,
            "step": written.step,
            "conversation": None,
            "tainted_by": tuple(dict.fromkeys([*written.tainted_by, *(t for fact in facts for t in fact.tainted_by)]))[
                :20
            ],
            "recorded_at": now,
            "last_said_at": max(fact.last_said_at for fact in facts),
            "expires_at": None if None in ends else max(at for at in ends if at is not None),
            "times": sum(fact.times for fact in facts),
            "uses": sum(fact.uses for fact in facts),
            "last_used_at": max(used, default=None),
        }
    )


def _least(trusts: Sequence[FactTrust], written: WrittenBy) -> FactTrust:
    """Return whose word a summary is: of no more trust than the least trusted of its facts."""
    if written.tainted_by or "stranger" in trusts:
        return "stranger"
    return "inferred" if "inferred" in trusts else "own"
