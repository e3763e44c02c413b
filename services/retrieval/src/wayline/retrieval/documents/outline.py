"""Find what stands above a place in a text: headings, a table's header, the lines that begin a block of code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

HEADINGS_MAX = 6
HEADING_CHARS_MAX = 200
HEADER_CHARS_MAX = 500
"""Of a table: of a longer first line each passage would hold too much."""
ROWS_TO_TELL = 2
"""Lines of a table that tell whether it has a header."""
TAB_WIDTH = 4

_UNDERLINE = re.compile(r"(=+|-{3,})[ \t]*+")
_FENCE = re.compile(r"[ \t]{0,3}(```+|~~~+)")
_TOP_LEVEL = re.compile(r"\n(?:[ \t]*+\n)++(?=[^\s)\]}])")
_FRONT_MATTER = ("---", "+++")
_PROPERTY = re.compile(r"\s*+(?:#.*+\s++)*+[\w.-]++[ \t]*+[:=]")
FRONT_MATTER_CHARS_MAX = 20_000


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of a text and the headings above it, outermost first."""

    start: int
    end: int
    headings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Where a table stands, and the line that names its columns."""

    start: int
    end: int
    header: str


def markdown_sections(text: str) -> list[Section]:
    """Return the stretches between Markdown headings, each beginning with its own heading."""
    sections: list[Section] = []
    path: list[tuple[int, str]] = []
    start = 0
    for offset, level, title in _headings(text):
        if offset > start:
            sections.append(Section(start, offset, _path(path)))
        path = [(depth, name) for depth, name in path if depth < level]
        path.append((level, title))
        start = offset
    sections.append(Section(start, len(text), _path(path)))
    return sections


def _path(path: list[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(name[:HEADING_CHARS_MAX] for _, name in path if name)[-HEADINGS_MAX:]


def _headings(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield offset, level and title of each heading outside code fences and front matter."""
    fence, offset, previous = "", 0, (0, "")
    within = front_matter_end(text)
    for line in text.splitlines(keepends=True):
        bare = line.rstrip("\r\n")
        if offset < within:
            bare = ""
        if opened := _FENCE.match(bare):
            mark = opened[1]
            if not fence:
                fence = mark
            elif mark[0] == fence[0] and len(mark) >= len(fence):
                fence = ""
        elif not fence:
            if found := _heading(bare):
                yield offset, *found
            elif previous[1].strip() and _UNDERLINE.fullmatch(bare) and not _heading(previous[1]):
                yield previous[0], 1 if bare[0] == "=" else 2, previous[1].strip()
        # A table's rule or a list under a line of text is no heading's underline.
        previous = (offset, "" if fence or bare.lstrip()[:1] in {"|", "-", "*", ">"} else bare)
        offset += len(line)


def _heading(line: str) -> tuple[int, str] | None:
    """Return level and title of a line that is a heading with signs."""
    # By hand: a pattern for this takes a day over a line of a million spaces.
    level = len(line) - len(line.lstrip("#"))
    if not 1 <= level <= 6 or line[level : level + 1] not in {" ", "\t"}:
        return None
    return level, line[level:].strip().rstrip("#").rstrip()


def front_matter_end(text: str) -> int:
    """Return where the front matter of a page ends, which names its properties; 0: it has none."""
    mark = text[:3]
    if mark not in _FRONT_MATTER or text[3:4] not in {"\n", "\r"} or not _PROPERTY.match(text, 4):
        return 0
    closed = re.compile(rf"^{re.escape(mark)}[ \t]*+$", re.M).search(text, 4, FRONT_MATTER_CHARS_MAX)
    return closed.end() if closed else 0


def tables(text: str) -> Iterator[Table]:
    """Yield the tables of a Markdown text that have a header: lines that begin with a bar, the second a rule."""
    if "|" not in text:
        return
    offset, first = 0, 0
    rows: list[str] = []
    for line in [*text.splitlines(keepends=True), ""]:
        bare = line.strip()
        if bare.startswith("|"):
            first = first if rows else offset
            rows = [*rows, bare] if len(rows) < ROWS_TO_TELL else rows
        else:
            if len(rows) == ROWS_TO_TELL and not rows[1].strip("|-: \t") and len(rows[0]) <= HEADER_CHARS_MAX:
                yield Table(first, offset, rows[0])
            rows = []
        offset += len(line)


def top_level_blocks(text: str) -> list[Section]:
    """Return the stretches of code that begin, after an empty line, with a line that is not indented."""
    starts = [0, *(found.end() for found in _TOP_LEVEL.finditer(text)), len(text)]
    return [Section(start, end, ()) for start, end in pairwise(starts) if end > start]


def code_outline(text: str, starts: Sequence[int]) -> list[tuple[str, ...]]:
    """Return, for places in code in their order, the lines that begin the blocks around each: by indentation alone.

    No language is parsed: what is indented deeper than the nearest line above it is taken to be inside of that.
    """
    outline: list[tuple[str, ...]] = []
    path: list[tuple[int, str]] = []
    offset, wanted = 0, iter(starts)
    place = next(wanted, None)
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        if bare:
            indent = len(line.expandtabs(TAB_WIDTH)) - len(line.expandtabs(TAB_WIDTH).lstrip())
            while path and path[-1][0] >= indent:
                path.pop()
            above = tuple(name for _, name in path)[-HEADINGS_MAX:]
            # A line that only opens or closes a block says nothing of it.
            if any(character.isalpha() for character in bare[:HEADING_CHARS_MAX]):
                path.append((indent, bare[:HEADING_CHARS_MAX]))
        else:
            above = tuple(name for _, name in path)[-HEADINGS_MAX:]
        offset += len(line)
        while place is not None and place < offset:
            outline.append(above)
            place = next(wanted, None)
    outline.extend(() for _ in range(len(starts) - len(outline)))
    return outline
