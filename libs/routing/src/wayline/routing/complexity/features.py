"""What can be counted in a task's text that tells how hard it is. Pure; the words are data."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import log, log1p
from zlib import crc32

from wayline.routing.complexity.phrases import Phrases, any_of

READ_MAX_CHARS = 4_000
"""Of a longer text the beginning and the end are read: that is where what to do is said. Reading them takes less than a
millisecond."""
FEW_GRAMS = 100
"""Fewer hashed words than this say little, whatever they are."""

_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*(?:\+\+|#)?|\d[\d,.]*")
_ASCII_WORD = re.compile(r"[a-z]+(?:['-][a-z]+)*(?:\+\+|#)?|[0-9][0-9,.]*")
"""The same words of a text in lower case that has ASCII alone: twice as fast."""
_NOT_IN_WORDS = {code: " " for code in range(128) if chr(code) not in "abcdefghijklmnopqrstuvwxyz0123456789'-+#.,"}
_AFTER_A_WORD = frozenset(".,'-")
"""Characters that stand within words and numbers, and belong to no word where they end it."""
_SENTENCE_END = re.compile(r"[.!?;\n](?:(?<=\n)|\s)")
_SENTENCE = re.compile(r"[^\n]+?(?:[.!?:](?=\s)|$)|[^\n]+", re.MULTILINE)
_OF_A_TASK = re.compile(r"[?\d\"“”«»`=<>]")
_NAME = re.compile(r"[a-z,] [A-Z]")
_PERSON = re.compile(r"\b(?:i|my|me|mine|he|she|his|her|hers|him)\b")
SIGNS_OF_WORK = 2
"""A sentence with so many signs of a task is no mere direction, however it begins."""

Lexicons = Mapping[str, Sequence[str]]
"""The names of the features that a word is a sign of."""


def excerpt(text: str) -> str:
    """Return the part of a text that is read."""
    if len(text) <= READ_MAX_CHARS:
        return text
    return f"{text[: READ_MAX_CHARS // 2]}\n{text[-READ_MAX_CHARS // 2 :]}"


def beginning(openers: Iterable[str]) -> re.Pattern[str]:
    """Match a sentence in lower case that begins with one of these words."""
    return re.compile(rf"\W*{any_of(openers)}\b")


def asked(text: str, *, directs: Callable[[str], bool], signs: Callable[[str], int]) -> str:
    """Return what is asked in a text, without a preamble that says how to answer.

    A preamble has a sentence that `directs`. It goes on to the end of that line, or until a sentence has to do with a
    task: `signs` of one, a number, a question, a name, a quotation, the writer's own affairs. The last sentence is
    always asked.
    """
    ends, directed_line, whole = 0, -1, len(text.rstrip())
    for line, found in _sentences(text):
        sentence = found.group()
        direction = directs(sentence) and signs(sentence) < SIGNS_OF_WORK
        if found.end() >= whole:
            # `Answer the following: what is …?` is a direction with a request behind it.
            head, colon, rest = sentence.partition(": ")
            return text[found.start() + len(head + colon) :] if direction and rest.strip() else text[ends:]
        if not direction and (of_a_task(sentence) or signs(sentence)):
            break
        if direction:
            directed_line = line
        if line == directed_line:
            ends = found.end()
    return text[ends:]


def of_a_task(sentence: str) -> bool:
    """Return whether a sentence has a number, a question, a name, a quotation, or the writer's own affairs."""
    return any(sign.search(sentence) for sign in (_OF_A_TASK, _NAME)) or bool(_PERSON.search(sentence.lower()))


def _sentences(text: str) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield the sentences of a text, each with the number of its line."""
    line, read = 0, 0
    for found in _SENTENCE.finditer(text):
        line += text.count("\n", read, found.start())
        read = found.start()
        yield line, found


def words_of(text: str) -> list[str]:
    """Split into words in lower case; every number is the same word."""
    lowered = text.lower().replace("\u2019", "'")
    if not lowered.isascii():
        return _numbers_alike(_WORD.findall(lowered))
    words: list[str] = []
    # Split first, and matched only where a piece is more than letters: half the time of one search over all.
    for piece in lowered.translate(_NOT_IN_WORDS).split():
        if piece.isalpha():
            words.append(piece)
        elif piece[-1] in _AFTER_A_WORD and (word := piece[:-1]).isalpha():
            words.append(word)
        else:
            words += _numbers_alike(_ASCII_WORD.findall(piece))
    return words


def _numbers_alike(words: Iterable[str]) -> list[str]:
    return ["#" if word[0].isdigit() else word for word in words]


def lexicon(lists: Mapping[str, str]) -> Lexicons:
    """Turn lists of words by feature around: features by word."""
    signs: dict[str, list[str]] = {}
    for name, words in lists.items():
        for word in words.split():
            signs.setdefault(word, []).append(name)
    return signs


def count(text: str, words: Sequence[str], lexicons: Lexicons, phrases: Phrases) -> dict[str, float]:
    """Count the features by name: logarithms of counts, so that the tenth sign says less than the first."""
    found = phrases.count(text.lower())
    counted = Counter(words)
    for word in counted.keys() & lexicons.keys():
        for name in lexicons[word]:
            found[name] = found.get(name, 0) + counted[word]
    return {name: log1p(n) for name, n in found.items()} | {
        "words": log1p(len(words)),
        "sentences": log(1 + len(_SENTENCE_END.findall(text.strip()))),
        "numbers": log1p(counted["#"]),
    }


def grams(words: Sequence[str], bits: int) -> set[int]:
    """Hash the words and pairs of words: what is left of the vocabulary when no list of words is kept."""
    mask = (1 << bits) - 1
    if not words:
        return set()
    # No word has white space in it: joined, they are encoded at once.
    alone = [*map(crc32, "\n".join(words).encode().split(b"\n"))]
    # The hash of a pair goes on from that of its first word.
    pairs = map(crc32, "\n ".join(words).encode().split(b"\n")[1:], alone)
    return {found & mask for found in {*alone, *pairs}}


def gram_share(n: int) -> float:
    """Weigh one of `n` hashed words: a long text says no more than a short one, and three words little."""
    return (n + FEW_GRAMS) ** -0.5


def gram_sum(found: set[int], weights: Sequence[int]) -> float:
    """Return what the hashed words of a text add up to."""
    return sum(map(weights.__getitem__, found)) * gram_share(len(found))
