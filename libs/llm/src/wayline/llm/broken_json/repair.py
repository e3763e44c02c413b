"""Read JSON as models write it: whole, broken, or not finished yet."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import Any

from wayline.contracts.strict_json import DEPTH_MAX, read_json, require_bounded
from wayline.llm.broken_json import lenient
from wayline.llm.broken_json.written_numbers import Inexact, exact_float, exact_integer
from wayline.llm.characters import joined, joined_all

REPAIR_MAX_CHARS = 100_000
READS_MAX = 600_000
"""Characters the library may look at, most of them more than once: about half a second, and nothing else runs then."""
PLACES_MAX = 200
"""Where a string of a guess is looked for in its text."""
OBJECTS_MAX = 50
"""Places where an object is looked for in one text."""

_NUMERIC = re.compile(r"(?<![\w.+-])[+-]?(?:(?:0|[1-9][0-9_]*)(?:\.[0-9_]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.%+-])")
"""A whole one: with a zero in front it is none."""
_THOUSANDS = re.compile(r"(?<![\w.+-])[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]*)?(?![\w.%+-])")
_EMPTY = re.compile(r"(?<!\\)(?:\"\"|''|``|\u201c\u201d|\\\"\\\")")
_QUOTED_KEY = re.compile(r"[,:=\s][\"\u201c\u201d`]|[\"\u201c\u201d`][,:=\s]")
_TWO_STRINGS = re.compile(r"[\"'`\u201c\u201d]\s*[,:=]\s*[\"'`\u201c\u201d]|[\"\u201d]\s*:|[\[{]\s*[\"\u201c]")
_ESCAPE = re.compile(r"\\[bfnrtu\"]|(?<!\w)u[0-9a-fA-F]{4}")
_NO_NUMBERS = frozenset({"nan", "infinity", "inf"})
_COMMENT = re.compile(r"//[^\n]*|#[^\n]*|/\*.*?\*/", re.DOTALL)
_ESCAPED = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)
_QUOTED = re.compile(r"(?<=[\s\[{,:=(])[\"'\u201c]([^\W_](?:[\w.+-]*\w)?)")
"""What begins right after a quote that opens a string."""
_MENDED = re.compile(r"[\\\n\r\t\x22\x27\x60\u201c\u201d]")
_WORDS = re.compile(r"[a-z]+")
_SPELLED: dict[Any, frozenset[str]] = {
    True: frozenset({"true"}),
    False: frozenset({"false"}),
    None: frozenset({"null", "none", "undefined", "nan"}),
}
_UNSURE = re.compile(r"[\\\s\"'`\u201c\u201d]|(?<=\\)[nrt]")
_BRACKETS = re.compile(r"[\[{]|[\]}]")
_MAYBE_INEXACT = re.compile(r"[0-9][0-9.]{15}|[0-9]\.?[eE]")
"""What a number has that the fast reader may round."""
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_TOO_SHORT = range(1, 3)
"""Characters of a mended string that say nothing of where it came from."""
_BEFORE_STRING = re.compile(r"[\[{,:=(]\s*\Z")
BLANK_MAX_CHARS = 200
"""White space that is looked through before a quote."""
_BEGUN = re.compile(r"(?:t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?|-|u?[0-9a-fA-F]{0,3}\"?)?")
"""What is left of a text at the place where it can be read no further, if it only ends too early."""
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")
_NOTHING_YET = re.compile(r"\s*(?:-?[0-9.eE+-]*|tr?u?|fa?l?s?|nu?l?)")
_OPEN_NUMBER = re.compile(r"[\[:,]\s*(-?[0-9][0-9.eE+-]*)$")
_OPEN_NUMBER_MAX_CHARS = 400


class Unfinished(ValueError):
    """The text ends before its value does."""


def strict(text: str) -> Any:
    """Parse a text that is valid JSON. Raises ValueError for any other, Inexact for a number that would be rounded."""
    try:
        value = read_json(text)
    except ValueError:
        # A half of a character is no reason to lose the rest.
        if not _HALF_CHARACTER.search(text):
            raise
        return joined_all(_exactly(text))
    return _exactly(text) if _MAYBE_INEXACT.search(text) else value


def _exactly(text: str) -> Any:
    """Parse a text and look at each of its numbers. Raises ValueError."""
    try:
        value = json.loads(text, parse_int=exact_integer, parse_float=exact_float, parse_constant=_refused)
    except RecursionError:
        raise ValueError("nested too deep") from None
    require_bounded(value)
    return value


def _refused(word: str) -> Any:
    raise Inexact(f"{word} is no JSON")


def repaired(text: str, *, whole: bool = False) -> Any:
    """Parse a text and mend what is broken. Raises ValueError where no value can be found.

    `whole`: what the text ends in the middle of is not mended either. Raises Unfinished.
    """
    try:
        return strict(text)
    except Inexact:
        raise
    except ValueError:
        pass
    if len(text) > REPAIR_MAX_CHARS:
        raise ValueError(f"broken, and with {len(text)} characters too long to mend")
    if _too_deep(text):
        raise ValueError(f"broken, and nested more than {DEPTH_MAX} deep")
    try:
        value, ended = lenient.read_to_end(text)
    except lenient.Unclear:
        value, ended = _guessed(text), _closes(text)
    if whole and (not ended or _is_beginning(text)):
        raise Unfinished("the text ends before its value does")
    return storable(value)


def _is_beginning(text: str) -> bool:
    """Return whether a text that is no JSON is the beginning of some."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        rest = text[error.pos :].strip()
        return error.msg.startswith("Unterminated string") or bool(_BEGUN.fullmatch(rest))
    except (ValueError, RecursionError):
        return False
    return False


