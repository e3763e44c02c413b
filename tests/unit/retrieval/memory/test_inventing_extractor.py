"""An extractor that invents, repeats and echoes leaves next to no junk, and nothing invented as the user's word."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from wayline.contracts.memory import CAPS, NewFact, Quoted, WrittenBy
from wayline.executor.decide.lexical_support import is_unsaid
from wayline.retrieval.memory.plan_save import Owner, Row, plan_save
from wayline.testkit.walks import length

SAVES, USERS = length(10_000, short=1_500), length(100, short=15)
INVENTED, ECHOED = 0.3, 0.2
"""Shares of the saves; an echo is what the model was told from memory, said back."""
UNQUOTED = 0.2
"""Of what was said the share that it quotes nothing for."""
JUNK_MAX = 0.02
"""Of all that is kept."""
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
VERBS = ("plays", "collects", "repairs", "sells", "paints", "studies")
THINGS = ("cellos", "stamps", "bicycles", "maps", "clocks", "kites", "lamps", "boats", "roses", "drums")
LEADS = ("The user {}", "User {}.", "{}")
SMALL_TALK = "Good morning, could you have a look at my calendar please?"


@dataclass
class Talk:
    """What one user has said, and what is remembered of it."""

    name: str
    said: set[str] = field(default_factory=set)
    rows: list[Row] = field(default_factory=list)

    def save(self, fact: NewFact, number: int, heard: str) -> None:
        """Save a fact as in a job in which the user has said this."""
        unsaid = (0,) if is_unsaid(fact.text, by_user=[heard]) else ()
        plan = plan_save(
            Owner("memory", user_id=self.name),
            [fact],
            WrittenBy(job_id=f"j{number}", unsaid=unsaid),
            known=self.rows,
            vectors=[None],
            new_id=lambda place: f"f{number}-{place}",
            now=BEGAN + timedelta(minutes=number),
        )
        gone = {(one.fact_id, one.version) for one in plan.retired}
        kept = [*self.rows, *plan.inserts]
        self.rows = [row for row in kept if (row.fact.fact_id, row.fact.version) not in gone]

    def own(self) -> list[Row]:
        return [row for row in self.rows if row.fact.trust == "own"]

    def untrue(self, rows: Sequence[Row]) -> list[str]:
        """Return what was never said."""
        return [row.fact.text for row in rows if not any(row.words.plain.endswith(claim) for claim in self.said)]

    def doubled(self) -> int:
        """Return how many facts are there once more."""
        return len(self.rows) - len({frozenset(row.words.claims) for row in self.rows})


def test_of_an_inventing_extractor_little_junk_stays_and_none_as_own():
    chance = random.Random(7)
    talks = [Talk(f"u{number}") for number in range(USERS)]
    for number in range(SAVES):
        talk = chance.choice(talks)
        fact, heard = _extracted(talk, number, chance)
        talk.save(fact, number, heard)

    own = sum(len(talk.own()) for talk in talks)
    kept = sum(len(talk.rows) for talk in talks)
    inferred = [row.fact for talk in talks for row in talk.rows if row.fact.trust == "inferred"]
    assert own >= CAPS["core"] * USERS * 0.9
    assert [text for talk in talks for text in talk.untrue(talk.own())] == []
    assert sum(len(talk.untrue(talk.rows)) + talk.doubled() for talk in talks) <= JUNK_MAX * kept
    assert {fact.tier for fact in inferred} == {"context"}
    assert max(fact.confidence for fact in inferred) <= 0.5
    assert len(inferred) >= CAPS["context"] * USERS * 0.5


def _extracted(talk: Talk, number: int, chance: random.Random) -> tuple[NewFact, str]:
    """Return what the extractor saves next, and what the user said before that."""
    kind, claim = chance.random(), f"{chance.choice(VERBS)} {chance.choice(THINGS)}"
    found = Quoted(job_id=f"j{number}", seq=1)
    heard, quote, quoted = f"{SMALL_TALK} I {claim} and you know that.", f"I {claim}", found
    if kind < INVENTED:
        # It makes up the quote, too, and no log has it; or it quotes what was said, which is about something else.
        heard = SMALL_TALK
        quote, quoted = chance.choice([(f"I {claim}", None), (SMALL_TALK, found)])
    elif kind < INVENTED + ECHOED and talk.rows:
        told = chance.choice(talk.rows).fact
        heard, quote, quoted, claim = SMALL_TALK, told.text, None, told.text
    else:
        talk.said.add(claim)
        # What it has no quote for counts as inferred, and is kept because its words were said.
        quote, quoted = (quote, quoted) if chance.random() > UNQUOTED else (None, None)
    text = chance.choice(LEADS).format(claim)
    return NewFact(text=text, category="profile", tier="core", quote=quote, quoted=quoted), heard
