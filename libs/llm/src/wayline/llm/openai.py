"""OpenAI's models, by the Responses API; nothing is kept on their side."""

from __future__ import annotations

from typing import Any

import httpx2

from wayline.llm import openai_body
from wayline.llm.model import ModelRequest
from wayline.llm.openai_reply import Reply
from wayline.llm.sdk import Sdk


class OpenAI(Sdk):
    path = "/responses"

    def client(self, settings: dict[str, Any], limits: httpx2.Limits) -> Any:
        from openai import AsyncOpenAI, DefaultAioHttpClient

        return AsyncOpenAI(**settings, http_client=DefaultAioHttpClient(limits=limits))

    def asked(self, request: ModelRequest) -> tuple[dict[str, Any], tuple[str, ...]]:
        return openai_body.asked(request)

    def reply(self, request: ModelRequest) -> Reply:
        return Reply(provider=request.card.provider, model=request.model)
