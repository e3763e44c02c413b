"""Chat Completions over plain HTTP: any endpoint that speaks it (Ollama, vLLM, a gateway, a test server)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import orjson

from wayline.contracts.chat import (
    AssistantMessage,
    ChatMessage,
    NoteMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from wayline.contracts.money import Usage
from wayline.llm.lines import lines
from wayline.llm.model import ErrorCode, Finished, ModelError, ModelRequest, StopReason, TextDelta

ATTEMPT_HEADER = "X-Wayline-Attempt"
CONNECTIONS_MAX = 1_024
SILENCE_MAX_S = 120.0
"""How long a provider may say nothing, before or within a stream."""
STOPS: dict[str, StopReason] = {
    "stop": "end",
    "length": "max_tokens",
    "tool_calls": "tools",
    "content_filter": "refused",
}
RETRYABLE = frozenset({408, 409, 429, 500, 502, 503, 504, 529})


class ChatCompletions:
    """Streams from `<base_url>/chat/completions`."""

    def __init__(self, base_url: str, *, api_key: str | None = None) -> None:
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        self._headers = {"Authorization": f"Bearer {api_key or 'none'}", "Content-Type": "application/json"}
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def stream(self, request: ModelRequest) -> AsyncIterator[TextDelta | Finished]:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=CONNECTIONS_MAX),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=SILENCE_MAX_S),
            )
        headers = {**self._headers, ATTEMPT_HEADER: request.attempt_id}
        reply = _Assembled()
        try:
            async with self._session.post(self._url, data=orjson.dumps(_body(request)), headers=headers) as response:
                if response.status != 200:
                    raise _refused(response.status, response.headers.get("Retry-After"), await response.text())
                async for line in lines(response.content):
                    text = reply.take(line)
                    if text:
                        yield TextDelta(text)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise ModelError("connection", f"{type(error).__name__}: {error}", retryable=True) from error
        yield reply.finished()


class _Assembled:
    """A streamed message being put together; lenient about what a compatible endpoint leaves out."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._calls: dict[int, dict[str, str]] = {}
        self._usage: dict[str, Any] | None = None
        self._stop: str | None = None

    def take(self, line: bytes) -> str:
        if not line.startswith(b"data:"):
            return ""
        data = line[5:].strip()
        if data == b"[DONE]":
            return ""
        chunk = orjson.loads(data)
        if "error" in chunk:
            raise ModelError("server_error", str(chunk["error"]), retryable=True)
        self._usage = chunk.get("usage") or self._usage
        said = ""
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or {}
            said += delta.get("content") or ""
            for call in delta.get("tool_calls") or ():
                self._take_call(call)
            self._stop = choice.get("finish_reason") or self._stop
        self._text.append(said)
        return said

    def _take_call(self, piece: dict[str, Any]) -> None:
        call = self._calls.setdefault(piece.get("index", 0), {"id": "", "name": "", "arguments": ""})
        function = piece.get("function") or {}
        call["id"] = piece.get("id") or call["id"]
        call["name"] += function.get("name") or ""
        call["arguments"] += function.get("arguments") or ""

    def finished(self) -> Finished:
        if self._stop is None:
            raise ModelError("stream_cut", "the stream ended before the message did", retryable=True)
        calls = tuple(
            ToolCall(call=str(n), tool=c["name"], arguments=_arguments(c["arguments"]), provider_id=c["id"] or None)
            for n, (_, c) in enumerate(sorted(self._calls.items()), 1)
        )
        message = AssistantMessage(text="".join(self._text), tool_calls=calls)
        return Finished(message, _usage(self._usage), "tools" if calls else STOPS.get(self._stop, "end"))


def _arguments(text: str) -> dict[str, Any]:
    try:
        value = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        value = None
    # What is not an object is handed on as it came: the tool's schema refuses it with an error the model can read.
    return value if isinstance(value, dict) else {"_unreadable": text}


def _usage(said: dict[str, Any] | None) -> Usage:
    if said is None:
        raise ModelError("no_usage", "the endpoint sent no usage; it must honour stream_options", retryable=False)
    cached = (said.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    reasoning = (said.get("completion_tokens_details") or {}).get("reasoning_tokens") or 0
    return Usage(
        input=said.get("prompt_tokens") or 0,
        cache_read=cached,
        output=said.get("completion_tokens") or 0,
        reasoning=reasoning,
    )


def _refused(status: int, retry_after: str | None, body: str) -> ModelError:
    after_s = float(retry_after) if retry_after and retry_after.replace(".", "", 1).isdigit() else None
    return ModelError(_code(status), f"{status}: {body[:500]}", retryable=status in RETRYABLE, after_s=after_s)


def _code(status: int) -> ErrorCode:
    if status in (401, 403):
        return "authentication"
    if status == 429:
        return "rate_limited"
    return "server_error" if status >= 500 else "invalid_request"


def _body(request: ModelRequest) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [{"role": "system", "content": request.system}, *(_message(m) for m in request.messages)],
        "max_completion_tokens": request.max_output_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": t.name, "description": t.description, "parameters": t.input_schema},
            }
            for t in request.tools
        ]
    return body


def _message(message: ChatMessage) -> dict[str, Any]:
    if isinstance(message, UserMessage):
        unsupported = [part.type for part in message.parts if not isinstance(part, TextPart)]
        if unsupported:
            raise ModelError(
                "unsupported_input", f"this adapter sends text only, not {unsupported[0]}", retryable=False
            )
        said = [part.text for part in message.parts if isinstance(part, TextPart)]
        return {"role": "user", "content": "\n\n".join([*said, *message.asides])}
    if isinstance(message, ToolMessage):
        return {"role": "tool", "tool_call_id": message.provider_id or message.call, "content": message.content}
    if isinstance(message, NoteMessage):
        return {"role": "user", "content": f"[{message.label}]\n{message.text}"}
    answer: dict[str, Any] = {"role": "assistant", "content": message.text or None}
    if message.tool_calls:
        answer["tool_calls"] = [
            {
                "id": call.provider_id or call.call,
                "type": "function",
                "function": {"name": call.tool, "arguments": orjson.dumps(call.arguments).decode()},
            }
            for call in message.tool_calls
        ]
    return answer
