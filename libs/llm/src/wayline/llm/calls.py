"""The calls of one answer, numbered, with their arguments read. What a model did not finish is not handed on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wayline.contracts.chat import ToolCall
from wayline.llm.broken_json import tool_arguments
from wayline.llm.model import StopReason
from wayline.llm.stops import WHOLE

Call = tuple[str | None, str | None, str | dict[str, Any] | None]
"""The provider's id, the tool, and the arguments as they came; None: its arguments never ended."""


def numbered(calls: Iterable[Call], *, stop: StopReason, told: bool = True) -> tuple[ToolCall, ...]:
    """Number calls and read their arguments.

    Of a refused message there are none. After any stop that does not say that the message is whole, the last call's
    arguments are unreadable: they may be cut, also where what is left of them is JSON. Where no reason was `told`, a
    last call without any arguments is one that was cut before its first.
    """
    asked = [] if stop == "refused" else list(calls)
    if asked and not told and not asked[-1][2]:
        asked[-1] = (*asked[-1][:2], None)
    return tuple(
        ToolCall(
            call=str(n),
            tool=tool or "",
            arguments=tool_arguments.unreadable(given)
            if given is None or (stop not in WHOLE and n == len(asked))
            else tool_arguments.read(given),
            provider_id=wire_id or None,
        )
        for n, (wire_id, tool, given) in enumerate(asked, 1)
    )
