"""What the terminal shows of a fact."""

from __future__ import annotations

from datetime import UTC, datetime

from rich.console import Console

from wayline.contracts.memory import Fact, FactConversation
from wayline.standalone.terminal.memory_views import fact_details

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
