"""What a tool's server asks a person: put to the user of the client that has called the tool."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import Any, Final

from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import BaseModel, Field, ValidationError

from wayline.contracts.tools import InputAnswer, InputRequest
from wayline.gateway.errors import Declined
from wayline.gateway.handlers.mcp.call_ids import CALLS_MAX
from wayline.gateway.handlers.mcp.client_session import shows_forms

ACCEPT: Final = "accept"


@dataclass(frozen=True)
class ToolRound:
    """One call of a tool that asks: the first, or one that brings an answer to the call before it."""

    number: int = 1
    answer: InputAnswer | None = None


class _State(BaseModel):
    """What a client of protocol 2026-07-28 brings back with its answer.

    It is not sealed: it says nothing that its client may not say, for the client could make the call itself.
    """

    number: int = Field(ge=2, le=CALLS_MAX)
    keys: tuple[str, ...]
    state: str | None


class UserQuestions:
    """Asks the user of a client, in the way of the client's protocol."""

    def __init__(self, ctx: ServerRequestContext[Any]) -> None:
        self._session = ctx.session
        self._request_id = ctx.request_id
        self.end_the_call = ctx.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS
        """Whether a question is the result of a call, and the next call brings its answer."""
        self.possible = shows_forms(ctx.session.client_capabilities) and (
            self.end_the_call or ctx.session.can_send_request
        )

    def as_result(self, asked: InputRequest, before: ToolRound) -> InputRequiredResult:
        """Return a question as the result of a call."""
        state = _State(number=before.number + 1, keys=asked.keys, state=asked.state)
        return InputRequiredResult(
            input_requests={key: ElicitRequest(params=form) for key, form in _forms(asked).items()},
            request_state=urlsafe_b64encode(state.model_dump_json().encode()).decode(),
        )

    async def ask(self, asked: InputRequest) -> InputAnswer:
        """Ask now, and wait for the answer. Raises Declined."""
        answers: dict[str, dict[str, Any]] = {}
        for key, form in _forms(asked).items():
            try:
                answered = await self._session.elicit_form(form.message, form.requested_schema, self._request_id)
            except (MCPError, ValidationError) as error:
                raise Declined(why=f"the client answered with an error: {error}") from None
            answers[key] = _content(answered)
        return InputAnswer(answers=answers, state=asked.state)


def round_of(params: CallToolRequestParams) -> ToolRound:
    """Return which call of a tool a request makes. Raises Declined, or MCPError for an answer that is not readable."""
    if params.request_state is None:
        return ToolRound()
    try:
        state = _State.model_validate_json(urlsafe_b64decode(params.request_state))
    except ValueError:
        raise MCPError(INVALID_PARAMS, "`requestState` is not one that a call here has returned") from None
    given = params.input_responses or {}
    if missing := [key for key in state.keys if not isinstance(given.get(key), ElicitResult)]:
        raise MCPError(INVALID_PARAMS, f"`inputResponses` lacks the answer of a form for {missing}")
    answers = {key: _content(given[key]) for key in state.keys}
    return ToolRound(state.number, InputAnswer(answers=answers, state=state.state))


def _forms(asked: InputRequest) -> dict[str, ElicitRequestFormParams]:
    """Return the forms of a question by the server's names of them."""
    schemas = asked.input_schema["properties"] if len(asked.keys) > 1 else dict.fromkeys(asked.keys, asked.input_schema)
    return {key: ElicitRequestFormParams(message=asked.message, requested_schema=schemas[key]) for key in asked.keys}


def _content(answered: Any) -> dict[str, Any]:
    if not isinstance(answered, ElicitResult) or answered.action != ACCEPT:
        raise Declined(why=f"the answer was {getattr(answered, 'action', None)!r}")
    return dict(answered.content or {})
