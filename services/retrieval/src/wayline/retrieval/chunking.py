"""Cut a text into passages at its own seams: headings first, then paragraphs, sentences, words.

A passage is always one exact slice of the text, so that it can be quoted and found again; what gives it context, the
headings it stands under, travels beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

HEADINGS_MAX = 6
HEADING_CHARS_MAX = 200
SMALL = 0.25
"""A section smaller than this share of a passage joins its neighbour: a lone heading answers nothing."""

_HEADING = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*")
_UNDERLINE = re.compile(r"(=+|-{3,})[ \t]*")
_FENCE = re.compile(r"[ \t]{0,3}(```+|~~~+)")
_PARAGRAPH = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_LINE = re.compile(r"\n")
# The closing quote or bracket belongs to the sentence; scripts without spaces end theirs with a full-width stop.
_SENTENCE = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[A-Z0-9])|(?<=[。！？])")  # noqa: RUF001
_WORD = re.compile(r"\s+")
_SEAMS = (_PARAGRAPH, _LINE, _SENTENCE, _WORD)


@dataclass(frozen=True, slots=True)
class Passage:
    """A slice `text == document[start:end]` and the headings above it, outermost first."""

    text: str
    start: int
    end: int
    headings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Section:
    start: int
    end: int
    headings: tuple[str, ...]


def chunk(text: str, *, chars_max: int, markdown: bool = False) -> list[Passage]:
    """Cut a text into passages of at most `chars_max` characters, in order, leaving out only white space."""
    sections = _sections(text) if markdown else [_Section(0, len(text), ())]
    passages: list[Passage] = []
    for section in _joined(sections, small=int(chars_max * SMALL), chars_max=chars_max):
        for start, end in _cut(text, section.start, section.end, chars_max):
            passages.append(Passage(text[start:end], start, end, section.headings))
    return passages


def _sections(text: str) -> list[_Section]:
    """Return the stretches between Markdown headings, each beginning with its own heading."""
    sections: list[_Section] = []
    path: list[tuple[int, str]] = []
    start = 0
    for offset, level, title in _headings(text):
        if offset > start:
            sections.append(_Section(start, offset, _path(path)))
        path = [(depth, name) for depth, name in path if depth < level]
        path.append((level, title))
        start = offset
    sections.append(_Section(start, len(text), _path(path)))
    return sections


def _path(path: list[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(name[:HEADING_CHARS_MAX] for _, name in path if name)[-HEADINGS_MAX:]


def _headings(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield offset, level and title of each heading outside code fences."""
    fence, offset, previous = "", 0, (0, "")
    for line in text.splitlines(keepends=True):
        bare = line.rstrip("\r\n")
        if opened := _FENCE.match(bare):
            mark = opened[1]
            if not fence:
                fence = mark
            elif mark[0] == fence[0] and len(mark) >= len(fence):
                fence = ""
        elif not fence:
            if found := _HEADING.fullmatch(bare):
                yield offset, len(found[1]), found[2].strip()
            elif previous[1].strip() and _UNDERLINE.fullmatch(bare) and not _HEADING.fullmatch(previous[1]):
                yield previous[0], 1 if bare[0] == "=" else 2, previous[1].strip()
        # A table's rule or a list under a line of text is no heading's underline.
        previous = (offset, "" if fence or bare.lstrip()[:1] in {"|", "-", "*", ">"} else bare)
        offset += len(line)


def _joined(sections: list[_Section], *, small: int, chars_max: int) -> list[_Section]:
    """Give small sections to the one after them, under the headings they share or the longer one's."""
    joined: list[_Section] = []
    for section in sections:
        last = joined[-1] if joined else None
        if (
            last is not None
            and min(last.end - last.start, section.end - section.start) < small
            and section.end - last.start <= chars_max
        ):
            above = last.headings == section.headings[: len(last.headings)]
            headings = section.headings if above else _shared(last.headings, section.headings)
            joined[-1] = _Section(last.start, section.end, headings)
        else:
            joined.append(section)
    return joined


def _shared(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    shared = 0
    while shared < min(len(one), len(other)) and one[shared] == other[shared]:
        shared += 1
    return one[:shared] or one


def _cut(text: str, start: int, end: int, chars_max: int) -> list[tuple[int, int]]:
    """Cut a stretch into slices of like size, each ending at the best seam there is."""
    start, end = _trimmed(text, start, end)
    if start >= end:
        return []
    if end - start <= chars_max:
        return [(start, end)]
    pieces = _pieces(text, start, end, chars_max, 0)
    # Like sizes, rather than full ones and a crumb at the end.
    aim = (end - start) / ceil((end - start) / chars_max)
    slices: list[tuple[int, int]] = []
    open_start, open_end = pieces[0]
    for piece_start, piece_end in pieces[1:]:
        grown = piece_end - open_start
        nearer = abs(grown - aim) <= abs(open_end - open_start - aim)
        if grown <= chars_max and (grown <= aim or nearer):
            open_end = piece_end
        else:
            slices.append((open_start, open_end))
            open_start, open_end = piece_start, piece_end
    slices.append((open_start, open_end))
    return slices


def _pieces(text: str, start: int, end: int, chars_max: int, seam: int) -> list[tuple[int, int]]:
    """Return the smallest parts that packing may use: whole paragraphs where they fit, else lines, sentences, words."""
    pieces: list[tuple[int, int]] = []
    if seam == len(_SEAMS):
        return [(at, min(at + chars_max, end)) for at in range(start, end, chars_max)]
    for part_start, part_end in _parts(text, start, end, _SEAMS[seam]):
        if part_end - part_start <= chars_max:
            pieces.append((part_start, part_end))
        else:
            pieces.extend(_pieces(text, part_start, part_end, chars_max, seam + 1))
    return pieces


def _parts(text: str, start: int, end: int, seam: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    at = start
    for found in seam.finditer(text, start, end):
        part = _trimmed(text, at, found.end())
        if part[0] < part[1]:
            yield part
        at = found.end()
    part = _trimmed(text, at, end)
    if part[0] < part[1]:
        yield part


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
