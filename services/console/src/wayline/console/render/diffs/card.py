"""A difference as a card shows it: whose text it is, its files with the first lines, and the whole as a file. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from wayline.console.render.diffs.diff_rows import SHOWN_LINES, Row, compared, rows_of
from wayline.console.render.diffs.unified_diff import FileDiff, NotADiff, looks_like_diff, parse

COMPARED_MAX_CHARS: Final = 1_000_000
"""Of two versions together that are compared."""
PAIRS: Final = (("before", "after"), ("old_string", "new_string"), ("old_text", "new_text"), ("old_str", "new_str"))
"""Fields of arguments and results that hold two versions of one text."""
DIFFS: Final = ("diff", "patch")
NAMES: Final = ("path", "file_path", "file", "filename", "name")


@dataclass(frozen=True, slots=True)
class ShownFile:
    """One file of a card: hunks with their rows, as far as there is room."""

    diff: FileDiff
    hunks: tuple[tuple[str, tuple[Row, ...]], ...]


@dataclass(frozen=True, slots=True)
class DiffCard:
    """A difference to be shown."""

    files: tuple[FileDiff, ...]
    raw: str
    """What is downloaded; of two versions the difference that was made of them."""
    problem: str = ""
    """Why it is shown as it is."""

    @property
    def added(self) -> int:
        return sum(one.added for one in self.files)

    @property
    def removed(self) -> int:
        return sum(one.removed for one in self.files)

    @property
    def lines(self) -> int:
        return sum(len(hunk.written) for one in self.files for hunk in one.hunks)

    def shown(self, *, split: bool = False, most: int = SHOWN_LINES) -> Iterator[ShownFile]:
        """Yield the files that have room, with their first rows."""
        for one in self.files:
            hunks = list[tuple[str, tuple[Row, ...]]]()
            for hunk in one.hunks:
                if most <= 0:
                    break
                rows = tuple(islice(rows_of(hunk, split=split), most))
                most -= len(rows)
                hunks.append((_head(hunk.old, hunk.new, hunk.section), rows))
            yield ShownFile(one, tuple(hunks))
            if most <= 0:
                return


def _head(old: int, new: int, section: str) -> str:
    return f"{old} → {new}  {section}".rstrip()


def card_of(value: Any) -> DiffCard | None:
    """Return the difference that a text, an argument or a result holds; None: it holds none."""
    if isinstance(value, str):
        if looks_like_diff(value):
            return _of_text(value)
        value = _as_object(value)
    if not isinstance(value, Mapping):
        return None
    for old, new in PAIRS:
        before, after = value.get(old), value.get(new)
        if isinstance(before, str) and isinstance(after, str):
            name = next((value[name] for name in NAMES if isinstance(value.get(name), str)), "")
            return of_versions(before, after, name=name)
    for name in DIFFS:
        if isinstance(value.get(name), str) and looks_like_diff(value[name]):
            return _of_text(value[name])
    return None


def _as_object(text: str) -> Any:
    if not text.startswith("{") or len(text) > COMPARED_MAX_CHARS:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def of_versions(before: str, after: str, *, name: str = "") -> DiffCard | None:
    """Return the difference of two versions; None: they are the same, or too long to be compared."""
    if before == after or len(before) + len(after) > COMPARED_MAX_CHARS:
        return None
    found = compared(before, after, name=name)
    return DiffCard((found,), _written(found))


def _of_text(text: str) -> DiffCard:
    try:
        return DiffCard(tuple(parse(text)), text)
    except NotADiff as error:
        return DiffCard((), text, str(error))


def _written(one: FileDiff) -> str:
    """Write a difference as a unified diff."""
    name = one.name or "text"
    lines = [f"--- a/{name}", f"+++ b/{name}"]
    for hunk in one.hunks:
        old, new = len(hunk.written) - hunk.added, len(hunk.written) - hunk.removed
        lines += [f"@@ -{hunk.old},{old} +{hunk.new},{new} @@", *hunk.written]
    return "\n".join(lines) + "\n"
