"""Unified diffs, also git's, read strictly: what is not wholly understood is no diff, and is shown as it is. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Literal

READ_MAX_CHARS = 8_000_000
Kind = Literal["same", "removed", "added"]
_KINDS: Final[dict[str, Kind]] = {" ": "same", "-": "removed", "+": "added"}
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@ ?(.*)", re.DOTALL)
_GIT = re.compile(r'diff --git (?:"?a/(?P<same>.+?)"? "?b/(?P=same)"?|(?P<other>.+))', re.DOTALL)
_BASE85 = re.compile(r"(literal|delta) \d{1,12}|[A-Za-z][0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]{5,65}")
"""A line of the data of a file of git's that is not text."""
_OCTAL = re.compile(r"\\([0-7]{3}|.)")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}
_PATHS: Final = {"rename from ": "old", "copy from ": "old", "rename to ": "new", "copy to ": "new"}
_NOTES: Final = ("old mode ", "new mode ", "similarity index ", "dissimilarity index ", "index ")
_NOWHERE: Final = "/dev/null"
_BEGINNINGS: Final = ("diff --git ", "--- ", "Index: ")


class NotADiff(ValueError):
    """A text that is no unified diff, or has a part that was not understood."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a hunk."""

    kind: Kind
    text: str
    old: int | None
    new: int | None
    ends: bool = True
    """Whether a newline follows it."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines that follow each other in both versions, as they are written: of a long one the first are shown."""

    section: str
    """What stands after the numbers: the function or heading around it."""
    written: Sequence[str]
    """Each with its sign; one that begins with a backslash says that no newline follows the line before it."""
    old: int = 1
    new: int = 1
    added: int = 0
    removed: int = 0

    def lines(self) -> Iterator[Line]:
        """Yield its lines."""
        old, new = self.old, self.new
        for at, line in enumerate(self.written):
            kind = _KINDS.get(line[:1] or " ")
            if kind is None:
                continue
            is_old, is_new = kind != "added", kind != "removed"
            ends = at + 1 == len(self.written) or not self.written[at + 1].startswith("\\")
            yield Line(kind, line[1:], old if is_old else None, new if is_new else None, ends)
            old, new = old + is_old, new + is_new


