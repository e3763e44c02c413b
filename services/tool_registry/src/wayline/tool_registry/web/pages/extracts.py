"""Choose what of a page is shown: the passages that fit a question, in the page's own order."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

Detail = Literal["brief", "detailed", "full"]

CHARS_MAX: dict[Detail, int] = {"brief": 2_000, "detailed": 8_000, "full": 40_000}
"""Of one page."""
PASSAGE_CHARS = 700
LEFT_OUT = "[…]"
K1, B = 1.2, 0.75
"""The usual constants of BM25."""

_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
"""Of scripts that put no spaces between words."""


def extract(text: str, query: str | None, detail: Detail) -> str:
    """Return the text itself where it is short enough, else what fits the query best, else its beginning."""
    limit = CHARS_MAX[detail]
    if len(text) <= limit:
        return text
    passages = split(text)
    scores = rank(passages, query) if query else [0.0] * len(passages)
    if not any(scores):
        return f"{_cut(text, limit)}\n\n{LEFT_OUT}"
    return _joined(passages, _chosen(passages, scores, limit), limit)


def split(text: str) -> list[str]:
    """Cut a text into passages of whole paragraphs; a heading stays with what follows it."""
    passages: list[str] = []
    current = ""
    for block in (block.strip() for block in re.split(r"\n\s*\n", text)):
        for part in _parts(block):
            heading = part.startswith("#")
            if current and (len(current) + len(part) > PASSAGE_CHARS or (heading and not current.startswith("#"))):
                passages.append(current)
                current = ""
            current = f"{current}\n\n{part}" if current else part
    return [*passages, current] if current else passages


def rank(passages: Sequence[str], query: str) -> list[float]:
    """Return the BM25 score of each passage for a query."""
    counts = [Counter(words(passage)) for passage in passages]
    lengths = [max(1, count.total()) for count in counts]
    mean = sum(lengths) / max(1, len(lengths))
    scores = [0.0] * len(passages)
    for word in set(words(query)):
        holding = sum(word in count for count in counts)
        weight = math.log(1 + (len(passages) - holding + 0.5) / (holding + 0.5))
        for n, count in enumerate(counts):
            if times := count[word]:
                scores[n] += weight * times * (K1 + 1) / (times + K1 * (1 - B + B * lengths[n] / mean))
    return scores


def words(text: str) -> list[str]:
    """Return the words of a text in one form: no case, no plural s, pairs of characters where nothing is spaced."""
    found: list[str] = []
    for word in _WORD.findall(text.casefold()):
        if _UNSPACED.search(word):
            found += [word[n : n + 2] for n in range(max(1, len(word) - 1))]
        else:
            found.append(word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word)
    return found


def _parts(block: str) -> list[str]:
    """Cut a block that is far too long for a passage at its lines, else anywhere."""
    if len(block) <= 2 * PASSAGE_CHARS:
        return [block] if block else []
    parts: list[str] = []
    current = ""
    for line in block.split("\n"):
        for at in range(0, len(line), PASSAGE_CHARS):
            piece = line[at : at + PASSAGE_CHARS]
            if current and len(current) + len(piece) > PASSAGE_CHARS:
                parts.append(current)
                current = ""
            current = f"{current}\n{piece}" if current else piece
    return [*parts, current] if current else parts


def _chosen(passages: Sequence[str], scores: Sequence[float], limit: int) -> list[int]:
    room, chosen = limit, []
    for n in sorted(range(len(passages)), key=lambda n: (-scores[n], n)):
        if scores[n] <= 0:
            break
        cost = len(passages[n]) + len(LEFT_OUT) + 4
        if cost <= room or not chosen:
            chosen.append(n)
            room -= cost
    return sorted(chosen)


def _joined(passages: Sequence[str], chosen: Sequence[int], limit: int) -> str:
    parts: list[str] = [] if chosen[0] == 0 else [LEFT_OUT]
    for before, n in zip([chosen[0] - 1, *chosen], chosen, strict=False):
        if n > before + 1:
            parts.append(LEFT_OUT)
        parts.append(_cut(passages[n], limit))
    if chosen[-1] < len(passages) - 1:
        parts.append(LEFT_OUT)
    return "\n\n".join(parts)


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    head = text[:limit]
    space = head.rfind(" ", limit - 100)
    return head[:space] if space > 0 else head
