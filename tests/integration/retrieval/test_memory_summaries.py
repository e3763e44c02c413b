"""A summary takes the places of facts: once, undone as a whole, and no word of a forgotten fact stays in one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from wayline.contracts.errors import Reject
from wayline.contracts.forgetting import Erased, EraseFromRetrieval
from wayline.contracts.memory import (
    ChangeMemory,
    Fact,
    FactChange,
    FactPage,
    FactsRecalled,
    FactsSaved,
    ForgetMemories,
    ListMemories,
    MemoriesForgotten,
    RecallMemories,
    SaveMemories,
)
from wayline.contracts.memory_consolidation import ConsolidationUndone, UndoConsolidation
from wayline.contracts.memory_summaries import MemoriesSummarized, SummarizeMemories
from wayline.retrieval.memory import fact_table
from wayline.testkit import Platform

pytestmark = pytest.mark.usefixtures("service")

TEXTS = ("Drinks dark roast coffee.", "Drinks coffee black.", "Drinks coffee in the morning.")
SUMMARY = "Drinks dark roast coffee, black, in the morning."


async def save(platform: Platform) -> list[str]:
    """Save the facts, each by a job of its own."""
    ids: list[str] = []
    for number, text in enumerate(TEXTS):
        fact = {"text": text, "category": "preference", "tier": "important", "quote": text}
        fact |= {"quoted": {"job_id": f"j{number}", "seq": 1}}
        asked = {"tenant": "acme", "key": text, "user_id": "ann", "facts": [fact], "written": {"job_id": f"j{number}"}}
        saved = await platform.bus.ask(SaveMemories.model_validate(asked), FactsSaved)
        ids += [one.fact_id or "" for one in saved.outcomes]
    return ids


def wanted(ids: list[str], **fields: Any) -> SummarizeMemories:
    of = [{"fact_id": fact_id, "version": 1} for fact_id in ids]
    given = {"tenant": "acme", "key": "k", "user_id": "ann", "summaries": [{"text": SUMMARY, "of": of}]}
    return SummarizeMemories.model_validate(
        {**given, "written": {"job_id": "s1", "source": "system_inferred"}, **fields}
    )


async def summarize(platform: Platform, ids: list[str], **fields: Any) -> MemoriesSummarized:
    return await platform.bus.ask(wanted(ids, **fields), MemoriesSummarized)


async def listed(platform: Platform, **fields: Any) -> list[Fact]:
    page = await platform.bus.ask(ListMemories(tenant="acme", user_id="ann", **fields), FactPage)
    return sorted(page.facts, key=lambda fact: fact.text)


async def texts(platform: Platform) -> list[str]:
    return [fact.text for fact in await listed(platform)]


async def undo(platform: Platform, run_id: str | None) -> ConsolidationUndone:
    assert run_id is not None
    return await platform.bus.ask(UndoConsolidation(tenant="acme", run_id=run_id, by="ops"), ConsolidationUndone)


async def test_a_summary_is_shown_made_once_and_undone(platform: Platform):
    ids = await save(platform)
    before = datetime.now(UTC)

    shown = await summarize(platform, ids, dry_run=True)
    untouched = await texts(platform)
    done = await summarize(platform, ids)
    again = await summarize(platform, ids)
    [fact] = await listed(platform)
    recalled = RecallMemories(tenant="acme", user_id="ann", search_terms=("coffee",))
    now = await platform.bus.ask(recalled, FactsRecalled)
    then = await platform.bus.ask(recalled.model_copy(update={"as_of": before}), FactsRecalled)
    [whole] = await listed(platform, fact_ids=(fact.fact_id,))
    undone = await undo(platform, done.run_id)
    twice = await undo(platform, done.run_id)

    assert (shown.run_id, shown.outcomes, untouched) == (None, done.outcomes, sorted(TEXTS))
    assert [one.outcome for one in done.outcomes] == ["saved"] and again == done.model_copy(update={"repeated": True})
    assert (fact.text, fact.trust, fact.times, fact.job_id) == (SUMMARY, "own", 3, "s1")
    assert [one.text for one in now.facts] == [SUMMARY]
    assert sorted(one.text for one in then.facts) == sorted(TEXTS)
    told = {(one.text, one.quote, one.job_id, one.quoted and one.quoted.job_id) for one in whole.stands_for}
    assert told == {(text, text, f"j{number}", f"j{number}") for number, text in enumerate(TEXTS)}
    assert (undone.undone, undone.skipped, twice.undone) == (4, 0, 0)
    assert await texts(platform) == sorted(TEXTS)
    [gone] = await listed(platform, states=("superseded",))
    assert gone.text == SUMMARY
    with pytest.raises(Reject):
        await summarize(platform, ids[:2])


async def test_a_summary_that_was_changed_since_stays(platform: Platform):
    ids = await save(platform)
    done = await summarize(platform, ids)
    [fact] = await listed(platform)
    change = ChangeMemory(tenant="acme", fact_id=fact.fact_id, change=FactChange(text="Drinks coffee."), by="ann")
    await platform.bus.ask(change, Fact)

    undone = await undo(platform, done.run_id)

    assert (undone.undone, undone.skipped) == (0, 4)
    assert await texts(platform) == ["Drinks coffee."]


async def test_a_summary_in_another_summary_is_not_undone_alone(platform: Platform):
    ids = await save(platform)
    of = [{"fact_id": fact_id, "version": 1} for fact_id in ids[:2]]
    first = await summarize(platform, ids, summaries=[{"text": "Drinks dark roast coffee, black.", "of": of}])
    second = await summarize(platform, [first.outcomes[0].fact_id or "", ids[2]], key="k2")

    undone = await undo(platform, first.run_id)

    assert (undone.undone, undone.skipped) == (0, 3)
    assert await texts(platform) == [SUMMARY]
    await undo(platform, second.run_id)
    assert await texts(platform) == sorted(["Drinks dark roast coffee, black.", TEXTS[2]])


async def test_a_summary_outlives_no_fact_of_its_own(platform: Platform, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fact_table, "RETIRED_MAX", 1)
    ids = await save(platform)
    await summarize(platform, ids)
    fact = {"text": "Lives in Bonn.", "category": "profile", "tier": "core", "quote": "Lives in Bonn."}
    asked = {"tenant": "acme", "key": "bonn", "user_id": "ann", "facts": [fact]}
    [saved] = (await platform.bus.ask(SaveMemories.model_validate(asked), FactsSaved)).outcomes
    change = ChangeMemory(tenant="acme", fact_id=saved.fact_id or "", change=FactChange(text="Lives in Ulm."), by="ann")
    await platform.bus.ask(change, Fact)

    await platform.bus.ask(EraseFromRetrieval(tenant="acme", job_ids=("j0",), count_only=False), Erased)

    assert await texts(platform) == sorted([*TEXTS[1:], "Lives in Ulm."])


async def test_a_forgotten_job_takes_its_words_out_of_undone_summaries(platform: Platform):
    ids = await save(platform)
    done = await summarize(platform, ids)
    await undo(platform, done.run_id)

    await platform.bus.ask(EraseFromRetrieval(tenant="acme", job_ids=("j0",), count_only=False), Erased)

    assert await stored(platform) == sorted(TEXTS[1:])


async def test_a_forgotten_job_takes_its_words_out_of_summaries(platform: Platform):
    ids = await save(platform)
    await summarize(platform, ids)

    await platform.bus.ask(EraseFromRetrieval(tenant="acme", job_ids=("j0",), count_only=False), Erased)

    assert await texts(platform) == sorted(TEXTS[1:])
    assert await stored(platform) == sorted(TEXTS[1:])


async def test_a_forgotten_summary_job_leaves_the_facts_of_others(platform: Platform):
    ids = await save(platform)
    await summarize(platform, ids)

    await platform.bus.ask(EraseFromRetrieval(tenant="acme", job_ids=("s1",), count_only=False), Erased)

    assert await texts(platform) == sorted(TEXTS)


async def test_a_deleted_summary_takes_with_it_what_it_stands_for(platform: Platform):
    ids = await save(platform)
    await summarize(platform, ids)
    [fact] = await listed(platform)

    await platform.bus.ask(ForgetMemories(tenant="acme", fact_ids=(fact.fact_id,)), MemoriesForgotten)

    assert await stored(platform) == []


async def stored(platform: Platform) -> list[str]:
    """The texts of all versions, history included."""
    async with platform.superuser() as conn:
        return sorted(row["text"] for row in await conn.fetch("SELECT text FROM retrieval.facts"))
