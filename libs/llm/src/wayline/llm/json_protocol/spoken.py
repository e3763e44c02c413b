"""Find the answer in an envelope that is still being written, so that its reader sees no JSON."""

from __future__ import annotations

import re

from wayline.llm.broken_json import repair
from wayline.llm.json_protocol.ladder import RESPOND

LOOKS_PER_TEXT = 200
"""A longer text is looked at in larger pieces: each look reads it from its beginning."""

_THINK = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
_FENCE = re.compile(r"\s*```[A-Za-z0-9_+-]*\s*")
_STARTS_WITH_TAG = re.compile(r"\s*<(?:thinking|response)>")
_ENDS = re.compile(r"</response>|<(?:thinking|action|tool_calls?|response|confidence)>")
_ENDS_MAX_CHARS = 14


class Spoken:
    """What of a model's text is known to be its answer."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._look_at = 1
        self._said = ""

    def add(self, text: str) -> str:
        """Add text; return what of the answer became certain."""
        self._pieces.append(text)
        self._length += len(text)
        if self._length < self._look_at:
            return ""
        self._look_at = self._length + 1 + self._length // LOOKS_PER_TEXT
        known = answer_in("".join(self._pieces))
        return self._new(known)

    def rest(self, answer: str) -> str:
        """Return the part of the whole answer that was not returned yet."""
        return self._new(answer)

    def _new(self, known: str) -> str:
        # Mending may end in another answer than the one begun: then nothing is added, and the message has it whole.
        # And an answer of white space may still turn out to be none.
        if not known.strip() or not known.startswith(self._said):
            return ""
        new = known[len(self._said) :]
        self._said = known
        return new


def answer_in(text: str) -> str:
    """Return the certain part of the answer in an unfinished text, to which more text can only add."""
    thought = _THINK.match(text)
    body = text[thought.end() :] if thought else text
    fence = _FENCE.match(body)
    body = body[fence.end() :] if fence else body.lstrip()
    if body.startswith("{"):
        try:
            value = repair.partial(body)
        except ValueError:
            return ""
        response = value.get("response") if isinstance(value, dict) else None
        responds = isinstance(response, str) and str(value.get("action")).strip().lower() in RESPOND
        return response if responds and isinstance(response, str) else ""
    _, opened, inner = body.partition("<response>")
    return _before_end(inner).strip() if opened and _STARTS_WITH_TAG.match(body) else ""


def _before_end(inner: str) -> str:
    """Return a tagged answer up to its closing tag, or up to what may become one."""
    end = _ENDS.search(inner)
    if end:
        return inner[: end.start()]
    maybe = inner.rfind("<", max(0, len(inner) - _ENDS_MAX_CHARS))
    return inner[:maybe] if maybe >= 0 else inner
