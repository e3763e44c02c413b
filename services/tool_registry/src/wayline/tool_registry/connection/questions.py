"""Answer what a server asks in the middle of a call, as servers before MCP 2026-07-28 do.

Such a question cannot wait for a person: it would hold a connection for days, and no deploy would survive it. So it is
cancelled, the job asks a person, and the answer goes with a new call of the tool, which gives it where the server asks
the same again.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import structlog

from wayline.contracts.tools import InputAnswer
from wayline.tool_registry.calls.asked_input import AFTER_CANCEL, is_question, why_not_asked
from wayline.tool_registry.connection.failures import refusal
from wayline.tool_registry.definitions.visible_text import one_line
from wayline.tool_registry.errors import NotBegun

if TYPE_CHECKING:
    from mcp.client import ClientRequestContext
    from mcp_types import (
        CallToolResult,
        ElicitRequestFormParams,
        ElicitRequestParams,
        ElicitResult,
        InputRequiredResult,
    )

log = structlog.get_logger()

CHARS_MAX = 300
"""The most of a server's words that are shown beside its question."""
STATE = "wayline/answered:"
"""Begins the state of such a question: the answers that were given before it, by question."""
SEVERAL = "other calls ran beside this one, and nothing in its version of MCP says which of them asks"
GIVEN_UP = "an earlier call was given up, and nothing in its version of MCP says that it is not this one that asks"


@dataclass(eq=False)
class CallQuestions:
    """What is asked while one call runs."""

    answers: Mapping[str, dict[str, Any]]
    """Of a person, by question."""
    seen: Counter[str] = field(default_factory=Counter)
    asked: tuple[str, ElicitRequestFormParams] | None = None
    """The question at which the call was cancelled."""
    declined: str = ""
    """What is noted with its result of a question that was not put to a person."""

    def next(self, params: ElicitRequestParams) -> str:
        """Return the key of a question: the same words asked again are another question."""
        digest = _digest(params)
        return f"{digest}/{self.seen[digest] + 1}"

    def ended(
        self, result: CallToolResult | InputRequiredResult, *, hide: Callable[[str], str]
    ) -> CallToolResult | InputRequiredResult:
        """Return what a call has ended with: the question that is open, or its result with a note of one declined."""
        if is_question(result):
            return result
        if self.asked is not None:
            texts = (getattr(block, "text", "") for block in result.content)
            return self.open_question(hide(" ".join(texts)))
        if not self.declined:
            return result
        from mcp_types import TextContent

        return result.model_copy(update={"content": [*result.content, TextContent(text=hide(self.declined))]})

    def open_question(self, after_cancel: str) -> InputRequiredResult:
        """Return the question at which the call was cancelled, with what the server said after that."""
        from mcp_types import ElicitRequest, InputRequiredResult

        assert self.asked is not None
        key, params = self.asked
        shown = one_line(after_cancel, at_most=CHARS_MAX)
        return InputRequiredResult(
            input_requests={key: ElicitRequest(params=params)},
            request_state=STATE + json.dumps(dict(self.answers)),
            _meta={AFTER_CANCEL: shown},
        )


class Questions:
    """Hears what a server asks over one connection, and answers for the call that it asks for.

    Nothing in a question says of which call it is. So a call with an answer runs alone, and no other is given it.
    """

    def __init__(self) -> None:
        self._running: list[CallQuestions] = []
        self._turn = asyncio.Lock()
        self._nothing_runs = asyncio.Event()
        self._nothing_runs.set()
        self._one_was_given_up = False
        """Whether a call was not answered: its server may go on with it, and ask."""

    @asynccontextmanager
    async def during(self, answer: InputAnswer | None, *, within_s: float) -> AsyncIterator[CallQuestions]:
        """Hear the questions of a call while it runs; `answer` is what a person said to the one before.

        Raises NotBegun where the call would have to wait longer for others.
        """
        call = CallQuestions(_answers(answer))
        try:
            async with asyncio.timeout(within_s):
                await self._enter(alone=bool(call.answers))
        except TimeoutError:
            raise NotBegun(f"other calls of the server took longer than {within_s:g} s") from None
        self._running.append(call)
        self._nothing_runs.clear()
        try:
            yield call
        except BaseException as error:
            self._one_was_given_up |= refusal(error) is None
            raise
        finally:
            self._running.remove(call)
            if not self._running:
                self._nothing_runs.set()
            if call.answers:
                self._turn.release()

    async def _enter(self, *, alone: bool) -> None:
        """Wait for a call that runs alone, and where this one is to run so, for every other."""
        await self._turn.acquire()
        if not alone:
            self._turn.release()
            return
        try:
            await self._nothing_runs.wait()
        except BaseException:
            self._turn.release()
            raise

    async def hear(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        """Answer a question with what a person said to it; else cancel it for a person to be asked, or decline it."""
        from mcp_types import ElicitResult

        why = self._why_not_asked(params)
        if why is not None:
            log.warning("a server's question was declined", question=params.message[:CHARS_MAX], why=why)
            for call in self._running:
                call.declined = _note(params, why)
            return ElicitResult(action="decline")
        [call] = self._running
        if (answer := call.answers.get(call.next(params))) is not None:
            call.seen[_digest(params)] += 1
            return ElicitResult(action="accept", content={**_defaults(params), **answer})
        if call.asked is None and params.mode == "form":
            call.asked = (call.next(params), params)
        return ElicitResult(action="cancel")

    def _why_not_asked(self, params: ElicitRequestParams) -> str | None:
        """Return why a question is not put to a person; None: it is."""
        from mcp_types import ElicitRequest

        if len(self._running) != 1:
            return SEVERAL if self._running else "no call ran for which it could ask"
        if self._one_was_given_up:
            return GIVEN_UP
        why = why_not_asked({"": ElicitRequest(params=params)}, None)
        return None if why is None else f"the server {why}"


def is_of_question(answer: InputAnswer) -> bool:
    """Return whether an answer is to a question in the middle of a call: its server keeps no state of it."""
    return (answer.state or "").startswith(STATE)


def _answers(answer: InputAnswer | None) -> dict[str, dict[str, Any]]:
    if answer is None or not is_of_question(answer):
        return {}
    try:
        before = json.loads((answer.state or "").removeprefix(STATE))
    except ValueError:
        # A server that makes up such a state gets none of its own back.
        return {}
    return {**before, **answer.answers}


def _digest(params: ElicitRequestParams) -> str:
    asked = params.model_dump(mode="json", by_alias=True, exclude={"meta", "task"})
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]


def _defaults(params: ElicitRequestParams) -> dict[str, Any]:
    """Return what stands for the properties that an answer leaves out."""
    properties: Any = params.requested_schema.get("properties", {}) if params.mode == "form" else {}
    return {name: one["default"] for name, one in properties.items() if isinstance(one, dict) and "default" in one}


def _note(params: ElicitRequestParams, why: str) -> str:
    message = one_line(params.message, at_most=CHARS_MAX)
    return f"[While this ran its server asked a person: {message!r}. That was declined: {why}.]"
