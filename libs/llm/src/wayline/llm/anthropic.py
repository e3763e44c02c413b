"""Claude, by the Messages API."""

from __future__ import annotations

from typing import Any

import httpx2

from wayline.llm import anthropic_body
from wayline.llm.anthropic_reply import Reply
from wayline.llm.model import ModelRequest
from wayline.llm.sdk import Sdk


class Anthropic(Sdk):
    path = "/v1/messages"

    def client(self, settings: dict[str, Any], limits: httpx2.Limits) -> Any:
        from anthropic import AsyncAnthropic, DefaultAioHttpClient

        # Spans are ours; a trace's id is nobody else's business.
        off: Any = {"propagation": False, "traces": {"enabled": False}}
        return AsyncAnthropic(**settings, open_telemetry=off, http_client=DefaultAioHttpClient(limits=limits))

    def asked(self, request: ModelRequest) -> tuple[dict[str, Any], tuple[str, ...]]:
        return anthropic_body.asked(request)

    def reply(self, request: ModelRequest) -> Reply:
        return Reply(provider=request.card.provider, model=request.model)
