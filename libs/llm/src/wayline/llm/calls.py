"""The calls of one answer, numbered, with their arguments read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from wayline.contracts.chat import ToolCall

Call = tuple[str | None, str | None, str | dict[str, Any]]
"""The provider's id, the tool, and the arguments as they came."""


def numbered(calls: Iterable[Call]) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall(
            call=str(n),
            tool=tool or "",
            arguments=read(arguments) if isinstance(arguments, str) else arguments,
            provider_id=wire_id or None,
        )
        for n, (wire_id, tool, arguments) in enumerate(calls, 1)
    )


def read(text: str) -> dict[str, Any]:
    try:
        value = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        value = None
    # What is not an object is handed on as it came: the tool's schema refuses it with an error the model can read.
    return value if isinstance(value, dict) else {"_unreadable": text}