@dataclass(slots=True)
class FileDiff:
    """What was changed in one file."""

    old: str | None = None
    """Its path before; None: it was not there."""
    new: str | None = None
    """Its path afterwards; None: it is gone."""
    hunks: list[Hunk] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Lines of git about its mode, its name and its likeness."""
    is_binary: bool = False

    @property
    def added(self) -> int:
        return sum(hunk.added for hunk in self.hunks)

    @property
    def removed(self) -> int:
        return sum(hunk.removed for hunk in self.hunks)

    @property
    def what(self) -> str:
        """Return what became of the file, in a word or two."""
        if self.old is None:
            return "new"
        if self.new is None:
            return "deleted"
        if self.old != self.new:
            return "copied" if any(note.startswith("copy ") for note in self.notes) else "renamed"
        return "changed" if self.hunks or self.is_binary else "mode changed"

    @property
    def name(self) -> str:
        """Return its path, or both."""
        if self.old is None or self.new is None or self.old == self.new:
            return self.new or self.old or ""
        return f"{self.old} → {self.new}"


def looks_like_diff(text: str) -> bool:
    """Return whether a text begins as a diff does: cheap, for texts of any length."""
    head = text[:4_000].lstrip("\n")
    return head.startswith(_BEGINNINGS) and ("\n@@ -" in head or "diff --git " in head)


def parse(text: str) -> list[FileDiff]:
    """Read a diff. Raises NotADiff, also where a hunk has more or fewer lines than it says."""
    if len(text) > READ_MAX_CHARS:
        raise NotADiff("it is too long to be read")
    lines = text.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    files = _Reader(lines).files()
    if not any(one.hunks or one.notes or one.is_binary for one in files):
        raise NotADiff("it changes nothing")
    return files


class _Reader:
    """Reads line after line; `at` is the next one."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0

    def _here(self) -> str | None:
        return self._lines[self._at] if self._at < len(self._lines) else None

    def files(self) -> list[FileDiff]:
        found = list[FileDiff]()
        while (line := self._here()) is not None:
            if not line.strip("\r") or line.startswith(("Index: ", "=====")):
                self._at += 1
            elif line.startswith("diff --git "):
                found.append(self._git_file(line))
            elif line.startswith("--- "):
                found.append(self._hunks(self._names(FileDiff())))
            elif found and _is_data(found[-1], line.rstrip("\r")):
                self._at += 1
            else:
                raise NotADiff(f"line {self._at + 1} belongs to no file")
        return found

    def _git_file(self, line: str) -> FileDiff:
        named = _GIT.fullmatch(line.rstrip("\r"))
        both = _unquoted(named["same"]) if named and named["same"] else None
        one = FileDiff(both, both)
        self._at += 1
        while (line := self._here() or "") and not line.startswith(("diff --git ", "--- ", "@@ ")):
            self._header(one, line.rstrip("\r"))
            self._at += 1
        return self._hunks(self._names(one)) if line.startswith("--- ") else one

    def _header(self, one: FileDiff, line: str) -> None:
        if line.startswith("new file mode "):
            one.old = None
        elif line.startswith("deleted file mode "):
            one.new = None
        elif line.startswith(("Binary files ", "GIT binary patch")) or _is_data(one, line):
            one.is_binary = True
        elif moved := next((start for start in _PATHS if line.startswith(start)), None):
            setattr(one, _PATHS[moved], _unquoted(line.removeprefix(moved)))
        elif not line.startswith(_NOTES):
            raise NotADiff(f"line {self._at + 1} is not known to git")
        one.notes.append(line)

    def _names(self, one: FileDiff) -> FileDiff:
        following = self._lines[self._at + 1] if self._at + 1 < len(self._lines) else ""
        if not following.startswith("+++ "):
            raise NotADiff(f"line {self._at + 2} does not name the new version")
        one.old, one.new = _path(self._lines[self._at], "a/"), _path(following, "b/")
        self._at += 2
        return one

    def _hunks(self, one: FileDiff) -> FileDiff:
        while (line := self._here() or "").startswith("@@ "):
            numbers = _HUNK.fullmatch(line)
            if numbers is None:
                raise NotADiff(f"line {self._at + 1} does not say which lines follow")
            self._at += 1
            counts = [1 if count is None else int(count) for count in (numbers[2], numbers[4])]
            begin, (added, removed) = self._at, self._pass_over(*counts)
            written = self._lines[begin : self._at]
            one.hunks.append(Hunk(numbers[5].rstrip("\r"), written, int(numbers[1]), int(numbers[3]), added, removed))
        if not one.hunks:
            raise NotADiff(f"{one.name!r} has names and no lines")
        return one

    def _pass_over(self, old: int, new: int) -> tuple[int, int]:
        """Go behind as many lines as a hunk's head says; return how many are added and removed."""
        added = removed = 0
        for line in islice(self._lines, self._at, None):
            sign = line[:1]
            if sign == "\\":
                pass
            elif not (old or new):
                break
            elif sign == "+":
                new, added = new - 1, added + 1
            elif sign == "-":
                old, removed = old - 1, removed + 1
            elif sign in (" ", ""):
                old, new = old - 1, new - 1
            else:
                raise NotADiff(f"line {self._at + 1} is none of a hunk that has not ended")
            if old < 0 or new < 0:
                raise NotADiff(f"line {self._at + 1} is one more than its hunk says")
            self._at += 1
        if old or new:
            raise NotADiff("it ends in the middle of a hunk")
        return added, removed


def _is_data(one: FileDiff, line: str) -> bool:
    return one.is_binary and "GIT binary patch" in one.notes and bool(_BASE85.fullmatch(line))


def _path(line: str, prefix: str) -> str | None:
    """Return the path that `--- ` or `+++ ` names; None: nothing is there."""
    name = _unquoted(line[4:].rstrip("\r").partition("\t")[0])
    return None if name == _NOWHERE else name.removeprefix(prefix)


def _unquoted(name: str) -> str:
    """Return a path as git means it: with special characters it is quoted as in C."""
    quoted = name.startswith('"') and name.endswith('"') and len(name) > 1
    if not quoted and "\\" not in name:
        return name
    raw = _OCTAL.sub(_character, name.strip('"') if quoted else name)
    return raw.encode("latin-1", "replace").decode("utf-8", "replace") if raw.isascii() is False else raw


def _character(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code, 8) & 0xFF) if code.isdigit() and len(code) == 3 else _ESCAPES.get(code, code)
