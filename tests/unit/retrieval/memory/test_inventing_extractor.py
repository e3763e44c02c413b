"""An extractor that invents, repeats and echoes leaves next to no junk, and nothing invented as the user's word."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

from wayline.contracts.memory import NewFact, Quoted, WrittenBy
from wayline.retrieval.memory.plan_save import Owner, Row, plan_save

SAVES = 2_000
USERS = 40
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
VERBS = ("plays", "collects", "repairs", "sells", "paints", "studies")
THINGS = ("cellos", "stamps", "bicycles", "maps", "clocks", "kites", "lamps", "boats", "roses", "drums")
LEADS = ("The user {}", "User {}.", "{}")


def test_of_an_inventing_extractor_little_junk_stays_and_none_as_own():
    chance = random.Random(7)
    facts: dict[str, list[Row]] = {}
    truth: dict[str, set[str]] = {}
    for number in range(SAVES):
        user = f"u{number % USERS}"
        claim = f"{chance.choice(VERBS)} {chance.choice(THINGS)}"
        invented = chance.random() < 0.3
        if not invented:
            truth.setdefault(user, set()).add(claim)
        text = chance.choice(LEADS).format(claim)
        # A model that invents a fact invents the quote with it: no log has it.
        quoted = None if invented else Quoted(job_id=f"j{number}", seq=1)
        fact = NewFact(text=text, category="profile", tier="core", quote=f"I {claim}", quoted=quoted)
        now = BEGAN + timedelta(minutes=number)
        facts[user] = _save(user, fact, facts.get(user, []), number, now)

    kept = [(user, row) for user, rows in facts.items() for row in rows]
    own = [(user, row) for user, row in kept if row.fact.trust == "own"]
    doubled = sum(len(rows) - len({frozenset(row.words.claims) for row in rows}) for rows in facts.values())
    assert [row.fact.text for user, row in own if not _true(row, truth[user])] == []
    assert doubled <= 0.02 * len(kept)
    assert len(own) >= 8 * USERS * 0.9


def _save(user: str, fact: NewFact, known: list[Row], number: int, now: datetime) -> list[Row]:
    plan = plan_save(
        Owner("memory", user_id=user),
        [fact],
        WrittenBy(),
        known=known,
        vectors=[None],
        new_id=lambda place: f"f{number}-{place}",
        now=now,
    )
    gone = {(one.fact_id, one.version) for one in plan.retired}
    return [row for row in (*known, *plan.inserts) if (row.fact.fact_id, row.fact.version) not in gone]


def _true(row: Row, claims: set[str]) -> bool:
    return any(row.words.plain.endswith(claim) for claim in claims)
