"""Send a call of a tool, with what a person answered to its server, and tell how far it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache, partial
from math import isfinite
from typing import TYPE_CHECKING, Any

from wayline.contracts.tools import PROGRESS_MAX_CHARS, ToolProgress
from wayline.tool_registry.calls.server_answers import fitted_result
from wayline.tool_registry.calls.tool_servers import TellProgress, ToolRequest
from wayline.tool_registry.connection.questions import is_of_question
from wayline.tool_registry.definitions.visible_text import one_line

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.shared.dispatcher import ProgressFnT
    from mcp_types import CallToolResult, InputRequiredResult
    from pydantic import TypeAdapter

AGAIN_MAX = 10
"""How often a server may ask to be called again without asking for anything."""
AGAIN_PAUSE_S = 0.25


async def send_call(
    session: ClientSession, request: ToolRequest, *, hide: Callable[[str], str]
) -> CallToolResult | InputRequiredResult:
    """Send a call, and again where its server only wants its state back; `hide` takes secrets out of its progress."""
    from mcp_types import CallToolRequest, CallToolRequestParams, ElicitResult, InputRequiredResult

    named: dict[str, Any] = {"name": request.tool, "arguments": request.arguments, "_meta": request.meta}
    if request.answer is not None and _has_result_types(session) and not is_of_question(request.answer):
        answers = {
            key: ElicitResult.model_validate({"action": "accept", "content": content})
            for key, content in request.answer.answers.items()
        }
        named |= {"input_responses": answers, "request_state": request.answer.state}
    again = 0
    heard = None if request.tell is None else _progress(request.tell, hide)
    _fit_results(session)
    while True:
        # Not `call_tool`: that would fail a call whose effect took place over its output schema.
        asked = CallToolRequest(params=CallToolRequestParams.model_validate(named))
        result = await session.send_request(
            asked, _results(), request_read_timeout_seconds=request.timeout_s, progress_callback=heard
        )
        if not isinstance(result, InputRequiredResult) or result.input_requests or again == AGAIN_MAX:
            return result
        again += 1
        named |= {"input_responses": None, "request_state": result.request_state}
        await asyncio.sleep(AGAIN_PAUSE_S)


def _progress(tell: TellProgress, hide: Callable[[str], str]) -> ProgressFnT:
    """Return a callback that tells how far a server says a call is; it passes over what is no number."""

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        if not isfinite(progress) or (total is not None and not isfinite(total)):
            return
        shown = one_line(hide(message or ""), at_most=PROGRESS_MAX_CHARS)
        tell(ToolProgress(progress=progress, total=total, message=shown))

    return hear


class _ResultDispatcher:
    """A session's dispatcher that gives a call's result the shape that the protocol has for it.

    The library refuses one that is oddly shaped, after the effect.
    """

    def __init__(self, inner: Any, session: ClientSession) -> None:
        self._inner = inner
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def send_raw_request(self, method: str, params: Any, opts: Any) -> dict[str, Any]:
        raw = await self._inner.send_raw_request(method, params, opts)
        if method != "tools/call":
            return raw
        if _has_result_types(self._session):
            # The type that it left out.
            raw = {"resultType": "complete", **raw}
        version = self._session._negotiated_version or "2025-11-25"
        return raw if _is_result(raw, version) else fitted_result(raw, is_block=partial(_is_block, version=version))


def _is_result(raw: dict[str, Any], version: str) -> bool:
    """Return whether the library takes a value as a call's result."""
    from mcp_types.methods import validate_server_result

    try:
        validate_server_result("tools/call", version, raw)
        _results().validate_python(raw, by_name=False)
    except ValueError:
        return False
    return True


def _is_block(block: Any, *, version: str) -> bool:
    return isinstance(block, dict) and _is_result({"content": [block], "resultType": "complete"}, version)


def _has_result_types(session: ClientSession) -> bool:
    # Since 2026-07-28, where a session begins with a discovery.
    return session.discover_result is not None


def _fit_results(session: Any) -> None:
    if not isinstance(session._dispatcher, _ResultDispatcher):
        session._dispatcher = _ResultDispatcher(session._dispatcher, session)


@cache
def _results() -> TypeAdapter[CallToolResult | InputRequiredResult]:
    """Return what reads a call's result: to make one takes a quarter of a millisecond."""
    from mcp_types import CallToolResult, InputRequiredResult
    from pydantic import TypeAdapter

    return TypeAdapter(CallToolResult | InputRequiredResult)