def _closes(text: str) -> bool:
    """Return whether a value seems to end in a broken text: its last string, and all that it opens. In doubt not."""
    last = max(text.rfind(quote) for quote in "\"'")
    if _BEFORE_STRING.search(text, max(0, last - BLANK_MAX_CHARS), max(0, last)):
        return False
    return all(
        sum(1 if bracket.group() in "[{" else -1 for bracket in _BRACKETS.finditer(each)) <= 0
        for each in (text, _STRING.sub("", text))
    )


def _guessed(text: str) -> Any:
    from json_repair import repair_json

    try:
        value = repair_json(_Metered(text), return_objects=True, skip_json_loads=True)
    except _TooMuch:
        raise ValueError("broken, and too confused to mend") from None
    except RecursionError:
        raise ValueError("broken, and nested too deep") from None
    if value == "" and text.strip().strip("\"'"):
        raise ValueError("holds no value")
    if not _stands(value, text):
        raise ValueError("broken, and what was meant is open to doubt")
    return value


def _stands(value: Any, text: str) -> bool:
    """Return whether a guess holds the whole tokens of its text, and all of them.

    A part of a token, or two of them in one, is another value; so is one that nobody wrote, and one that is left out.
    """
    numbers = {_decimal(found) for shape in (_NUMERIC, _THOUSANDS) for found in shape.findall(text)}
    words, at, blank = set(_WORDS.findall(text.lower())), 0, 0
    # Made once for all: of a long text it takes milliseconds.
    bare_text = cache(lambda: _bare(text))
    leaves = list(_leaves(value))
    for leaf, is_key in leaves:
        if isinstance(leaf, str):
            at = _after(leaf, text, at, bare_text)
            blank += not leaf
            if at < 0 or _swallows(leaf, text, is_key=is_key) or _is_no_number(leaf, text):
                return False
        elif leaf is None or isinstance(leaf, bool):
            if not words & _SPELLED[leaf]:
                return False
        elif Decimal(repr(leaf)) not in numbers:
            return False
    # An empty string has to be written, as often as it is there.
    return blank <= len(_EMPTY.findall(text)) and _says_all([leaf for leaf, _ in leaves], text)


