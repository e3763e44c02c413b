"""An extractor that invents, repeats and echoes leaves next to no junk, and nothing invented as the user's word."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from wayline.contracts.memory import CAPS, NewFact, Quoted, WrittenBy
from wayline.retrieval.memory.plan_save import Owner, Row, plan_save

SAVES = 10_000
USERS = 100
INVENTED, ECHOED = 0.3, 0.2
"""Shares of the saves; an echo is what the model was told from memory, said back."""
JUNK_MAX = 0.02
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

    def save(self, fact: NewFact, number: int) -> None:
        plan = plan_save(
            Owner("memory", user_id=self.name),
            [fact],
            WrittenBy(job_id=f"j{number}"),
            known=self.rows,
            vectors=[None],
            new_id=lambda place: f"f{number}-{place}",
            now=BEGAN + timedelta(minutes=number),
        )
        gone = {(one.fact_id, one.version) for one in plan.retired}
        kept = [*self.rows, *plan.inserts]
        self.rows = [row for row in kept if (row.fact.fact_id, row.fact.version) not in gone]

    def own(self) -> list[Row]:
        """Return what counts as the user's word: only that is ever told to a model unasked."""
        return [row for row in self.rows if row.fact.trust == "own"]

    def junk(self) -> list[str]:
        """Return what counts as the user's word and is doubled, or was never said."""
        own = self.own()
        untrue = [row.fact.text for row in own if not any(row.words.plain.endswith(claim) for claim in self.said)]
        once = {frozenset(row.words.claims) for row in own}
        return [*untrue, *("doubled" for _ in range(len(own) - len(once)))]


def test_of_an_inventing_extractor_little_junk_stays_and_none_as_own():
    chance = random.Random(7)
    talks = [Talk(f"u{number}") for number in range(USERS)]
    for number in range(SAVES):
        talk = chance.choice(talks)
        talk.save(_extracted(talk, number, chance), number)

    own = sum(len(talk.own()) for talk in talks)
    inferred = [row.fact for talk in talks for row in talk.rows if row.fact.trust == "inferred"]
    assert own >= CAPS["core"] * USERS * 0.9
    assert [text for talk in talks for text in talk.junk() if text != "doubled"] == []
    assert sum(len(talk.junk()) for talk in talks) <= JUNK_MAX * own
    assert {fact.tier for fact in inferred} == {"context"}
    assert max(fact.confidence for fact in inferred) <= 0.5


def _extracted(talk: Talk, number: int, chance: random.Random) -> NewFact:
    """Return what the extractor saves next: what was said, an echo of a memory, or an invention."""
    kind, claim = chance.random(), f"{chance.choice(VERBS)} {chance.choice(THINGS)}"
    found = Quoted(job_id=f"j{number}", seq=1)
    quote, quoted = f"I {claim}", found
    if kind < INVENTED:
        # It makes up the quote, too, and no log has it; or it quotes what was said, which is about something else.
        quote, quoted = chance.choice([(f"I {claim}", None), (SMALL_TALK, found)])
    elif kind < INVENTED + ECHOED and talk.rows:
        told = chance.choice(talk.rows).fact
        quote, quoted, claim = told.text, None, told.text
    else:
        talk.said.add(claim)
    text = chance.choice(LEADS).format(claim)
    return NewFact(text=text, category="profile", tier="core", quote=quote, quoted=quoted)
