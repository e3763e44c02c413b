"""A difference as rows of a page: beneath each other or side by side, with the words that differ marked. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

from wayline.console.render.diffs.unified_diff import FileDiff, Hunk, Line

SHOWN_LINES = 400
"""Lines of a card; of more the rest is in the file that one downloads, or on a page of its own."""
PAIRED_MAX_CHARS = 600
"""Of two lines whose words are compared."""
PAIRED_MAX_WORDS = 160
LEAST_ALIKE = 0.35
"""Lines less alike are whole other lines: marks on single words would say nothing."""
COMPARED_MAX_LINES = 2_000
"""Of each of two versions, without what begins and ends both alike."""
CONTEXT_LINES = 3
_WORD = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a line."""

    text: str
    is_marked: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """One line on one side."""

    kind: str
    number: int
    pieces: tuple[Piece, ...]
    ends: bool = True


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table: one side of it is empty where only the other has a line."""

    old: Cell | None
    new: Cell | None


def rows_of(hunk: Hunk, *, split: bool) -> Iterator[Row]:
    """Yield the rows of a hunk; of lines that stand in each other's place the words that differ are marked."""
    for removed, added, same in _blocks(hunk.lines()):
        if same is not None:
            pieces = (Piece(same.text),)
            yield Row(_cell(same, pieces, same.old), _cell(same, pieces, same.new))
            continue
        pairs = [_paired(old, new) for old, new in zip_longest(removed, added)]
        if split:
            yield from (Row(old, new) for old, new in pairs)
        else:
            yield from (Row(old, None) for old, _ in pairs if old)
            yield from (Row(None, new) for _, new in pairs if new)


def _blocks(lines: Iterable[Line]) -> Iterator[tuple[list[Line], list[Line], Line | None]]:
    """Yield what was removed and what was added in its place, or one line that stayed."""
    removed, added = list[Line](), list[Line]()
    for line in lines:
        if line.kind == "removed" and added:
            yield removed, added, None
            removed, added = [], []
        if line.kind == "same":
            if removed or added:
                yield removed, added, None
                removed, added = [], []
            yield [], [], line
        else:
            (removed if line.kind == "removed" else added).append(line)
    if removed or added:
        yield removed, added, None


def _cell(line: Line, pieces: tuple[Piece, ...], number: int | None) -> Cell:
    return Cell(line.kind, number or 0, pieces, line.ends)


def _paired(old: Line | None, new: Line | None) -> tuple[Cell | None, Cell | None]:
    left, right = marked(old.text, new.text) if old and new else ((), ())
    before = _cell(old, left or (Piece(old.text),), old.old) if old else None
    after = _cell(new, right or (Piece(new.text),), new.new) if new else None
    return before, after


def marked(old: str, new: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Return two lines in pieces, those marked that the other has not; nothing where the lines are not alike."""
    if len(old) > PAIRED_MAX_CHARS or len(new) > PAIRED_MAX_CHARS:
        return (), ()
    left, right = _WORD.findall(old), _WORD.findall(new)
    if max(len(left), len(right)) > PAIRED_MAX_WORDS:
        return (), ()
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    if matcher.real_quick_ratio() < LEAST_ALIKE or matcher.ratio() < LEAST_ALIKE:
        return (), ()
    before, after = list[Piece](), list[Piece]()
    for kind, a, b, c, d in matcher.get_opcodes():
        if a < b:
            before.append(Piece("".join(left[a:b]), kind != "equal"))
        if c < d:
            after.append(Piece("".join(right[c:d]), kind != "equal"))
    return tuple(before), tuple(after)


def compared(before: str, after: str, *, name: str = "") -> FileDiff:
    """Return the difference of two texts. Of long ones that have little in common all lines are others."""
    old, new = before.split("\n"), after.split("\n")
    first = _alike(old, new)
    last = min(_alike(old[::-1], new[::-1]), min(len(old), len(new)) - first)
    middle = old[first : len(old) - last], new[first : len(new) - last]
    if max(map(len, middle)) > COMPARED_MAX_LINES:
        steps = [("replace", 0, len(middle[0]), 0, len(middle[1]))]
    else:
        steps = SequenceMatcher(None, *middle).get_opcodes()
    written = [f" {text}" for text in old[:first]]
    for kind, a, b, c, d in steps:
        if kind == "equal":
            written += [f" {text}" for text in middle[0][a:b]]
        else:
            written += [f"-{text}" for text in middle[0][a:b]] + [f"+{text}" for text in middle[1][c:d]]
    written += [f" {text}" for text in old[len(old) - last :]]
    return FileDiff(name, name, list(_near(written)))


def _alike(old: list[str], new: list[str]) -> int:
    """Return how many lines both begin with."""
    return next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))


def _near(written: list[str]) -> Iterator[Hunk]:
    """Yield the lines that were changed with some around them."""
    spans = list[list[int]]()
    for at in (at for at, line in enumerate(written) if line[0] != " "):
        begin, end = max(at - CONTEXT_LINES, 0), min(at + CONTEXT_LINES + 1, len(written))
        if spans and begin <= spans[-1][1]:
            spans[-1][1] = end
        else:
            spans.append([begin, end])
    old = new = 1
    behind = 0
    for begin, end in spans:
        passed, lines = written[behind:begin], written[begin:end]
        old, new = old + _count(passed, " -"), new + _count(passed, " +")
        added, removed = _count(lines, "+"), _count(lines, "-")
        yield Hunk("", lines, old, new, added, removed)
        old, new, behind = old + len(lines) - added, new + len(lines) - removed, end


def _count(written: list[str], signs: str) -> int:
    return sum(line[0] in signs for line in written)
