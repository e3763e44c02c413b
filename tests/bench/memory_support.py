"""How many true facts the words of a conversation stand behind, and how many of other people's.

A question of a public set with its answer, said as a statement, is a fact in words that nobody said so: a paraphrase.
In the conversation that answers it it is true; in one of somebody else, drawn by lot, it is an invention.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench import page
from wayline.executor.decide.lexical_support import is_unsaid

INVENTED = 0.3
"""Of what the extractor saves."""
ASKING = frozenset(
    "what when where who which how why did does do is are was were would likely many much long often kind type might "
    "could can some any both considered".split()
)


@dataclass(frozen=True)
class Support:
    """Shares of the facts that are kept."""

    true: float
    invented: float

    @property
    def junk(self) -> float:
        """Return the share of inventions among what is kept, of an extractor that invents so many."""
        bad, good = INVENTED * self.invented, (1 - INVENTED) * self.true
        return bad / (bad + good)


@dataclass(frozen=True)
class Claim:
    """A statement, the conversations in which it may have been said, and one in which it was not."""

    text: str
    home: tuple[str, ...]
    foreign: str


def statement(question: str, answer: object) -> str:
    """Return a question and its answer as a statement, without the words that ask."""
    words = [word for word in question.replace("?", "").split() if word.lower() not in ASKING]
    return " ".join([*words, str(answer)])


def locomo(folder: Path) -> tuple[dict[str, list[str]], list[Claim]]:
    """Return the sessions of the conversations, and the claims whose answer is in one of them."""
    sessions: dict[str, list[str]] = {}
    speakers: set[str] = set()
    for turn in lines(folder / "corpus.jsonl.gz"):
        sessions.setdefault(_session(turn["_id"]), []).append(turn["text"])
        speakers.add(turn["speaker"])
    evidence: dict[str, set[str]] = {}
    with gzip.open(folder / "qrels.tsv.gz", "rt", encoding="utf-8") as rows:
        for query_id, turn, _ in (row.split("\t") for row in list(rows)[1:]):
            evidence.setdefault(query_id, set()).add(_session(turn))
    chance, claims = random.Random(1), []
    names = re.compile(rf"\b(?:{'|'.join(sorted(speakers))})(?:'s)?\b")
    for query in lines(folder / "queries.jsonl.gz"):
        found = evidence.get(query["_id"], set())
        if query["category"] == "adversarial" or len(found) != 1 or not query["answer"]:
            continue
        [home] = found
        if home in sessions:
            others = [name for name in sessions if not name.startswith(f"{query['owner']}/")]
            claim = names.sub("", statement(query["text"], query["answer"]))
            claims.append(Claim(claim, (home,), chance.choice(others)))
    return sessions, claims


def bfcl(folder: Path) -> tuple[dict[str, list[str]], list[Claim]]:
    """Return the conversations of the five users, and the claims that their questions and answers make."""
    sessions: dict[str, list[str]] = {}
    for file in sorted(folder.glob("prereq_*.jsonl.gz")):
        user = file.name.removeprefix("prereq_").removesuffix(".jsonl.gz")
        for one in lines(file):
            said = [message for turn in one["question"] for message in turn if message["role"] == "user"]
            sessions[f"{user}/{one['id']}"] = [message["content"] for message in said]
    answers = {one["id"]: one for one in lines(folder / "answers.jsonl.gz")}
    chance, claims = random.Random(1), []
    for question in lines(folder / "questions.jsonl.gz"):
        answer, user = answers[question["id"]], question["scenario"]
        own = [name for name in sessions if name.startswith(f"{user}/")]
        source = str(answer["source"]).strip(". ")[:40]
        home = tuple(name for name in own if source in "\n".join(sessions[name])) or tuple(own)
        foreign = chance.choice([name for name in sessions if name not in own])
        text = statement(question["question"][0][0]["content"], answer["ground_truth"][0])
        claims.append(Claim(text, home, foreign))
    return sessions, claims


def measure(sessions: dict[str, list[str]], claims: list[Claim]) -> Support:
    """Return how much of what is true and of what is invented has the words of its conversation behind it."""
    true = sum(any(not is_unsaid(one.text, by_user=sessions[name]) for name in one.home) for one in claims)
    invented = sum(not is_unsaid(one.text, by_user=sessions[one.foreign]) for one in claims)
    return Support(true / len(claims), invented / len(claims))


SETS = {"memory-locomo-dev": locomo, "memory-bfcl": bfcl}


def report(shared: dict[str, Path]) -> str:
    """Measure the sets that are here, and return the table."""
    rows: list[list[str]] = []
    for name, read in SETS.items():
        if shared[name].exists():
            sessions, claims = read(shared[name])
            found = measure(sessions, claims)
            rows.append([name, f"{len(claims)}", *(f"{one:.1%}" for one in (found.true, found.invented, found.junk))])
    return page.table(["", "facts", "true ones kept", "inventions kept", "junk where 30 % are invented"], rows)


def lines(file: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as found:
        yield from map(json.loads, found)


def _session(turn: str) -> str:
    return turn.rsplit(":", 1)[0]
