"""Tell whether the text of a result says what its structured content says, and show what it leaves out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic_core import from_json

ENTITIES = "entities"
"""In structured content: what the result is about."""
LEAVES_MAX = 2_000
"""Values of structured content that are looked for in the text; what has more is shown whole."""
SEARCHED_MAX_CHARS = 10_000_000
"""Of a text, once for each value that is looked for in it: some tens of milliseconds."""
READ_MAX_CHARS = 1024 * 1024
"""Of a text that is looked at; to a longer one its structured content adds little."""


def with_structured(texts: Sequence[str], structured: Any, *, others: Sequence[str] = ()) -> list[str]:
    """Return what a result says: its texts and what else it holds, with what only its structured content says.

    A list comes from many servers as one text an item: it is given as the list that it is, also to programs.
    """
    if isinstance(structured, dict) and isinstance(structured.get(ENTITIES), list) and any(texts):
        # What a result is about is shown elsewhere.
        structured = {name: one for name, one in structured.items() if name != ENTITIES}
    value = _unwrapped(structured)
    if isinstance(value, list) and _are_items(texts, value):
        return [_json(value), *others]
    said = [text for text in texts if text.strip()]
    if not said:
        return [value if isinstance(value, str) else _json(value), *others]
    if _says(said, structured, value):
        return [*texts, *others]
    return [*said, *others, _json(structured)]


def json_object_in(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a text is; None: it is none."""
    value = _json_in(text) if text.lstrip().startswith("{") and len(text) <= READ_MAX_CHARS else None
    return value if isinstance(value, dict) else None


def _unwrapped(structured: Any) -> Any:
    """Return the value that a server wraps because it is no object."""
    if isinstance(structured, dict) and structured.keys() == {"result"}:
        return structured["result"]
    return structured


def _are_items(texts: Sequence[str], value: list[Any]) -> bool:
    return bool(value) and len(texts) == len(value) and all(map(_is_said, texts, value))


def _is_said(text: str, value: Any) -> bool:
    return text == value if isinstance(value, str) else _json_in(text) == value


def _says(texts: Sequence[str], structured: Any, value: Any) -> bool:
    """Return whether texts say all that structured content does: as JSON, or each value of it in words."""
    whole = "\n".join(texts)
    if len(whole) > READ_MAX_CHARS:
        return True
    if any(_is_said(text, one) for text in (*texts, whole) for one in (structured, value)):
        return True
    leaves = set(_leaves(value))
    return len(leaves) <= min(LEAVES_MAX, SEARCHED_MAX_CHARS // len(whole)) and all(leaf in whole for leaf in leaves)


def _leaves(value: Any) -> Iterator[str]:
    """Yield each value as a text would name it, up to one more than are looked for."""
    left, waiting = LEAVES_MAX + 1, [value]
    while waiting and left:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        else:
            left -= 1
            yield one.strip() if isinstance(one, str) else json.dumps(one)


def _json_in(text: str) -> Any:
    try:
        return from_json(text)
    except ValueError:
        return None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
