"""OpenAI's models, by the Responses API; nothing is kept on their side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from wayline.llm.model import ModelError, ModelRequest
from wayline.llm.openai import reply as openai_reply
from wayline.llm.openai import request as openai_request
from wayline.llm.openai.reply import Reply
from wayline.llm.transport.sdk import Json, Sdk


class OpenAI(Sdk):
    """Streams from the Responses API, or from another server that speaks it at `base_url`."""

    path = "/responses"
    _account = openai_request.VERIFIED
    """What is asked for: not again what was refused because nobody has verified the organisation."""

    def client(self, settings: Json, http: Json) -> Any:
        from openai import AsyncOpenAI, DefaultAioHttpClient

        return AsyncOpenAI(**settings, http_client=DefaultAioHttpClient(**http))

    def build_body(self, request: ModelRequest) -> tuple[Json, tuple[str, ...]]:
        return openai_request.build_body(request, account=self._account)

    def learn_from_refusal(self, body: Json, refusal: ModelError) -> bool:
        if refusal.param == openai_request.SUMMARY and "summary" in (body.get("reasoning") or {}):
            self._account = replace(self._account, summaries=False)
            return True
        if refusal.param == openai_request.STREAM and body["stream"]:
            self._account = replace(self._account, streams=False)
            return True
        return False

    def events_of(self, body: Json) -> list[Json]:
        return openai_reply.events(body)

    def reply(self, request: ModelRequest) -> Reply:
        return Reply(provider=request.card.provider, model=request.model)
