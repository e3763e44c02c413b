"""Remember, change and release facts: decide and write in one transaction of their owner, and embed beside it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from wayline.chassis import Failpoint, reach
from wayline.contracts.errors import NotFound
from wayline.contracts.memory import ChangeFact, Fact, FactKind, FactsSaved, NewFact, WrittenBy
from wayline.retrieval.memory.comparison_keys import keys_to_compare
from wayline.retrieval.memory.fact_quota import FactQuota
from wayline.retrieval.memory.fact_refusals import refusal
from wayline.retrieval.memory.fact_rules import CATEGORIES, Ranked, Standing, expiry, over_caps
from wayline.retrieval.memory.fact_table import FactTable, Place, WriteKey
from wayline.retrieval.memory.fact_text import FactText
from wayline.retrieval.memory.fact_vectors import FactVectors
from wayline.retrieval.memory.memory_errors import FactRefused, NothingToDecide, VersionConflict
from wayline.retrieval.memory.plan_save import TIER_FULL, Owner, Plan, Retired, Row, compares_meaning, plan_save
from wayline.retrieval.storable import storable

if TYPE_CHECKING:
    from wayline.retrieval.embeddings.embedding import Vectors

KEYS_MADE_MAX = 50
"""Facts of an older version that one save makes the keys of."""


class _MeaningDecides(Exception):
    """A fact may say the same as another one in other words: their vectors tell."""


class _Save(NamedTuple):
    """What is to be saved."""

    tenant: str
    owner: Owner
    facts: list[NewFact]
    written: WrittenBy
    key: str
    content_hash: str

    @property
    def name(self) -> tuple[str, str]:
        return self.tenant, self.owner.name

    @property
    def texts(self) -> list[str]:
        return [fact.text for fact in self.facts]


class _Saved(NamedTuple):
    """What was answered, and the facts that have no vector: those that were saved, and the ids of older ones."""

    answer: FactsSaved
    bare: list[Row]
    older: list[str]


@dataclass(slots=True)
class Rememberer:
    """Writes facts by the rules."""

    facts: FactTable
    vectors: FactVectors
    quota: FactQuota
    _saving: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Saves of each owner that are under way."""

    async def save(
        self, tenant: str, owner: Owner, facts: Sequence[NewFact], written: WrittenBy, *, key: str, content_hash: str
    ) -> FactsSaved:
        """Remember facts, once for the key. Raises MemoryKeyConflict, MemoriesFull, and Retry."""
        await self.quota.check(tenant)
        save = _Save(tenant, owner, [_storable(fact) for fact in facts], written, key, content_hash)
        self._saving[save.name] += 1
        # Beside the transaction, which seldom needs the vectors: they take as long as all of it.
        embedding = asyncio.create_task(self.vectors.of(tenant, save.texts), name="embed facts")
        try:
            try:
                saved = await self._write(save, embedding)
            except _MeaningDecides:
                await embedding
                saved = await self._write(save, embedding)
            reach(Failpoint.RETRIEVAL_FACTS_SAVED)
            await self._set_vectors(save, saved, (await embedding)[0])
        except Exception:
            # What was asked of a provider is paid, and only its answer tells how much.
            await asyncio.wait((embedding,))
            raise
        finally:
            embedding.cancel()
            self._saving[save.name] -= 1
            self._saving += Counter()  # without those that are 0
        return saved.answer

    async def _write(self, save: _Save, embedding: asyncio.Task[tuple[Vectors | None, str | None]]) -> _Saved:
        """Decide on facts and write them. Raises _MeaningDecides: that takes vectors, and there are none yet."""
        async with self.facts.owned(save.tenant, save.owner, WriteKey(save.key, save.content_hash)) as owned:
            standing = await owned.standing(*_to_compare(save.facts))
            bare = [one.fact_id for one in standing if not one.is_embedded]
            if owned.before is not None:
                return _Saved(FactsSaved.model_validate({**owned.before, "repeated": True}), [], bare)
            now = datetime.now(UTC)
            known = await owned.named([one.fact_id for one in standing if one.is_compared])
            if not embedding.done() and compares_meaning(save.facts, known):
                raise _MeaningDecides
            vectors = (await embedding)[0] if embedding.done() else None
            read = {(row.fact.fact_id, row.fact.version) for row in known}
            plan = plan_save(
                save.owner,
                save.facts,
                save.written,
                known=known,
                others=[one for one in standing if (one.fact_id, one.version) not in read],
                vectors=_each(vectors, len(save.facts)),
                new_id=lambda number: fact_id(save.tenant, save.key, number),
                now=now,
            )
            if plan.inserts:
                await owned.ensure_subjects()
            place = Place.of(save.written.conversation, save.written.job_id)
            await owned.apply(plan, key=save.key, model=self.vectors.model, now=now, place=place)
            await owned.set_keys([row for row in known if not row.has_keys][:KEYS_MADE_MAX])
            await owned.end(save.key, plan.answer(), now)
        return _Saved(plan.answer(), [row for row in plan.inserts if row.vector is None], bare)

    async def _set_vectors(self, save: _Save, saved: _Saved, vectors: Vectors | None) -> None:
        """Give new facts their vectors, and older ones theirs that were saved while the provider was away."""
        if vectors is None:
            return
        made = dict(zip(save.texts, vectors, strict=True))
        rows = [*saved.bare, *await self._older(save, saved)]
        rest = list(dict.fromkeys(row.fact.text for row in rows if row.fact.text not in made))
        of_rest, _ = await self.vectors.of(save.tenant, rest)
        made |= {} if of_rest is None else dict(zip(rest, of_rest, strict=True))
        rows = [row for row in rows if row.fact.text in made]
        await self.facts.set_vectors(save.tenant, rows, [made[row.fact.text] for row in rows], self.vectors.model)

    async def _older(self, save: _Save, saved: _Saved) -> list[Row]:
        """Return the older facts that are without a vector still."""
        # What another save of this owner has just written gets its vector there.
        if not saved.older or self._saving[save.name] > 1:
            return []
        async with self.facts.owned(save.tenant, save.owner) as owned:
            return [row for row in await owned.named(saved.older) if row.vector is None]

    async def change(self, asked: ChangeFact, kind: FactKind) -> Fact:
        """Make a new version of a fact, or decide on one that is quarantined; who did it is written down."""
        found = await self.facts.find(asked.tenant, kind, asked.fact_id)
        if found is None or (asked.user_id is not None and found.fact.user_id != asked.user_id):
            raise NotFound(kind, asked.fact_id)
        owner = Owner(kind, found.fact.user_id, found.fact.subject, found.fact.other_subject)
        text = found.fact.text if asked.change.text is None else storable(asked.change.text)
        vectors, _ = await self.vectors.of(asked.tenant, [text] if text != found.fact.text else [])
        async with self.facts.owned(asked.tenant, owner) as owned:
            now = datetime.now(UTC)
            standing = await owned.standing()
            old = next(iter(await owned.named([asked.fact_id])), None)
            if old is None:
                raise NotFound(kind, asked.fact_id)
            if asked.if_version is not None and asked.if_version != old.fact.version:
                raise VersionConflict(f"fact {asked.fact_id!r}", wanted=asked.if_version, found=old.fact.version)
            row, plan = _decided(asked, kind, old, vectors=vectors, now=now)
            if row is not None and row.replaces is not None and row.fact.state == "active":
                plan.retired += _replaced(row.replaces, standing, row.fact.fact_id)
            if row is not None:
                gone = {(one.fact_id, one.version) for one in plan.retired}
                left: list[Ranked] = [one for one in standing if (one.fact_id, one.version) not in gone]
                full = over_caps([*left, row.fact], now, keep=row.fact)
                plan.retired += [Retired(one.fact_id, one.version, "expired", TIER_FULL) for one in full]
            await owned.apply(plan, key=None, model=self.vectors.model, now=now)
            fact = row.fact if row is not None else old.fact.model_copy(update={"state": "rejected"})
            await owned.forget_old_versions()
            await owned.note_change(fact, asked.decision or "change", asked.by, asked.reason)
        if row is not None and row.vector is None and text == found.fact.text:
            # Of the version before it may just have been made.
            made, _ = await self.vectors.of(asked.tenant, [text])
            await self.facts.set_vectors(asked.tenant, [row], [] if made is None else list(made), self.vectors.model)
        return fact


