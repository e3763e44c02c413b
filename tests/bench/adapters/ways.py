"""The ways of making one call: our adapter, the SDK's typed stream, and the SDK's raw one.

All stream over aiohttp and are read to the end. Ours builds its body from a history of twenty messages and ten tools
and puts the message together. The typed way is given a body that is ready and keeps nothing of the answer; the raw one
is given the body's bytes and does not look at what it reads.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx2
import orjson

from wayline.contracts.chat import AssistantMessage, TextPart, ToolCall, ToolMessage, UserMessage
from wayline.contracts.models import CacheRules, ModelCard
from wayline.contracts.tools import ToolDefinition
from wayline.llm import Finished, Model, ModelRequest
from wayline.llm.anthropic import Anthropic
from wayline.llm.anthropic.request import body as messages_body
from wayline.llm.openai import OpenAI
from wayline.llm.openai.request import body as responses_body
from wayline.llm.openai_chat import ChatCompletions
from wayline.llm.openai_chat import build_body as chat_body

OURS, TYPED, RAW = "ours", "typed", "raw"
AGAINST = {TYPED: "the SDK's typed stream", RAW: "the SDK's raw stream"}
SDK_RATIO_MAX = 1.3
"""The aim: of the SDK's CPU."""
SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}}}

Call = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Wire:
    """How to speak one API in every way."""

    model: Callable[[str], Model]
    sdk: Callable[[str], Any]
    body: Callable[[ModelRequest], dict[str, Any]]
    path: str
    create: Callable[[Any], Callable[..., Any]]
    """The SDK's typed method."""


def _anthropic(url: str) -> Any:
    from anthropic import AsyncAnthropic, DefaultAioHttpClient

    off: Any = {"propagation": False, "traces": {"enabled": False}}
    client = DefaultAioHttpClient()
    return AsyncAnthropic(base_url=url, api_key="none", max_retries=0, open_telemetry=off, http_client=client)


def _openai(url: str) -> Any:
    from openai import AsyncOpenAI, DefaultAioHttpClient

    return AsyncOpenAI(base_url=url, api_key="none", max_retries=0, http_client=DefaultAioHttpClient())


def _chat_body(request: ModelRequest) -> dict[str, Any]:
    return chat_body(request, limit="max_tokens")[0]


WIRES = {
    "anthropic": Wire(Anthropic, _anthropic, messages_body, "/v1/messages", lambda sdk: sdk.messages.create),
    "openai": Wire(OpenAI, _openai, responses_body, "/responses", lambda sdk: sdk.responses.create),
    "chat": Wire(ChatCompletions, _openai, _chat_body, "/chat/completions", lambda sdk: sdk.chat.completions.create),
}


class Ways:
    """One wire at one URL, to be called in every way."""

    def __init__(self, wire: Wire, url: str, request: ModelRequest) -> None:
        self._wire = wire
        self._request = request
        self._model, self._sdk = wire.model(url), wire.sdk(url)
        self._body = wire.body(request)
        self._bytes = orjson.dumps(self._body)
        self._create = wire.create(self._sdk)

    @property
    def calls(self) -> dict[str, Call]:
        return {OURS: self._ours, TYPED: self._typed, RAW: self._raw}

    async def close(self) -> None:
        await self._model.close()
        await self._sdk.close()

    async def _ours(self) -> None:
        last = [piece async for piece in self._model.stream(self._request)][-1]
        assert isinstance(last, Finished)

    async def _typed(self) -> None:
        async for _ in await self._create(**self._body):
            pass

    async def _raw(self) -> None:
        response = await self._sdk.post(
            self._wire.path, cast_to=httpx2.Response, content=self._bytes, stream=True, stream_cls=None
        )
        async for _ in response.aiter_bytes():
            pass
        await response.aclose()


def asking(provider: str) -> ModelRequest:
    cache = CacheRules(kind="breakpoints" if provider == "anthropic" else "automatic")
    messages: list[Any] = []
    for n in range(7):
        call = ToolCall(call="1", tool="tool_1", arguments={"query": "what", "limit": n}, provider_id=f"call_{n}")
        messages += [
            UserMessage(parts=(TextPart(text="Find out what there is to know. " * 10),)),
            AssistantMessage(text="I look.", tool_calls=(call,)),
            ToolMessage(call="1", tool="tool_1", content="There is much to know. " * 50),
        ]
    return ModelRequest(
        card=ModelCard(provider=provider, model="m", tier="standard", cache=cache),
        system="Be brief. " * 200,
        messages=tuple(messages[:-1]),
        tools=tuple(ToolDefinition(name=f"tool_{n}", description="A tool.", input_schema=SCHEMA) for n in range(10)),
        max_output_tokens=1_000,
        attempt_id="acme/j1/1/m1",
        breakpoints=(0, 15),
    )
