"""Cut a text into passages at its own seams: headings first, then paragraphs, sentences, words.

A passage is always one exact slice of the text, so that it can be quoted and found again; what gives it context, the
headings it stands under, travels beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import ceil

from wayline.retrieval.documents.outline import Section, code_outline, markdown_sections, tables, top_level_blocks

SMALL = 0.25
"""A section smaller than this share of a passage joins its neighbour: a lone heading answers nothing."""
WORDS_TOGETHER = 1 / 16
"""The share of a passage that the words of a long sentence are taken together to: one by one they are too many."""
ASCII_PER_TOKEN = 4
TOKENS_PER_WIDE_BYTE = 0.3
"""Of characters beyond ASCII in UTF-8: about .6 tokens for a letter of Cyrillic or Arabic, .9 for a Chinese one."""

CountTokens = Callable[[str], int]

_PARAGRAPH = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_LINE = re.compile(r"\n")
# The closing quote or bracket belongs to the sentence; scripts without spaces end theirs with a full-width stop.
_STOP = re.compile(
    "(?<![.!?\u2026])[.!?\u2026\u061f\u06d4\u0964\u0965\u0589\u1362\u104b\u17d4\u17d5\u037e]++[\"'\u201d\u2019\u00bb)\\]]*+\\s++"
    "|[\u3002\uff01\uff1f\uff61]++[\"'\u201d\u2019\u00bb)\\]\u300d\u300f\uff09\u3011]*+\\s*+"
)
_WORD = re.compile(r"\s+")
STRETCH_CHARS = 100_000
"""Of a text that are looked at in one go: no other thread runs meanwhile."""
SEAM_CHARS_MAX = 1_000
"""Of a seam; a longer one is found where it is not cut by the end of a stretch."""
WORD_CHARS_MAX = 40
_LAST_WORD = re.compile(r"\S+$")
ABBREVIATION_MAX = 4
"""Letters of a word that ends with a stop within a sentence, as many do before a small letter: etc., resp."""


def estimated_tokens(text: str) -> int:
    """Return about how many tokens an embedder makes of a text, by its script."""
    if text.isascii():
        return -(-len(text) // ASCII_PER_TOKEN)
    plain = len(text.encode("ascii", "ignore"))
    return ceil(plain / ASCII_PER_TOKEN + (len(text.encode("utf-8", "replace")) - plain) * TOKENS_PER_WIDE_BYTE)


@dataclass(frozen=True, slots=True)
class Size:
    """How much one passage may hold, in characters and in tokens of the embedder."""

    chars_max: int
    tokens_max: int | None = None
    count: CountTokens = estimated_tokens

    def tokens(self, text: str, start: int, end: int) -> int:
        """Return the tokens of a slice; none where it has too many characters anyway, or tokens do not count."""
        if self.tokens_max is None or end - start > self.chars_max:
            return 0
        return self.count(text[start:end])

    def share(self, chars: int, tokens: int) -> float:
        """Return how much of a passage so many characters and tokens take."""
        return max(chars / self.chars_max, 0 if self.tokens_max is None else tokens / self.tokens_max)


@dataclass(frozen=True, slots=True)
class Passage:
    """A slice `text == document[start:end]` and the headings above it, outermost first."""

    text: str
    start: int
    end: int
    headings: tuple[str, ...] = ()


_Piece = tuple[int, int, int]
"""Where a piece of the text begins and ends, and its tokens."""
_Seam = Callable[[str, int, int], Iterator[int]]
"""Yields where parts of a stretch end."""


def chunk(text: str, *, size: Size, markdown: bool = False, code: bool = False) -> list[Passage]:
    """Cut a text into passages of at most a size, in order, leaving out only white space.

    A passage that begins inside a table stands under the line that names its columns; one of code under the lines that
    begin what it is inside of.
    """
    sections = _sections(text, markdown=markdown, code=code)
    seams = _seams(size, code=code)
    passages: list[Passage] = []
    for section in _joined(sections, small=int(size.chars_max * SMALL), chars_max=size.chars_max):
        for start, end in _cut(text, section.start, section.end, size, seams):
            passages.append(Passage(text[start:end], start, end, section.headings))
    if markdown:
        return _under_tables(text, passages)
    return _under_outline(text, passages) if code else passages


def _sections(text: str, *, markdown: bool, code: bool) -> list[Section]:
    if markdown:
        return markdown_sections(text)
    return top_level_blocks(text) if code else [Section(0, len(text), ())]


def _under_tables(text: str, passages: list[Passage]) -> list[Passage]:
    """Put passages that begin inside a table under its header."""
    found = tables(text)
    table = next(found, None)
    placed: list[Passage] = []
    for passage in passages:
        while table is not None and table.end <= passage.start:
            table = next(found, None)
        inside = table is not None and table.start < passage.start < table.end
        headings = (*passage.headings, table.header) if inside and table is not None else ()
        placed.append(Passage(passage.text, passage.start, passage.end, headings or passage.headings))
    return placed


def _under_outline(text: str, passages: list[Passage]) -> list[Passage]:
    starts = code_outline(text, [passage.start for passage in passages])
    return [
        Passage(passage.text, passage.start, passage.end, above)
        for passage, above in zip(passages, starts, strict=True)
    ]


def _joined(sections: list[Section], *, small: int, chars_max: int) -> list[Section]:
    """Give small sections to the one after them, under the headings they share or the longer one's."""
    joined: list[Section] = []
    for section in sections:
        last = joined[-1] if joined else None
        if (
            last is not None
            and min(last.end - last.start, section.end - section.start) < small
            and section.end - last.start <= chars_max
        ):
            above = last.headings == section.headings[: len(last.headings)]
            headings = section.headings if above else _shared(last.headings, section.headings)
            joined[-1] = Section(last.start, section.end, headings)
        else:
            joined.append(section)
    return joined


