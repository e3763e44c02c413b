"""Claude, by the Messages API."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from wayline.llm.anthropic_body import asked
from wayline.llm.anthropic_reply import Reply
from wayline.llm.model import ModelRequest, Piece
from wayline.llm.sdk import PLACEHOLDER_KEY, SILENCE_MAX_S, Sdk, limits, timeouts


class Anthropic:
    """Streams from `<base_url>/v1/messages`; no base URL is the provider's own."""

    def __init__(
        self, base_url: str | None = None, *, api_key: str | None = None, silence_max_s: float = SILENCE_MAX_S
    ) -> None:
        self._base_url = base_url
        self._api_key = api_key or PLACEHOLDER_KEY
        self._silence_max_s = silence_max_s
        self._sdk = Sdk(self._client, "/v1/messages")

    async def close(self) -> None:
        await self._sdk.close()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece]:
        said, notes = asked(request)
        reply = Reply(provider=request.card.provider, model=request.model)
        async with aclosing(self._sdk.stream(request, said, reply)) as pieces:
            async for piece in pieces:
                yield piece
        yield replace(reply.finished(), notes=notes)

    def _client(self) -> Any:
        from anthropic import AsyncAnthropic, DefaultAioHttpClient

        return AsyncAnthropic(
            base_url=self._base_url,
            api_key=self._api_key,
            max_retries=0,
            timeout=timeouts(self._silence_max_s),
            # Spans and the policy of retries are ours; a trace's id is nobody else's business.
            open_telemetry={"propagation": False, "traces": {"enabled": False}},
            http_client=DefaultAioHttpClient(limits=limits()),
        )
