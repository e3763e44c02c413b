"""Passages hold whole answers: of public questions whose answers' places are known, the best passages cover most."""

from __future__ import annotations

import gzip
import math
import re
from collections import Counter

from tests.evals.shared import needed, rows
from wayline.retrieval.documents.chunking import Passage, Size, chunk

FOLDER = "chunking-chroma-dev"
TOP = 5
RECALL_MIN = 0.91
"""Of the answers' characters; slices of 1,000 characters have .926 with a tenth less precision."""
PRECISION_MIN = 0.052
_WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    return [word.rstrip("s") for word in _WORD.findall(text.lower()) if len(word) > 2]


class Ranking:
    """BM25 over the passages of one text."""

    def __init__(self, passages: list[Passage]) -> None:
        self.passages = passages
        self._counts = [Counter(words(" ".join(one.headings) + " " + one.text)) for one in passages]
        self._held = Counter(word for counts in self._counts for word in counts)
        self._lengths = [counts.total() for counts in self._counts]
        self._mean = sum(self._lengths) / len(passages)

    def best(self, question: str) -> list[Passage]:
        asked = words(question)
        scores = [self._score(asked, at) for at in range(len(self.passages))]
        return [self.passages[at] for at in sorted(range(len(scores)), key=lambda at: -scores[at])[:TOP]]

    def _score(self, asked: list[str], at: int) -> float:
        counts, all_of_them = self._counts[at], len(self.passages)
        norm = 1.2 * (0.25 + 0.75 * self._lengths[at] / self._mean)
        return sum(
            math.log(1 + (all_of_them - self._held[word] + 0.5) / (self._held[word] + 0.5))
            * counts[word] / (counts[word] + norm)
            for word in asked
            if counts[word]
        )  # fmt: skip


def test_the_best_passages_cover_the_answers():
    questions = rows(FOLDER, "questions.jsonl.gz")
    rankings: dict[str, Ranking] = {}
    recalls, precisions = list[float](), list[float]()
    for question in questions:
        name = question["corpus"]
        if name not in rankings:
            with gzip.open(needed(FOLDER, f"{name}.md.gz"), "rt", encoding="utf-8", newline="") as file:
                rankings[name] = Ranking(chunk(file.read(), size=Size(1_000, 256), markdown=True))
        answer = {at for one in question["references"] for at in range(one["start_index"], one["end_index"])}
        shown = {at for one in rankings[name].best(question["question"]) for at in range(one.start, one.end)}
        recalls.append(len(answer & shown) / len(answer))
        precisions.append(len(answer & shown) / len(shown))

    recall, precision = sum(recalls) / len(recalls), sum(precisions) / len(precisions)
    assert (recall >= RECALL_MIN, precision >= PRECISION_MIN) == (True, True), f"{recall:.3f}, {precision:.3f}"
