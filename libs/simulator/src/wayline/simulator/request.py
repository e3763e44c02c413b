"""Small steps that reading a request takes in every wire format."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from wayline.simulator.models import Facts
from wayline.simulator.refusals import Refusal
from wayline.simulator.scripts.script import Turn


@dataclass(frozen=True, slots=True)
class Envelope:
    """What is known of a request beside its body."""

    number: int
    attempt: str
    owner: str
    """Whose API key it came with: nobody reads another's cache."""
    verified: bool = True
    """Whether OpenAI has verified the organisation of that key."""


Body = Mapping[str, Any]


def arguments(text: str) -> dict[str, Any]:
    """Return a call's arguments as a script sees them; what is not an object is kept under its own name."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {"_unreadable": text}
    return found if isinstance(found, dict) else {"_unreadable": text}


def texts(content: Any) -> str:
    """Join the text in a content, whether a string or parts: each part on a line of its own."""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content or () if isinstance(part, dict) and part.get("text"))


def check_window(facts: Facts, tokens: int, message: str, code: str | None = None) -> None:
    if tokens > facts.window:
        raise Refusal(message, code=code, param="input" if code else None)


def merged(turns: Iterable[Turn]) -> tuple[Turn, ...]:
    """Merge neighbouring assistant turns: Responses sends one message in several items."""
    found: list[Turn] = []
    for turn in turns:
        if found and found[-1].role == turn.role == "assistant":
            before = found.pop()
            found.append(Turn("assistant", before.text + turn.text, before.calls + turn.calls))
        else:
            found.append(turn)
    return tuple(found)


def named_results(turns: Iterable[Turn]) -> tuple[Turn, ...]:
    """Return results with the names of the tools that gave them."""
    names: dict[str, str] = {}
    found: list[Turn] = []
    for turn in turns:
        names.update({call.id: call.name for call in turn.calls})
        if turn.role == "tool":
            found.append(replace(turn, tool=names.get(turn.call_id, "")))
        else:
            found.append(turn)
    return tuple(found)