def _shared(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    shared = 0
    while shared < min(len(one), len(other)) and one[shared] == other[shared]:
        shared += 1
    return one[:shared] or one


def _cut(text: str, start: int, end: int, size: Size, seams: tuple[_Seam, ...]) -> Iterator[tuple[int, int]]:
    """Yield slices of a stretch, of like size, each ending at the best seam there is."""
    start, end = _trimmed(text, start, end)
    if start >= end:
        return
    total = size.share(end - start, size.tokens(text, start, end))
    if total <= 1:
        yield start, end
        return
    # Like sizes, rather than full ones and a crumb at the end.
    aim = total / ceil(total)
    pieces = _pieces(text, start, end, size, seams)
    open_start, open_end, open_tokens = next(pieces)
    for piece_start, piece_end, tokens in pieces:
        chars = piece_end - open_start
        # Between two pieces is a line end or a space, which may be a token too. Only where that decides is it counted.
        grown_tokens = open_tokens + tokens + 1
        if size.share(chars, grown_tokens) > size.share(chars, 0):
            grown_tokens = size.tokens(text, open_start, piece_end)
        grown = size.share(chars, grown_tokens)
        nearer = abs(grown - aim) <= abs(size.share(open_end - open_start, open_tokens) - aim)
        if grown <= 1 and (grown <= aim or nearer):
            open_end, open_tokens = piece_end, grown_tokens
        else:
            yield open_start, open_end
            open_start, open_end, open_tokens = piece_start, piece_end, tokens
    yield open_start, open_end


def _pieces(text: str, start: int, end: int, size: Size, seams: tuple[_Seam, ...]) -> Iterator[_Piece]:
    """Yield the smallest parts that packing may use: whole paragraphs where they fit, else lines, sentences, words."""
    if not seams:
        yield from _slices(text, start, end, size)
        return
    for part_start, part_end in _parts(text, start, end, seams[0]):
        tokens = size.tokens(text, part_start, part_end)
        if size.share(part_end - part_start, tokens) <= 1:
            yield part_start, part_end, tokens
        else:
            yield from _pieces(text, part_start, part_end, size, seams[1:])


def _slices(text: str, start: int, end: int, size: Size) -> Iterator[_Piece]:
    """Yield slices of what has no seam at all."""
    at = start
    while at < end:
        length = min(size.chars_max, end - at)
        while length > 1 and size.share(length, size.tokens(text, at, at + length)) > 1:
            length = (length + 1) // 2
        yield at, at + length, size.tokens(text, at, at + length)
        at += length


def _parts(text: str, start: int, end: int, seam: _Seam) -> Iterator[tuple[int, int]]:
    at = start
    for found in seam(text, start, end):
        part = _trimmed(text, at, found)
        if part[0] < part[1]:
            yield part
        at = found
    part = _trimmed(text, at, end)
    if part[0] < part[1]:
        yield part


def _seams(size: Size, *, code: bool) -> tuple[_Seam, ...]:
    """Return what a text is cut at, the best first."""
    together = max(1, int(size.chars_max * WORDS_TOGETHER))
    words = (partial(_word_ends, together=together), partial(_word_ends, together=1))
    lines = (partial(_ends, _PARAGRAPH), partial(_ends, _LINE))
    return (*lines, *words) if code else (*lines, _sentence_ends, *words)


def _ends(pattern: re.Pattern[str], text: str, start: int, end: int) -> Iterator[int]:
    return (found.end() for found in _matches(pattern, text, start, end))


def _matches(pattern: re.Pattern[str], text: str, start: int, end: int) -> Iterator[re.Match[str]]:
    """Yield a pattern's matches, looking at a bounded stretch at a time: others wait while one is looked at."""
    at = start
    while at < end:
        stop = min(at + STRETCH_CHARS, end)
        after = at if stop == end else max(at + 1, stop - SEAM_CHARS_MAX)
        for found in pattern.finditer(text, at, stop):
            if found.end() == stop < end and found.start() > at:
                # It may go on beyond the stretch.
                after = found.start()
                break
            after = max(after, found.end())
            yield found
        if stop == end:
            return
        at = after


def _sentence_ends(text: str, start: int, end: int) -> Iterator[int]:
    for found in _matches(_STOP, text, start, end):
        at = found.end()
        may_go_on = text[found.start()] == "." and at < end and text[at].islower()
        if not (may_go_on and _is_abbreviation(text, start, found.start())):
            yield at


def _is_abbreviation(text: str, start: int, end: int) -> bool:
    """Return whether the word that ends here may be a short one, as a stop often follows within a sentence."""
    word = _LAST_WORD.search(text, max(start, end - WORD_CHARS_MAX), end)
    return word is None or len(word[0]) <= ABBREVIATION_MAX or "." in word[0]


def _word_ends(text: str, start: int, end: int, *, together: int) -> Iterator[int]:
    at = start
    while (found := next(_matches(_WORD, text, min(at + together, end), end), None)) is not None:
        yield found.end()
        at = found.end()


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
