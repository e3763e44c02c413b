"""OpenAI's models, by the Responses API; nothing is kept on their side."""

from __future__ import annotations

from typing import Any

from wayline.llm import openai_body
from wayline.llm.model import ModelRequest
from wayline.llm.openai_reply import Reply
from wayline.llm.sdk import Json, Sdk


class OpenAI(Sdk):
    """Streams from the Responses API, or from whoever speaks it at `base_url`."""

    path = "/responses"

    def client(self, settings: Json, http: Json) -> Any:
        from openai import AsyncOpenAI, DefaultAioHttpClient

        return AsyncOpenAI(**settings, http_client=DefaultAioHttpClient(**http))

    def asked(self, request: ModelRequest) -> tuple[Json, tuple[str, ...]]:
        return openai_body.asked(request)

    def reply(self, request: ModelRequest) -> Reply:
        return Reply(provider=request.card.provider, model=request.model)
