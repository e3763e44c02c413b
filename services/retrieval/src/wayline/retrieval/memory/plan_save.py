"""What a save does to the facts of one user or subject: refuse, merge, supersede, set aside, add, retire. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from wayline.contracts.memory import (
    Fact,
    FactKind,
    FactOutcome,
    FactsSaved,
    FactState,
    FactTrust,
    NewFact,
    Quoted,
    SubjectRef,
    WrittenBy,
)
from wayline.retrieval.memory.compare_facts import conflict, says_the_same, supports
from wayline.retrieval.memory.comparison_keys import comparison_keys
from wayline.retrieval.memory.fact_refusals import refusal
from wayline.retrieval.memory.fact_rules import (
    CATEGORIES,
    TIER_WEIGHT,
    Ranked,
    Standing,
    expiry,
    grounded_confidence,
    grounded_tier,
    out_of_date,
    over_caps,
)
from wayline.retrieval.memory.fact_text import FactText

if TYPE_CHECKING:
    from numpy.typing import NDArray

INFERRED = "no words of the user were found behind it: it counts as inferred"
UNSAID = "too few of its words were said in this conversation: quote the user, or leave it out"
TIER_FULL = "its tier was full"
QUARANTINED = "the job had read words of strangers: it waits until a person releases it"


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose facts are saved: a user's memories, or a subject's insights."""

    kind: FactKind
    user_id: str | None = None
    subject: SubjectRef | None = None
    other: SubjectRef | None = None

    @property
    def name(self) -> str:
        """Return what the facts are locked, bounded and recalled by."""
        return f"user:{self.user_id}" if self.kind == "memory" else owner_of_subject(self.subject)


def owner_of_subject(subject: SubjectRef | None) -> str:
    """Return the owner of a subject's insights."""
    assert subject is not None
    return f"subject:{subject.type}/{subject.id}"


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """A version of a fact, and what is compared of it."""

    fact: Fact
    words: FactText
    vector: NDArray | None = None
    replaces: str | None = None
    expiry_given: bool = False
    has_keys: bool = True
    """Whether the keys are stored by which it is found for comparing."""


class Retired(NamedTuple):
    """A version that becomes history."""

    fact_id: str
    version: int
    state: FactState
    because: str


class SaidAgain(NamedTuple):
    """A fact that the user has said once more."""

    fact_id: str
    version: int
    expires_at: datetime | None
    keywords: tuple[str, ...]
    compared_by: tuple[str, ...]


class Contradiction(NamedTuple):
    """Two facts that say different things of the same."""

    fact_id: str
    other_id: str
    why: str


@dataclass(slots=True)
class Plan:
    """What is written, in one transaction."""

    inserts: list[Row] = field(default_factory=list)
    retired: list[Retired] = field(default_factory=list)
    said_again: list[SaidAgain] = field(default_factory=list)
    used: list[str] = field(default_factory=list)
    conflicts: list[Contradiction] = field(default_factory=list)
    outcomes: list[FactOutcome] = field(default_factory=list)

    def answer(self) -> FactsSaved:
        """Return what the writer is told."""
        gone = {one.fact_id for one in self.retired if one.state == "expired"}
        return FactsSaved(outcomes=tuple(self.outcomes), retired=tuple(sorted(gone)))


def plan_save(
    owner: Owner,
    facts: Sequence[NewFact],
    written: WrittenBy,
    *,
    known: Sequence[Row],
    others: Sequence[Standing] = (),
    vectors: Sequence[NDArray | None],
    new_id: Callable[[int], str],
    now: datetime,
) -> Plan:
    """Decide on each fact in turn, then on what has to go.

    Of the owner's facts that are not history `known` are those that the new ones are compared with, `others` the rest.
    """
    saving = _Saving(owner, written, new_id, now, list(known), others)
    for number, (fact, vector) in enumerate(zip(facts, vectors, strict=True)):
        saving.take(number, fact, vector)
    saving.make_room()
    return saving.plan


def compares_meaning(facts: Sequence[NewFact], known: Sequence[Row]) -> bool:
    """Return whether vectors can tell that two facts are one: new ones, or a new and a known one, of equal keywords."""
    new = [keywords for fact in facts if (keywords := _folded(fact.keywords))]
    return len(set(new)) < len(new) or any(_folded(row.fact.keywords) in new for row in known)


