"""Facts are put in order by themselves: what goes is audited, can be seen beforehand, and can be brought back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from wayline.contracts.memory import (
    ChangeMemory,
    Fact,
    FactChange,
    FactPage,
    FactsSaved,
    ForgetMemories,
    GetSubject,
    ListMemories,
    MemoriesForgotten,
    PutSubject,
    SaveMemories,
    StoreInsights,
    Subject,
    SubjectLink,
    SubjectRef,
)
from wayline.contracts.memory_consolidation import (
    Consolidated,
    ConsolidateMemories,
    ConsolidationUndone,
    FoundLink,
    UndoConsolidation,
)
from wayline.retrieval.memory import link_subjects
from wayline.retrieval.memory.consolidation import Consolidation
from wayline.retrieval.postgres import open_store
from wayline.testkit import Platform

pytestmark = pytest.mark.usefixtures("service")


async def save(platform: Platform, *texts: str, **fields: Any) -> list[str]:
    facts = [{"text": text, "category": "profile", "tier": "important"} | fields for text in texts]
    asked = {"tenant": "acme", "key": str(texts), "user_id": "ann", "facts": facts, "written": {"source": "user_noted"}}
    saved = await platform.bus.ask(SaveMemories.model_validate(asked), FactsSaved)
    return [one.fact_id or "" for one in saved.outcomes]


async def facts(platform: Platform) -> list[Fact]:
    return list((await platform.bus.ask(ListMemories(tenant="acme", user_id="ann"), FactPage)).facts)


async def consolidated(platform: Platform, *, dry_run: bool = False) -> Consolidated:
    asked = ConsolidateMemories(tenant="acme", user_id="ann", dry_run=dry_run, by="ops")
    return await platform.bus.ask(asked, Consolidated)


async def age(platform: Platform, fact_id: str, **columns: Any) -> None:
    async with platform.superuser() as conn:
        for column, value in columns.items():
            await conn.execute(f"UPDATE retrieval.facts SET {column} = $2 WHERE fact_id = $1", fact_id, value)


async def make_work(platform: Platform) -> tuple[str, str, str, str]:
    """Save facts of which one is over, one unused, and two are the same."""
    over, unused, one, same = await save(platform, "Keeps bees.", "Plays chess.", "Lives in Bonn.", "Owns a boat.")
    now = datetime.now(UTC)
    await age(platform, over, expires_at=now - timedelta(days=1))
    await age(platform, unused, last_said_at=now - timedelta(days=80))
    await age(platform, same, text="The user lives in Bonn")
    return over, unused, one, same


async def test_a_consolidation_is_shown_done_and_undone(platform: Platform):
    over, unused, one, same = await make_work(platform)
    before = {fact.fact_id: (fact.tier, fact.state) for fact in await facts(platform)}

    shown = await consolidated(platform, dry_run=True)
    untouched = {fact.fact_id: (fact.tier, fact.state) for fact in await facts(platform)}
    done = await consolidated(platform)
    after = {fact.fact_id: (fact.tier, fact.times) for fact in await facts(platform)}
    again = await consolidated(platform)
    assert done.run_id is not None
    undo = UndoConsolidation(tenant="acme", run_id=done.run_id, by="ops")
    undone = await platform.bus.ask(undo, ConsolidationUndone)
    twice = await platform.bus.ask(undo, ConsolidationUndone)

    assert (shown.run_id, shown.steps, untouched) == (None, done.steps, before)
    assert [step.what for step in done.steps] == ["expired", "merged", "demoted"]
    assert (done.steps[0].fact_id, done.steps[2].fact_id) == (over, unused)
    assert {done.steps[1].fact_id, done.steps[1].into} == {one, same}
    assert after[unused][0] == "context"
    assert sorted(times for _, times in after.values()) == [1, 2]
    assert again.steps == ()
    assert (undone.undone, undone.skipped, twice.undone) == (3, 0, 0)
    assert {fact.fact_id: (fact.tier, fact.state) for fact in await facts(platform)} == before
    assert [fact.times for fact in await facts(platform)] == [1, 1, 1, 1]


async def test_what_was_changed_since_is_not_brought_back(platform: Platform):
    _, unused, _, _ = await make_work(platform)
    done = await consolidated(platform)
    assert done.run_id is not None
    change = ChangeMemory(tenant="acme", fact_id=unused, change=FactChange(text="Plays chess well."), by="ann")
    await platform.bus.ask(change, Fact)

    undo = UndoConsolidation(tenant="acme", run_id=done.run_id, by="ops")
    undone = await platform.bus.ask(undo, ConsolidationUndone)

    assert (undone.undone, undone.skipped) == (2, 1)
    assert "Plays chess well." in [fact.text for fact in await facts(platform)]


async def test_every_tenants_facts_that_are_over_end_by_themselves(platform: Platform):
    over, *_ = await make_work(platform)
    async with platform.superuser() as conn:
        await conn.execute("UPDATE retrieval.fact_writes SET written_at = now() - interval '40 days'")
    store = await open_store(await platform.migrate("retrieval"), pool_size=2, wait_s=0)

    await Consolidation(store, "m").all_tenants()
    await store.close()

    assert over not in [fact.fact_id for fact in await facts(platform)]
    async with platform.superuser() as conn:
        audited = await conn.fetchval("SELECT changed_by FROM retrieval.fact_changes WHERE fact_id = $1", over)
        keys = await conn.fetchval("SELECT count(*) FROM retrieval.fact_writes")
    assert (audited, keys) == ("the hourly consolidation", 0)


ACME, ANNA, OTHER = (
    SubjectRef(type=kind, id=name) for kind, name in (("company", "acme-1"), ("person", "p7"), ("person", "p8"))
)


async def store(platform: Platform, about: SubjectRef, *texts: str) -> list[str]:
    insights = [{"text": text, "category": "relationship"} for text in texts]
    asked = {
        "tenant": "acme",
        "key": str(texts),
        "about": about,
        "facts": insights,
        "written": {"source": "user_noted"},
    }
    saved = await platform.bus.ask(StoreInsights.model_validate(asked), FactsSaved)
    return [one.fact_id or "" for one in saved.outcomes]


async def name(platform: Platform, ref: SubjectRef, called: str) -> None:
    await platform.bus.ask(PutSubject(tenant="acme", ref=ref, name=called), Subject)


async def links(platform: Platform, ref: SubjectRef) -> tuple[SubjectLink, ...]:
    return (await platform.bus.ask(GetSubject(tenant="acme", ref=ref), Subject)).links


async def in_order(platform: Platform, *, dry_run: bool = False) -> Consolidated:
    return await platform.bus.ask(ConsolidateMemories(tenant="acme", dry_run=dry_run, by="ops"), Consolidated)


async def test_subjects_are_linked_by_name_and_unlinked_for_good(platform: Platform):
    await name(platform, ANNA, "Anna Weiss")
    await name(platform, OTHER, "Will")
    [first, _] = await store(platform, ACME, "The buyer is ANNA WEISS of Bonn.", "They will decide in May.")
    linked = (SubjectLink(type="person", id="p7", kind="named"),)

    shown = await in_order(platform, dry_run=True)
    before = await links(platform, ACME)
    done = await in_order(platform)
    after, again = await links(platform, ACME), await in_order(platform)
    assert done.run_id is not None
    undone = await platform.bus.ask(UndoConsolidation(tenant="acme", run_id=done.run_id, by="ops"), ConsolidationUndone)
    await store(platform, ACME, "Anna Weiss signs for them.")
    anew = await in_order(platform)

    assert done.links == shown.links == (FoundLink(subject=ACME, other=ANNA, fact_id=first),)
    assert (before, after, shown.run_id) == ((), linked, None)
    assert (again.links, again.run_id, again.more) == ((), None, False)
    assert (undone.undone, undone.skipped) == (1, 0)
    assert (anew.links, await links(platform, ACME)) == ((), ())


async def test_a_subject_named_later_is_found_in_older_insights(platform: Platform):
    await store(platform, ACME, "Das Angebot kommt von Jürgen Groß.")
    await in_order(platform)

    await name(platform, ANNA, "Jürgen Groß")
    later = await in_order(platform)
    await name(platform, OTHER, "Jürgen Groß")
    await store(platform, SubjectRef(type="company", id="beta"), "Jürgen Groß advises them.")
    ambiguous = await in_order(platform)

    assert [link.other for link in later.links] == [ANNA]
    assert ambiguous.links == ()


async def test_a_link_goes_with_the_insight_that_names_it(platform: Platform):
    await name(platform, ANNA, "Anna Weiss")
    [fact_id] = await store(platform, ACME, "The buyer is Anna Weiss.")
    await in_order(platform)
    there = await links(platform, ACME)

    await platform.bus.ask(ForgetMemories(tenant="acme", fact_ids=(fact_id,)), MemoriesForgotten)

    assert (len(there), await links(platform, ACME)) == (1, ())
    async with platform.superuser() as conn:
        assert await conn.fetchval("SELECT count(*) FROM retrieval.subject_mentions") == 0


async def test_a_quarantined_insight_does_not_keep_its_tenant_due(platform: Platform):
    [waiting] = await store(platform, ACME, "Anna Berg runs it.")
    await age(platform, waiting, state="quarantined")
    await in_order(platform)
    now, opened = datetime.now(UTC), await open_store(await platform.migrate("retrieval"), pool_size=2, wait_s=0)
    async with opened.system() as conn:
        due = await conn.fetch(Consolidation(opened, "m").sql.tenants_due, now, now, 10)
    await opened.close()

    assert due == []


async def test_words_of_few_insights_are_in_memory_together(platform: Platform, monkeypatch: pytest.MonkeyPatch):
    at_once = list[int]()
    phrases_of = link_subjects._phrases_of

    def counted(rows: Any) -> Any:
        at_once.append(len(rows))
        return phrases_of(rows)

    monkeypatch.setattr(link_subjects, "COMPARED_AT_ONCE", 2)
    monkeypatch.setattr(link_subjects, "_phrases_of", counted)
    await name(platform, ANNA, "Anna Weiss")
    await store(platform, ACME, "It sells tea.", "It is in Kiel.", "The buyer is Anna Weiss.")

    done = await in_order(platform)

    # A run of the service itself may come between.
    assert max(at_once) == 2 and sum(at_once) >= 3
    assert [link.other for link in done.links] == [ANNA]
