"""Put an answer of Chat Completions together, from a stream's chunks or from one whole body."""

from __future__ import annotations

from typing import Any

import orjson

from wayline.contracts.chat import AssistantMessage, ToolCall, Verbatim
from wayline.contracts.money import Usage
from wayline.llm.calls import Call, numbered
from wayline.llm.model import Finished, StopReason
from wayline.llm.transport import provider_errors
from wayline.llm.usage import from_chat

STOPS: dict[str, StopReason] = {
    "stop": "end",
    "eos": "end",
    "length": "max_tokens",
    "tool_calls": "tools",
    "function_call": "tools",
    "content_filter": "refused",
}
THINKING = ("reasoning_content", "reasoning")
"""Where endpoints put what may be read of a model's thinking; none is in the standard."""
_OUR_CALL_FIELDS = frozenset({"index", "id", "type", "function"})


class Reply:
    """An answer being put together; lenient about what a compatible endpoint leaves out."""

    __slots__ = (
        "_at",
        "_begun",
        "_calls",
        "_refusal",
        "_stop",
        "_text",
        "_thinking",
        "_thinking_field",
        "done",
        "usage",
    )

    def __init__(self) -> None:
        self.done = False
        """The endpoint has said that nothing follows."""
        self.usage: Usage | None = None
        self._begun = False
        """A choice has come, though it may be empty."""
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._thinking: list[str] = []
        self._thinking_field = ""
        self._calls: list[_Call] = []
        self._at: dict[int, _Call] = {}
        self._stop: str | None = None

    @property
    def stopped(self) -> bool:
        return self._stop is not None or self.done

    @property
    def whole(self) -> bool:
        """Return whether the message is whole, and its usage known or not to come."""
        return self.done or (self.stopped and self.usage is not None)

    def take_line(self, line: bytes) -> str:
        """Add a line of a stream, and return its part of the text."""
        if not line.startswith(b"data:"):
            return ""
        data = line[5:].strip()
        if not data:
            return ""
        if data == b"[DONE]":
            self.done = True
            return ""
        return self.take(orjson.loads(data))

    def take(self, chunk: dict[str, Any]) -> str:
        """Add a chunk or a whole body, and return its part of the text. Raises ModelError for an error told inside."""
        if chunk.get("error") and not self.whole:
            raise provider_errors.from_stream(chunk["error"])
        counted = chunk.get("usage")
        if counted is None and "x_groq" in chunk:
            counted = (chunk["x_groq"] or {}).get("usage")
        if counted:
            self.usage = from_chat(counted)
        for choice in chunk.get("choices") or ():
            # More than one would be alternatives, and we ask for one.
            if not choice.get("index"):
                return self._take_choice(choice)
        return ""

    def _take_choice(self, choice: dict[str, Any]) -> str:
        if choice.get("error"):
            raise provider_errors.from_stream(choice["error"])
        self._begun = True
        self._stop = choice.get("finish_reason") or self._stop
        delta = choice.get("delta") or choice.get("message")
        if not delta:
            return ""
        text = delta.get("content") or ""
        if not isinstance(text, str):
            text = self._parts(text)
        if text:
            self._text.append(text)
        if "reasoning_content" in delta or "reasoning" in delta:
            self._take_thinking(delta)
        if "tool_calls" in delta:
            for call in delta["tool_calls"] or ():
                self._take_call(call)
        if delta.get("function_call"):
            self._take_call({"index": 0, "function": delta["function_call"]})
        if delta.get("refusal"):
            self._refusal.append(delta["refusal"])
            return text + delta["refusal"]
        return text

    def _take_thinking(self, delta: dict[str, Any]) -> None:
        for field in THINKING:
            if delta.get(field):
                self._thinking_field = field
                self._thinking.append(delta[field])
                return

    def _parts(self, parts: list[dict[str, Any]]) -> str:
        """Read content that is a list of parts: text, and thinking that is itself a list of texts."""
        text = ""
        for part in parts:
            if part.get("type") == "thinking":
                self._thinking.extend(piece.get("text") or "" for piece in part.get("thinking") or ())
            else:
                text += part.get("text") or ""
        return text

    def _take_call(self, piece: dict[str, Any]) -> None:
        given, index = piece.get("id") or "", piece.get("index")
        call = self._at.get(index) if index is not None else (self._calls[-1] if self._calls and not given else None)
        # Some endpoints number every call 0, or none: another id is another call.
        if call is None or (given and call.id and given != call.id):
            call = _Call()
            self._calls.append(call)
            if index is not None:
                self._at[index] = call
        call.take(piece)

    def finished(self, *, provider: str, model: str, notes: tuple[str, ...] = ()) -> Finished:
        """Return the message, and its usage where the endpoint told any. Raises ModelError for half a message."""
        if not self.stopped:
            raise provider_errors.stream_cut()
        if not self._begun:
            raise provider_errors.empty_answer()
        return Finished(self.message(provider=provider, model=model), self.usage, self.stop_reason(), notes)

    def message(self, *, provider: str, model: str) -> AssistantMessage:
        """Return the message so far."""
        calls = numbered((call.wire_form for call in self._calls), cut=self._stop == "length")
        return AssistantMessage(
            text="".join(self._text) + "".join(self._refusal),
            tool_calls=calls,
            thinking="".join(self._thinking),
            verbatim=self._verbatim(calls, provider, model) if calls else None,
        )

    def stop_reason(self) -> StopReason:
        if self._refusal:
            return "refused"
        stop = STOPS.get(self._stop or "", "end")
        return "tools" if self._calls and stop == "end" else stop

    def _verbatim(self, calls: tuple[ToolCall, ...], provider: str, model: str) -> Verbatim | None:
        """Return what an endpoint wants back and we have no field for: thinking before a call, signatures on it."""
        if not self._thinking_field and not any(call.extra for call in self._calls):
            return None
        block: dict[str, Any] = {"role": "assistant", "content": "".join(self._text) or None}
        if self._thinking_field:
            block[self._thinking_field] = "".join(self._thinking)
        block["tool_calls"] = [
            {**wanted_call(wanted, wanted.provider_id or wanted.call), **call.extra}
            for wanted, call in zip(calls, self._calls, strict=True)
        ]
        return Verbatim(provider=provider, model=model, blocks=(block,))


class _Call:
    """One tool call being put together."""

    __slots__ = ("_arguments", "_name", "extra", "id")

    def __init__(self) -> None:
        self.id = ""
        self.extra: dict[str, Any] = {}
        self._name = ""
        self._arguments: list[str] = []

    def take(self, piece: dict[str, Any]) -> None:
        function = piece.get("function") or {}
        self.id = piece.get("id") or self.id
        name = function.get("name")
        # The name comes in pieces from some endpoints, and again with every piece from others.
        if name and name != self._name:
            self._name += name
        arguments = function.get("arguments")
        if arguments:
            self._arguments.append(arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode())
        if not _OUR_CALL_FIELDS.issuperset(piece):
            self.extra.update({key: value for key, value in piece.items() if key not in _OUR_CALL_FIELDS})

    @property
    def wire_form(self) -> Call:
        return self.id, self._name, "".join(self._arguments)


def wanted_call(call: ToolCall, wire_id: str) -> dict[str, Any]:
    """Write a tool call in this wire format."""
    return {
        "id": wire_id,
        "type": "function",
        "function": {"name": call.tool, "arguments": orjson.dumps(call.arguments).decode()},
    }
