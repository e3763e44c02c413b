"""What the terminal shows of a fact."""

from __future__ import annotations

from datetime import UTC, datetime

from rich.console import Console

from wayline.contracts.memory import Fact, FactConversation, Quoted, SummarizedFact
from wayline.standalone.terminal.memory_views import fact_details, told_table

AT = datetime(2026, 5, 4, 9, 30, tzinfo=UTC)


def test_a_fact_shows_the_conversations_that_said_or_used_it():
    said = FactConversation(conversation="s-1", said=2, first_at=AT, last_at=AT)
    used = FactConversation(conversation="s-2", used=1, first_at=AT, last_at=AT)
    fact = Fact(
        fact_id="f1",
        text="Lives in Bonn.",
        category="profile",
        recorded_at=AT,
        last_said_at=AT,
        conversations=(said, used),
    )
    console = Console(width=120, record=True)

    console.print(fact_details(fact.model_dump(mode="json")))

    shown = console.export_text()
    assert "s-1: said 2 times, last 2026-05-04T09:30:00" in shown and "s-2: used 1 times" in shown


def test_a_summary_shows_the_words_of_the_facts_it_stands_for():
    quoted = Quoted(job_id="j1", seq=1)
    source = SummarizedFact(fact_id="f1", version=2, text="Drinks it black.", quote="I drink it black", quoted=quoted)
    fact = Fact(
        fact_id="s1",
        text="Drinks coffee black.",
        category="preference",
        recorded_at=AT,
        last_said_at=AT,
        stands_for=(source,),
    )
    shown = fact.model_dump(mode="json")
    told = {"fact_id": "s1", "version": 1, "why": "core", "similarity": 0.0, "seq": 3, "fact": shown}
    console = Console(width=160, record=True)

    console.print(fact_details(shown))
    console.print(told_table({"told": [told], "gone": []}))

    text = console.export_text()
    assert "f1 v2: Drinks it black., said in j1 event 1" in text
    assert "I drink it black" in text and "j1/1" in text
