"""Patterns of schemas, searched in a time that grows with the text alone.

A backtracking engine needs time without end for some texts of thirty letters. This one has none of what needs it: no
looking ahead or behind and no references back. Only looking ahead at the beginning, as rules for passwords do, is taken
apart into several patterns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

PATTERN_MAX_CHARS = 2_000
PATTERN_MEMORY_MAX = 1024 * 1024
"""Bytes that one pattern may take when it is compiled."""
PATTERNS_KEPT_MAX = 256
SEARCH_STEPS = 4
"""Of a search, however short its text is."""
CHARS_A_STEP = 200
SMALL_SIZE = 10
"""Instructions of a pattern that the engine can always turn into one table."""
SIZE_A_STEP = 100
"""Instructions that the engine follows in a step, where the table of a larger pattern does not fit."""
AHEAD_MAX = 10
"""How often a pattern may look ahead at its beginning."""

_ESCAPES = re.compile(
    r"\\(?:u\{(?P<wide>[0-9a-fA-F]{1,6})\}|u(?P<short>[0-9a-fA-F]{4})|c(?P<control>[A-Za-z])"
    r"|(?P<property>[pP])\{(?P<name>[A-Za-z_=]+)\}|(?P<other>.))",
    re.DOTALL,
)
_CONTROL = 0x1F
_PROPERTIES = {
    "Letter": "L",
    "Lowercase_Letter": "Ll",
    "Uppercase_Letter": "Lu",
    "Mark": "M",
    "Number": "N",
    "Decimal_Number": "Nd",
    "Punctuation": "P",
    "Symbol": "S",
    "Separator": "Z",
}
_UNKNOWN_TO_RE2 = {"_": "_", "Z": r"\z"}


class UnsupportedPattern(ValueError):
    """A pattern that cannot be searched in bounded time, or that is none."""


@dataclass(frozen=True)
class Pattern:
    """A compiled pattern: it is found in a text where all of its parts are, and none of what must not follow."""

    source: str
    all_of: tuple[Any, ...]
    none_of: tuple[Any, ...] = ()

    @property
    def size(self) -> int:
        """Return how many instructions the engine has made of it."""
        return sum(one.programsize for one in (*self.all_of, *self.none_of))

    def steps(self, text: str) -> int:
        """Return what a search may cost at the most: the engine reads each character once for each instruction."""
        return SEARCH_STEPS + sum(_steps(len(text), one.programsize) for one in (*self.all_of, *self.none_of))

    def found_in(self, text: str) -> bool:
        """Return whether the pattern is found in a text."""
        # Half a surrogate pair is no character for the engine.
        whole = text if text.isascii() else text.encode(errors="replace").decode()
        return all(one.search(whole) for one in self.all_of) and not any(one.search(whole) for one in self.none_of)


def _steps(chars: int, size: int) -> int:
    return chars // CHARS_A_STEP if size <= SMALL_SIZE else chars * size // SIZE_A_STEP


@lru_cache(maxsize=PATTERNS_KEPT_MAX)
def compile_pattern(source: str) -> Pattern:
    """Return a pattern of ECMA-262, compiled. Raises UnsupportedPattern."""
    if len(source) > PATTERN_MAX_CHARS:
        raise UnsupportedPattern(f"the pattern is longer than {PATTERN_MAX_CHARS} characters")
    ahead, never, rest = _looks_ahead(source)
    return Pattern(source, tuple(map(_compiled, (*ahead, rest))), tuple(map(_compiled, never)))


def _compiled(source: str) -> Any:
    import re2

    options = re2.Options()
    options.max_mem = PATTERN_MEMORY_MAX
    options.log_errors = False
    try:
        return re2.compile(_ESCAPES.sub(_escape, source), options)
    except (re2.error, UnicodeError) as error:
        why = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        raise UnsupportedPattern(f"the pattern {source[:100]!r} cannot be searched in bounded time: {why}") from None


def _escape(found: re.Match[str]) -> str:
    if code := found["wide"] or found["short"]:
        return rf"\x{{{code}}}"
    if control := found["control"]:
        return rf"\x{{{ord(control) & _CONTROL:x}}}"
    if name := found["name"]:
        # What is said to be the script or the category of a letter is known by its own name.
        plain = name.partition("=")[2] or name
        return rf"\{found['property']}{{{_PROPERTIES.get(plain, plain)}}}"
    return _UNKNOWN_TO_RE2.get(found["other"], found.group())


def _looks_ahead(source: str) -> tuple[list[str], list[str], str]:
    """Take apart what a pattern looks ahead for at the beginning of a text: what must be there, what not, the rest."""
    ahead: list[str] = []
    never: list[str] = []
    rest = source.removeprefix("^")
    if rest == source:
        return ahead, never, source
    while rest.startswith(("(?=", "(?!")) and len(ahead) + len(never) < AHEAD_MAX:
        end = _closing(rest)
        # Inside of one, `$` and `^` mean the same.
        (ahead if rest[2] == "=" else never).append(f"^(?:{rest[3:end]})")
        rest = rest[end + 1 :]
    if (ahead or never) and _has_alternatives(rest):
        raise UnsupportedPattern(f"the pattern {source[:100]!r} looks ahead before alternatives")
    return ahead, never, f"^{rest}"


def _closing(text: str) -> int:
    """Return where the bracket that opens a text is closed. Raises UnsupportedPattern."""
    for at, depth in _depths(text):
        if text[at] == ")" and depth == 0:
            return at
    raise UnsupportedPattern(f"the pattern {text[:100]!r} lacks a closing bracket")


def _has_alternatives(text: str) -> bool:
    return any(text[at] == "|" and depth == 0 for at, depth in _depths(text))


def _depths(text: str) -> list[tuple[int, int]]:
    """Return each place of a pattern outside of escapes and classes, with how many brackets are open after it."""
    found: list[tuple[int, int]] = []
    at = depth = 0
    in_class = False
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 2
            continue
        if in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
        else:
            depth += (char == "(") - (char == ")")
            found.append((at, depth))
        at += 1
    return found