def trust_of(fact: NewFact, written: WrittenBy) -> FactTrust:
    """Return whose word a fact is: a stranger's, a person's own, or of unknown origin."""
    if written.tainted_by:
        return "stranger"
    if written.source == "user_noted":
        return "own"
    proven = fact.quote is not None and fact.quoted is not None and supports(fact.quote, FactText(fact.text))
    return "own" if proven else "inferred"


@dataclass(slots=True)
class _Saving:
    owner: Owner
    written: WrittenBy
    new_id: Callable[[int], str]
    now: datetime
    live: list[Row]
    others: Sequence[Standing]
    plan: Plan = field(default_factory=Plan)

    def take(self, number: int, fact: NewFact, vector: NDArray | None) -> None:
        """Decide on one fact."""
        if (refused := self._refused(fact)) is not None:
            self.plan.outcomes.append(refused)
            return
        row = self._row(number, fact, vector)
        # An active one first: what is set aside says nothing of what everybody knows.
        like = sorted(self.live, key=lambda one: one.fact.state != "active")
        same = next((one for one in like if self._same(one, row)), None)
        if same is not None:
            self.plan.outcomes.append(self._again(same, row))
        elif row.fact.trust != "own" and number in self.written.unsaid:
            self.plan.outcomes.append(FactOutcome(outcome="refused", code="unsaid", reason=UNSAID))
        else:
            self.plan.outcomes.append(self._add(row))

    def make_room(self) -> None:
        """Retire what is out of date, then the least relevant of each tier that is too full."""
        standing: list[Ranked] = [*(row.fact for row in self.live), *self.others]
        over = out_of_date(standing, self.now)
        ended = {id(one) for one in over}
        full = over_caps([one for one in standing if id(one) not in ended], self.now)
        for facts, because in ((over, "its time is over"), (full, TIER_FULL)):
            self.plan.retired += [Retired(one.fact_id, one.version, "expired", because) for one in facts]

    def _refused(self, fact: NewFact) -> FactOutcome | None:
        if fact.category not in CATEGORIES[self.owner.kind]:
            known = ", ".join(sorted(CATEGORIES[self.owner.kind]))
            return FactOutcome(outcome="refused", code="category", reason=f"its category must be one of {known}")
        for text in (fact.text, *fact.keywords, fact.about or ""):
            if (why := refusal(text, of_assistant=fact.of_assistant)) is not None and (
                text is fact.text or why.code in ("secret", "identity_number")
            ):
                return FactOutcome(outcome="refused", code=why.code, reason=why.reason)
        return None

    def _row(self, number: int, fact: NewFact, vector: NDArray | None) -> Row:
        trust = trust_of(fact, self.written)
        tier = grounded_tier(fact.tier, trust) if self.owner.kind == "memory" else None
        # A quote that holds what is never remembered is not kept either.
        quote = fact.quote if trust == "own" and fact.quote and _may_be_kept(fact.quote) else None
        stored = Fact(
            fact_id=self.new_id(number),
            kind=self.owner.kind,
            user_id=self.owner.user_id,
            subject=self.owner.subject,
            other_subject=self.owner.other,
            text=fact.text,
            category=fact.category,
            tier=tier,
            importance=fact.importance,
            confidence=grounded_confidence(fact.confidence, trust),
            keywords=fact.keywords,
            about=fact.about,
            source=self.written.source,
            state="quarantined" if trust == "stranger" else "active",
            trust=trust,
            quote=quote,
            quoted=fact.quoted if quote else None,
            agent=self.written.agent,
            job_id=self.written.job_id,
            step=self.written.step,
            conversation=self.written.conversation,
            tainted_by=self.written.tainted_by,
            recorded_at=self.now,
            valid_from=fact.valid_from,
            last_said_at=self.now,
            expires_at=fact.expires_at or expiry(tier, self.now),
        )
        given = fact.expires_at is not None
        return Row(stored, FactText(fact.text), vector, replaces=fact.replaces, expiry_given=given)

    def _same(self, one: Row, new: Row) -> bool:
        if one.fact.other_subject != new.fact.other_subject:
            return False
        # The same words are one fact in any category; what only resembles another one is not.
        if one.fact.category != new.fact.category and one.words.text_hash != new.words.text_hash:
            return False
        if new.replaces is not None and one.fact.fact_id == new.replaces and one.words.plain != new.words.plain:
            return False
        keywords = (_folded(one.fact.keywords), _folded(new.fact.keywords))
        return says_the_same(one.words, new.words, keywords=keywords, vectors=(one.vector, new.vector))

    def _again(self, same: Row, new: Row) -> FactOutcome:
        """Count a fact that is known already: as said again, as the user's own from now on, or as used."""
        old, fact = same.fact, new.fact
        if fact.trust == "stranger" or _is_same_saying(fact.quoted, old.quoted):
            return _known(old)
        if fact.trust == "inferred":
            # No new words of the user: what repeats a memory was read from it, and what is set aside stays there.
            self.plan.used += [old.fact_id] if old.state == "active" else []
            return _known(old)
        if old.state == "quarantined":
            return self._add(new)
        raised = TIER_WEIGHT[fact.tier] > TIER_WEIGHT[old.tier] or fact.importance > old.importance
        if old.trust != "own" or raised:
            return self._supersede(same, new, times=old.times + 1)
        keywords = tuple(dict.fromkeys((*old.keywords, *fact.keywords)))[:16]
        expires_at = old.expires_at if same.expiry_given else expiry(old.tier, self.now)
        compared_by = comparison_keys(same.words, keywords=keywords, about=old.about)
        self.plan.said_again.append(SaidAgain(old.fact_id, old.version, expires_at, keywords, tuple(compared_by)))
        self._put(same, replace(same, fact=old.model_copy(update={"times": old.times + 1, "last_said_at": self.now})))
        return FactOutcome(outcome="merged", fact_id=old.fact_id, version=old.version)

    def _add(self, new: Row) -> FactOutcome:
        fact = new.fact
        if fact.state == "quarantined":
            self._insert(new)
            return FactOutcome(
                outcome="quarantined", fact_id=fact.fact_id, version=1, code="tainted", reason=QUARANTINED
            )
        replaced = next((one for one in self._active() if one.fact.fact_id == new.replaces), None)
        if replaced is not None and (fact.trust == "own" or replaced.fact.trust != "own"):
            return self._supersede(replaced, new)
        against = self._conflicts(new)
        if replaced is not None and replaced.fact.fact_id not in {one.other_id for one in against}:
            against.append(Contradiction(fact.fact_id, replaced.fact.fact_id, "would replace the user's own words"))
        self._insert(new)
        self.plan.conflicts += against
        return self._saved(fact, against)

    def _supersede(self, old: Row, new: Row, *, times: int = 1) -> FactOutcome:
        named = {"fact_id": old.fact.fact_id, "version": old.fact.version + 1, "times": times, "uses": old.fact.uses}
        fact = new.fact.model_copy(update=named)
        self.live.remove(old)
        because = f"version {fact.version} took its place"
        self.plan.retired.append(Retired(old.fact.fact_id, old.fact.version, "superseded", because))
        row = replace(new, fact=fact, replaces=None)
        against = self._conflicts(row)
        self._insert(row)
        self.plan.conflicts += against
        return self._saved(fact, against)

    def _saved(self, fact: Fact, against: Sequence[Contradiction]) -> FactOutcome:
        inferred = fact.trust == "inferred"
        return FactOutcome(
            outcome="saved",
            fact_id=fact.fact_id,
            version=fact.version,
            code="inferred" if inferred else None,
            reason=INFERRED if inferred else None,
            conflicts_with=tuple(one.other_id for one in against),
        )

    def _conflicts(self, new: Row) -> list[Contradiction]:
        found: list[Contradiction] = []
        for one in self._active():
            if one.fact.fact_id == new.fact.fact_id or one.fact.other_subject != new.fact.other_subject:
                continue
            why = conflict(new.words, one.words, about=(new.fact.about, one.fact.about))
            if why is not None:
                found.append(Contradiction(new.fact.fact_id, one.fact.fact_id, why))
        return found

    def _active(self) -> list[Row]:
        return [one for one in self.live if one.fact.state == "active"]

    def _insert(self, row: Row) -> None:
        self.plan.inserts.append(row)
        self.live.append(row)

    def _put(self, old: Row, new: Row) -> None:
        self.live[self.live.index(old)] = new


def _is_same_saying(one: Quoted | None, other: Quoted | None) -> bool:
    """Return whether two quotes are of one message: a later job of its session finds it there, too."""
    if one is None or other is None:
        return False
    if one.said_at is not None and other.said_at is not None:
        return one.said_at == other.said_at
    return one == other


def _known(fact: Fact) -> FactOutcome:
    return FactOutcome(outcome="known", fact_id=fact.fact_id, version=fact.version)


def _folded(keywords: Sequence[str]) -> frozenset[str]:
    return frozenset(keyword.casefold() for keyword in keywords)


def _may_be_kept(quote: str) -> bool:
    why = refusal(quote)
    return why is None or why.code not in ("secret", "identity_number")
