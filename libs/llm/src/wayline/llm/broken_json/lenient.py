"""A wider JSON that still has one meaning: JavaScript's and Python's spellings, and slips that leave no doubt.

Comments, any quotes, bare keys and words, `True` and `undefined`, commas too many or missing, `=` for `:`, `"a" + "b"`,
`Wrapped("value")`, wrong or missing closing brackets, a text that breaks off. Where it would have to guess, it raises
Unclear.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from wayline.contracts.strict_json import DEPTH_MAX
from wayline.llm.broken_json.written_numbers import Inexact, exact_float, exact_integer

INNER_QUOTES_MAX = 50
"""In one string, not escaped."""
QUOTES = {'"': '"', "'": "'", "`": "`", "\u201c": "\u201d\u201c", "\u2018": "\u2019\u2018", "\u201d": "\u201d"}
"""What opens a string, and what may close it."""
WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "none": None, "undefined": None}

_BLANK = re.compile(
    r"(?:[\s\ufeff]++"
    # To the line's end; in the last line a closing bracket may have been meant.
    r"|(?://|#)(?:[^\n]{0,1000}+(?=\n)|[^\n}\]]{0,1000}+\Z)"
    # Bounded, as every quote is followed by a look for one.
    r"|/\*.{0,1000}?(?:\*/|\Z))*+",
    re.DOTALL,
)
_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]*)?(?=[\s,\]}:]|\Z)")
"""Also one that lacks the digits of its fraction or of its exponent."""
_HALF_EXPONENT = re.compile(r"[eE][+-]?\Z")
_WORD = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")
_ELLIPSIS = re.compile(r"\.\.\.|\u2026")
_COLON = re.compile(r":|=>?")
_END = re.compile(r"[;\s\]}]*\Z")
_SPECIAL = re.compile(r'\\.|["\x00-\x1f]', re.DOTALL)
_ESCAPES = frozenset('"\\/bfnrtu')
_INTEGER = re.compile(r"[+-]?[0-9]+")
_HALF_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_AFTER_MEMBER = re.compile(r"[\"'`\u201c\u2018]|[A-Za-z_$][\w$-]*\s*:|\}|\Z")
_MAYBE_MORE = re.compile(r"[`\n]|[}\],]\s*\Z")
"""In a string that is never closed: it may have ended before."""
_MAYBE_STRUCTURE = re.compile(r"\A[\"'`]|[,:{}\[\]]")
"""In a string that holds its own quote: that quote may have been its end."""
_AFTER_KEY = re.compile(r"[:=\"'`\u201c\u2018{\[0-9-]|(?:true|false|null|True|False|None)(?=\s*[,}\]])")
_AFTER_ITEM = re.compile(r"[\"'`\u201c\u2018{\[0-9.+-]|true|false|null|None|True|False|\]|\Z")
_AFTER_ARGUMENT = re.compile(r"\)")
_AFTER_ALL = re.compile(r"\Z")
_NO_WORDS = frozenset({"NaN", "Infinity"})
_NO_NUMBER = re.compile(r"[+-]\s*(?:Infinity|NaN|inf)\b")


class Unclear(ValueError):
    """The text could mean more than one thing, or nothing."""


def read(text: str) -> Any:
    """Read the value of a text. Raises Unclear, and Inexact for a number that would become another."""
    value, _ = read_to_end(text)
    return value


def read_to_end(text: str) -> tuple[Any, bool]:
    """Read the value of a text, and whether it ended before the text did. Raises Unclear, and Inexact."""
    reader = _Reader(text)
    value = reader.value(0, _AFTER_ALL)
    if not _END.match(text, reader.blank()):
        raise Unclear(f"something follows the value, at {reader.at}")
    return value, reader.ended


class _Reader:
    """A text and the place up to which it was read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.ended = True
        """Nothing was closed by the end of the text, and no value lacks its end."""
        self._open: list[str] = []

    def blank(self) -> int:
        """Pass over white space and comments."""
        self.at = _blank(self.text, self.at)
        return self.at

    def value(self, depth: int, after: re.Pattern[str]) -> Any:
        self.blank()
        here = self.text[self.at : self.at + 1]
        if depth > DEPTH_MAX or not here:
            raise Unclear("a value is missing" if not here else "nested too deep")
        if here == "{":
            return self._object(depth)
        if here == "[":
            return self._array(depth)
        if here in QUOTES:
            return self._strings(after)
        if _NO_NUMBER.match(self.text, self.at):
            raise Inexact("infinity is no JSON")
        number = self._take(_NUMBER)
        if number:
            # Half an exponent is half a number.
            self.ended = self.ended and not _HALF_EXPONENT.search(number)
            return _number(number)
        word = self._take(_WORD)
        if not word:
            raise Unclear(f"no value begins with {here!r}")
        return self._word(word, depth)

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self._opened("}")
        while not self._closed("}", empty=not found):
            if self._take(_ELLIPSIS):
                continue
            here = self.text[self.at]
            key = self._string(_AFTER_KEY) if here in QUOTES else self._take(_WORD)
            if not key and here not in QUOTES:
                raise Unclear(f"no key begins with {here!r}")
            self.blank()
            colon = self._take(_COLON)
            if not colon and (not key or here not in QUOTES):
                raise Unclear(f"{key!r} may be no key")
            self.blank()
            if self.text[self.at : self.at + 1] in ("", ",", "}", "]"):
                raise Unclear(f"{key!r} has no value")
            found[key] = self.value(depth + 1, _AFTER_MEMBER)
        return found

    def _array(self, depth: int) -> list[Any]:
        found: list[Any] = []
        self._opened("]")
        while not self._closed("]", empty=not found):
            if not self._take(_ELLIPSIS):
                found.append(self.value(depth + 1, _AFTER_ITEM))
        return found

    def _opened(self, closing: str) -> None:
        self.at += 1
        self._open.append(closing)

    def _closed(self, closing: str, *, empty: bool) -> bool:
        """Return whether the innermost bracket ends here, also by another bracket's end or the end of the text."""
        while self.text[self.blank() : self.at + 1] == ",":
            self.at += 1
        here = self.text[self.at : self.at + 1]
        if here not in ("", "}", "]"):
            return False
        self._open.pop()
        self.ended = self.ended and here != ""
        if empty and here not in ("", closing):
            raise Unclear("closed by another's bracket with nothing in it")
        # A wrong one that closes something further out is left to it.
        if here == closing or here not in self._open:
            self.at += len(here)
        return True

    def _word(self, word: str, depth: int) -> Any:
        if self.text[self.at : self.at + 1] == "(":
            self.at += 1
            value = self.value(depth + 1, _AFTER_ARGUMENT)
            if self.text[self.blank() : self.at + 1] != ")":
                raise Unclear("what is called is not closed")
            self.at += 1
            return value
        if word.lower() in WORDS:
            return WORDS[word.lower()]
        if word in _NO_WORDS:
            raise Inexact(f"{word} is no JSON")
        if self.text[self.blank() : self.at + 1] not in (",", "}", "]") or not self._open:
            raise Unclear(f"{word!r} may be more than a word")
        return word

    def _strings(self, after: re.Pattern[str]) -> str:
        text = self._string(after)
        while self.text[self.blank() : self.at + 1] == "+":
            self.at += 1
            self.blank()
            if self.text[self.at : self.at + 1] not in QUOTES:
                raise Unclear("nothing is added to a string")
            text += self._string(after)
        return text

    def _string(self, after: re.Pattern[str]) -> str:
        """Read a string; a quote belongs to it unless something follows that may follow a string."""
        start, inner = self.at + 1, 0
        stop = re.compile(rf"\\|[{QUOTES[self.text[self.at]]}]")
        end = start
        while (found := stop.search(self.text, end)) is not None:
            end = found.start()
            if found.group() == "\\":
                end += 2
            elif self._ends(end + 1, after):
                break
            else:
                inner, end = inner + 1, end + 1
            if inner > INNER_QUOTES_MAX:
                raise Unclear("more quotes than a string has")
        else:
            end = len(self.text)
        text = self.text[start:end]
        if end >= len(self.text):
            self.ended = False
            text = _HALF_ESCAPE.sub("", text)
            if inner or (not text and after is _AFTER_ITEM) or _MAYBE_MORE.search(text):
                raise Unclear("a string is not closed")
        if text.endswith("\n") or (inner and (after is not _AFTER_MEMBER or _MAYBE_STRUCTURE.search(text))):
            raise Unclear("where a string ends is open to doubt")
        self.at = end + 1
        return _unescaped(text)

    def _ends(self, at: int, after: re.Pattern[str]) -> bool:
        gap = _blank(self.text, at)
        here = self.text[gap : gap + 1]
        if after is _AFTER_KEY:
            return bool(after.match(self.text, gap))
        if here == ":":
            raise Unclear("a key where a value should be")
        if here in ("", "}", "]", "+") or (here == ")" and after is _AFTER_ARGUMENT):
            return True
        if here == ",":
            return bool(after.match(self.text, _blank(self.text, gap + 1)))
        if here in QUOTES and gap == at:
            raise Unclear("two quotes side by side")
        # A comma is missing: only before another string, or on a new line.
        return (here in QUOTES or "\n" in self.text[at:gap]) and bool(after.match(self.text, gap))

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return found.group() if found else ""


def _blank(text: str, at: int) -> int:
    """Return where white space and comments end."""
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _number(text: str) -> int | float:
    text = _HALF_EXPONENT.sub("", text)
    return exact_integer(text) if _INTEGER.fullmatch(text) else exact_float(text)


def _unescaped(text: str) -> str:
    """Decode a string's escapes. Raises Unclear for an undefined escape."""

    def as_json(found: re.Match[str]) -> str:
        piece = found.group()
        if not piece.startswith("\\"):
            return f"\\u{ord(piece):04x}"
        if piece[1:] in ("'", "`", "\n"):
            return piece[1:].strip()
        if piece[1:2] not in _ESCAPES:
            raise Unclear(f"{piece!r} is no escape")
        return piece

    try:
        return orjson.loads(f'"{_SPECIAL.sub(as_json, text)}"')
    except orjson.JSONDecodeError:
        raise Unclear("half an escape") from None
