"""Claude, by the Messages API."""

from __future__ import annotations

from typing import Any

from wayline.llm.anthropic import reply as anthropic_reply
from wayline.llm.anthropic import request as anthropic_request
from wayline.llm.anthropic.reply import Reply
from wayline.llm.model import ModelRequest
from wayline.llm.transport.sdk import Json, Sdk


class Anthropic(Sdk):
    """Streams from the Messages API, or from another server that speaks it at `base_url`."""

    path = "/v1/messages"

    def client(self, settings: Json, http: Json) -> Any:
        from anthropic import AsyncAnthropic, DefaultAioHttpClient

        # Spans are ours; a trace's id is nobody else's business.
        off: Any = {"propagation": False, "traces": {"enabled": False}}
        return AsyncAnthropic(**settings, open_telemetry=off, http_client=DefaultAioHttpClient(**http))

    def build_body(self, request: ModelRequest) -> tuple[Json, tuple[str, ...]]:
        return anthropic_request.build_body(request)

    def events_of(self, body: Json) -> list[Json]:
        return anthropic_reply.events(body)

    def reply(self, request: ModelRequest) -> Reply:
        return Reply(provider=request.card.provider, model=request.model)
