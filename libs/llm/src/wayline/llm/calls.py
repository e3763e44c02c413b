"""The calls of one answer, numbered, with their arguments read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wayline.contracts.chat import ToolCall
from wayline.llm.broken_json import arguments

Call = tuple[str | None, str | None, str | dict[str, Any]]
"""The provider's id, the tool, and the arguments as they came."""


def numbered(calls: Iterable[Call], *, cut: bool = False) -> tuple[ToolCall, ...]:
    """Number calls and read their arguments. `cut`: the output limit ended the last call, earlier ones are whole."""
    asked = list(calls)
    return tuple(
        ToolCall(
            call=str(n),
            tool=tool or "",
            arguments=arguments.read(given, cut=cut and n == len(asked)) if isinstance(given, str) else given,
            provider_id=wire_id or None,
        )
        for n, (wire_id, tool, given) in enumerate(asked, 1)
    )
