"""The body of a delivery: `{type, timestamp, data}` in at most 20 KB. Pure."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from wayline.contracts.webhooks import BODY_MAX_BYTES
from wayline.notifier.events.event import Event

TEXT_CHARS_MAX = 8_000
"""Of one text of the content, where there is room for it."""
TEXT_CHARS_MIN = 16
"""A text that would have to be shorter is left out."""


def body_of(event: Event, *, content: bool, public_url: str | None) -> str:
    """Return the body of an event's delivery, with as much of its words as there is room for."""
    data: dict[str, Any] = {**event.data}
    if event.links:
        base = (public_url or "").rstrip("/")
        data["links"] = {name: f"{base}{path}" for name, path in event.links.items()}
    chars = TEXT_CHARS_MAX
    while content and event.content and chars >= TEXT_CHARS_MIN:
        words = {name: _cut(value, chars) for name, value in event.content.items()}
        encoded = _encoded(event, {**data, **words})
        if len(encoded) <= BODY_MAX_BYTES:
            return encoded.decode()
        chars //= 2
    return _encoded(event, data).decode()


def _cut(value: Any, chars: int) -> Any:
    """Return a value whose JSON is not longer than so many characters: else the beginning of that as text."""
    text = value if isinstance(value, str) else _dumps(value)
    return value if len(text) <= chars else f"{text[: chars - 1]}…"


def _encoded(event: Event, data: dict[str, Any]) -> bytes:
    return _dumps({"type": event.type, "timestamp": event.at, "data": data}).encode()


def _dumps(value: Any) -> str:
    # Arguments of calls may hold integers of more than 64 bits, which orjson refuses.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_timestamp)


def _timestamp(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} is no JSON value")