def fact_id(tenant: str, key: str, number: int) -> str:
    """Return the id of a fact that was saved under a key: the same at every try."""
    return f"fact_{sha256(f'{tenant}/{key}/{number}'.encode()).hexdigest()[:24]}"


def _decided(
    asked: ChangeFact, kind: FactKind, old: Row, *, vectors: Vectors | None, now: datetime
) -> tuple[Row | None, Plan]:
    """Return the new version, none where the fact is rejected, and what is written."""
    if asked.decision is not None and old.fact.state != "quarantined":
        raise NothingToDecide(fact_id=asked.fact_id, state=old.fact.state)
    if asked.decision == "reject":
        rejected = Retired(old.fact.fact_id, old.fact.version, "rejected", f"rejected by {asked.by}")
        return None, Plan(retired=[rejected])
    row = _changed(asked, kind, old, vectors=vectors, now=now)
    because = f"version {row.fact.version} took its place"
    return row, Plan(inserts=[row], retired=[Retired(old.fact.fact_id, old.fact.version, "superseded", because)])


def _changed(asked: ChangeFact, kind: FactKind, old: Row, *, vectors: Vectors | None, now: datetime) -> Row:
    """Return a fact's next version. Raises FactRefused."""
    text = old.fact.text if asked.change.text is None else storable(asked.change.text)
    same_text = text == old.fact.text
    change = asked.change.model_dump(exclude_none=True) | {"text": text}
    if (why := refusal(text)) is not None and not same_text:
        raise FactRefused(code=why.code, reason=why.reason)
    if change.get("category", old.fact.category) not in CATEGORIES[kind]:
        raise FactRefused(code="category", reason=f"its category must be one of {', '.join(sorted(CATEGORIES[kind]))}")
    if kind == "insight":
        change.pop("tier", None)
    # Until a person releases it, a fact of strangers stays aside, whatever is changed of it.
    released = asked.decision == "release" or old.fact.state != "quarantined"
    trust = {"trust": "own", "state": "active", "source": "user_noted"} if released else {}
    given = "expires_at" in change or (old.expiry_given and "tier" not in change)
    tier = asked.change.tier or old.fact.tier
    words = {} if same_text else {"quote": None, "quoted": None}
    numbered = {"version": old.fact.version + 1, "recorded_at": now, "last_said_at": now}
    timed = {"expires_at": change.get("expires_at", old.fact.expires_at) if given else expiry(tier, now)}
    keywords = {"keywords": tuple(change.get("keywords", old.fact.keywords))}
    fact = old.fact.model_copy(update={**change, **trust, **words, **numbered, **timed, **keywords})
    vector = vectors[0] if vectors is not None else (old.vector if same_text else None)
    return replace(old, fact=fact, words=FactText(text), vector=vector, expiry_given=given)