def _leaves(value: Any) -> Iterator[tuple[Any, bool]]:
    """Yield every key and every value that holds no other, in order, and whether it is a key."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key, True
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    else:
        yield value, False


def _swallows(leaf: str, text: str, *, is_key: bool) -> bool:
    """Return whether a string holds what stands in the text as quotes between strings, or as an escape."""
    shape = _QUOTED_KEY if is_key else _TWO_STRINGS
    return bool(_ESCAPE.search(leaf)) or (bool(shape.search(leaf)) and leaf in text)


def _is_no_number(leaf: str, text: str) -> bool:
    """Return whether a string is a bare NaN or Infinity."""
    return leaf.lower().lstrip("+-") in _NO_NUMBERS and not re.search(rf"[\"'`]{re.escape(leaf)}[\"'`]", text)


def _says_all(leaves: list[Any], text: str) -> bool:
    """Return whether each string between the brackets of a text is in the value, by its first word."""
    opening, ends = _BRACKETS.search(text), max(text.rfind("}"), text.rfind("]"))
    begins = opening.start() if opening else 0
    inside = _ESCAPED.sub(" ", _COMMENT.sub(" ", text[begins : ends if ends > begins else len(text)]))
    said = " ".join(str(leaf) for leaf in leaves).lower()
    numbers = {Decimal(repr(leaf)) for leaf in leaves if isinstance(leaf, (int, float)) and not isinstance(leaf, bool)}
    spelled = frozenset().union(*(_SPELLED[leaf] for leaf in leaves if leaf is None or isinstance(leaf, bool)))
    words = map(str.lower, _QUOTED.findall(inside))
    return all(word in said or word in spelled or _decimal(word) in numbers for word in words)


def _after(part: str, text: str, at: int, bare_text: Callable[[], str]) -> int:
    """Find where a string ends that stands in the text from `at` on or before; -1: it is not there as a whole."""
    if not part:
        return at
    for form in dict.fromkeys((part, part.strip(), json.dumps(part)[1:-1], json.dumps(part, ensure_ascii=False)[1:-1])):
        for begin in (at, 0):
            found = text.find(form, begin)
            for _ in range(PLACES_MAX):
                if found < 0:
                    break
                end = found + len(form)
                if not (_joins(text[found - 1 : found], form[:1]) or _joins(form[-1:], text[end : end + 1])):
                    return end
                found = text.find(form, found + 1)
    # Its escapes or its line ends were mended. What is left of a short one is found in any text.
    bare = _bare(part)
    return at if _MENDED.search(part) and len(bare) not in _TOO_SHORT and bare in bare_text() else -1


def _joins(before: str, after: str) -> bool:
    return before == "\\" or (before.isalnum() and after.isalnum())


def _bare(text: str) -> str:
    return _UNSURE.sub("", text)


def _decimal(written: str) -> Decimal | None:
    """Return the number that a text says; None: it says none."""
    try:
        return Decimal(written.replace(",", "").replace("_", ""))
    except InvalidOperation:
        return None


class _TooMuch(Exception):
    """The library has looked at more characters than it may."""


class _Metered(str):
    """A text that counts how often it is looked at: the library has no limit, and with many stray quotes needs one."""

    __slots__ = ("reads",)

    def __getitem__(self, place: Any) -> str:
        self.reads = getattr(self, "reads", 0) + 1
        if self.reads > READS_MAX:
            raise _TooMuch
        return str.__getitem__(self, place)


def partial(text: str) -> Any:
    """Return the certain part of an unfinished value, to which more text can only add; None if nothing is certain yet.

    Raises ValueError for what is not the beginning of JSON.
    """
    from pydantic_core import from_json

    if _NOTHING_YET.fullmatch(text):
        return None
    # 12 may become 123.
    number = _OPEN_NUMBER.search(text, max(0, len(text) - _OPEN_NUMBER_MAX_CHARS))
    return from_json(text[: number.start(1)] if number else text, allow_partial="trailing-strings")


def _too_deep(text: str) -> bool:
    depth = 0
    for bracket in _BRACKETS.finditer(text):
        depth = max(0, depth + (1 if bracket.group() in "[{" else -1))
        if depth > DEPTH_MAX:
            return True
    return False


def objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield every whole object in a text, in order, whatever surrounds it."""
    decoder, at = json.JSONDecoder(parse_int=exact_integer, parse_float=exact_float), 0
    for _ in range(OBJECTS_MAX):
        at = text.find("{", at)
        if at < 0:
            return
        try:
            value, at = decoder.raw_decode(text, at)
            value = storable(value)
        except (ValueError, RecursionError):
            at += 1
        else:
            if isinstance(value, dict):
                yield value


def storable(value: Any) -> Any:
    """Return a value as JSON can hold it. Raises Inexact for a number that it cannot hold as it was written."""
    if isinstance(value, dict):
        return {joined(str(key)): storable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, str):
        return joined(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return exact_integer(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise Inexact(f"{value} is no JSON")
    return value