def _replaced(fact_id: str, standing: Sequence[Standing], by: str) -> list[Retired]:
    """Return what a released fact takes the place of."""
    return [
        Retired(one.fact_id, one.version, "superseded", f"fact {by} took its place")
        for one in standing
        if one.fact_id == fact_id and one.state == "active"
    ]


def _to_compare(facts: Sequence[NewFact]) -> tuple[list[str], list[str]]:
    """Return the keys of what new facts are compared with, and the ids of what they replace."""
    keys = {
        key for fact in facts for key in keys_to_compare(FactText(fact.text), keywords=fact.keywords, about=fact.about)
    }
    return sorted(keys), [fact.replaces for fact in facts if fact.replaces is not None]


def _each(vectors: Vectors | None, count: int) -> list[Vectors | None]:
    return [None] * count if vectors is None else [vectors[number] for number in range(count)]


def _storable(fact: NewFact) -> NewFact:
    """Return a fact without what no Postgres column takes."""
    changed = {
        "text": storable(fact.text).strip() or fact.text[:1],
        "quote": storable(fact.quote) if fact.quote is not None else None,
        "about": storable(fact.about) if fact.about is not None else None,
        "keywords": tuple(storable(keyword) for keyword in fact.keywords),
    }
    return fact.model_copy(update=changed)
