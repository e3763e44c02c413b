"""Put an answer of Chat Completions together, from a stream's chunks or from one whole body."""

from __future__ import annotations

import json
from typing import Any

import orjson

from wayline.contracts.chat import AssistantMessage, ToolCall, Verbatim
from wayline.contracts.money import Usage
from wayline.llm.calls import Call, numbered
from wayline.llm.characters import joined, joined_all
from wayline.llm.history_turns import called_name
from wayline.llm.model import Finished, ModelError, StopReason
from wayline.llm.refusals import told
from wayline.llm.stops import last_word, stop_reason
from wayline.llm.transport import provider_errors
from wayline.llm.transport.server_sent_events import begins_object, broken, json_object, named_error
from wayline.llm.usage import from_chat, plausible

THINKING = ("reasoning_content", "reasoning")
"""Where endpoints put what may be read of a model's thinking; none is in the standard."""
LINES_MAX_BYTES = 256 * 1024
LINES_MAX = 1_000
"""Of an object that is told in several lines: each that may be its last reads it anew."""
_OUR_CALL_FIELDS = frozenset({"index", "id", "type", "function", "name", "arguments"})


class Reply:
    """An answer being put together; lenient about what a compatible endpoint leaves out."""

    __slots__ = (
        "_at",
        "_begun",
        "_calls",
        "_choice",
        "_counted",
        "_filters",
        "_in_deltas",
        "_lines",
        "_names_error",
        "_pending",
        "_refusal",
        "_stop",
        "_text",
        "_thinking",
        "_thinking_field",
        "_used",
        "done",
        "seen",
    )

    def __init__(self) -> None:
        self.done = False
        """The endpoint has said that nothing follows."""
        self.seen: Usage | None = None
        """What the endpoint has counted until now, where that can be read."""
        self._counted: Any = None
        """The usage that it told last, as it came."""
        self._used: Usage | None = None
        """The same, where that can be read."""
        self._pending = b""
        """An object that goes on in the next line."""
        self._lines = 0
        """Of it."""
        self._names_error = False
        """The event that the next lines are of is named an error."""
        self._choice: str | None = None
        """The number of the choice that is taken: others would be alternatives, and we ask for one."""
        self._in_deltas = False
        """Something has come in pieces, so a whole message beside them says it once more."""
        self._begun = False
        """A choice has come, though it may be empty."""
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._thinking: list[str] = []
        self._thinking_field = ""
        self._calls: list[_Call] = []
        self._at: dict[int, _Call] = {}
        self._stop: str | None = None
        self._filters: object = None
        """What the endpoint's filters found, where it says so."""

    @property
    def stopped(self) -> bool:
        return self._stop is not None or self.done

    @property
    def whole(self) -> bool:
        """Return whether the message is whole, and its usage known or not to come."""
        return self.done or (self.stopped and self._counted is not None)

    def take_line(self, line: bytes) -> str:
        """Add a line of a stream, and return its part of the text."""
        if not line.startswith(b"data:"):
            return self._take_other(line)
        data = line[5:].strip()
        if data == b"[DONE]":
            self.done = True
            return ""
        if self._pending:
            data = self._pending + b"\n" + data
        try:
            if not data.endswith(b"}") and begins_object(data):
                raise broken(data)
            chunk = json_object(data)
        except ModelError:
            # An event may have its data in several lines.
            self._pending, self._lines = data, self._lines + 1
            if len(data) > LINES_MAX_BYTES or self._lines > LINES_MAX:
                raise
            return ""
        self._pending, self._lines = b"", 0
        if self._names_error:
            chunk = named_error(data, chunk)
        return self.take(chunk) if chunk else ""

    def _take_other(self, line: bytes) -> str:
        """Take a line without data."""
        if line.startswith(b"event:"):
            self._names_error = line[6:].strip() == b"error"
        elif not line.strip():
            self._names_error = False
            if self._pending:
                raise broken(self._pending)
        elif line.startswith(b"error:") and (told := json_object(line[6:])):
            # So llama.cpp's server has told errors.
            return self.take({"error": told})
        return ""

    def take(self, chunk: dict[str, Any]) -> str:
        """Add a chunk or a whole body, and return its part of the text. Raises ModelError for an error told inside."""
        choices = chunk.get("choices")
        error = chunk.get("error") if choices else provider_errors.within(chunk)
        if error and not self.whole:
            raise provider_errors.from_stream(error)
        self._take_usage(chunk.get("usage") or _within(chunk.get("x_groq"), "usage"))
        if self.done:
            return ""
        found = [choice for choice in choices or () if isinstance(choice, dict)]
        if found and self._choice is None:
            self._choice = min(map(_number, found))
        # Some endpoints tell the text and the calls of one message as two choices of one number.
        return "".join(self._take_choice(choice) for choice in found if _number(choice) == self._choice)

    def _take_usage(self, counted: Any) -> None:
        if counted:
            self._counted = counted
            self._used = from_chat(counted)
            self.seen = self._used or self.seen

    def _take_choice(self, choice: dict[str, Any]) -> str:
        if choice.get("error"):
            raise provider_errors.from_stream(choice["error"])
        self._begun = True
        self._stop = last_word(self._stop, choice.get("finish_reason"))
        self._filters = choice.get("content_filter_results") or self._filters
        # There, and in no other place, Moonshot tells it.
        self._take_usage(choice.get("usage"))
        delta = choice.get("delta")
        if delta:
            self._in_deltas = True
        elif not self._in_deltas:
            delta = choice.get("message")
        if not delta:
            return ""
        text = delta.get("content") or ""
        if not isinstance(text, str):
            self._thinking.extend(_thoughts(text))
            text = _words(text)
        if text:
            self._text.append(text)
        if "reasoning_content" in delta or "reasoning" in delta:
            self._take_thinking(delta)
        if "tool_calls" in delta:
            calls = delta["tool_calls"] or ()
            for call in (calls,) if isinstance(calls, dict) else calls:
                if call:
                    self._take_call(call)
        if delta.get("function_call"):
            self._take_call({"index": 0, "function": delta["function_call"]})
        if refusal := _words(delta.get("refusal")):
            self._refusal.append(refusal)
            return text + refusal
        return text

    def _take_thinking(self, delta: dict[str, Any]) -> None:
        for field in THINKING:
            if thought := _words(delta.get(field)):
                self._thinking_field = field
                self._thinking.append(thought)
                return

    def _take_call(self, piece: dict[str, Any]) -> None:
        if any(call.is_told_again(piece) for call in self._calls):
            return
        call = self._call_of(piece)
        if call is None:
            call = _Call()
            self._calls.append(call)
            if piece.get("index") is not None:
                self._at[piece["index"]] = call
        call.take(piece)

    def _call_of(self, piece: dict[str, Any]) -> _Call | None:
        """Find the call that a piece goes on with: by its id, its index, or else the last; None: it begins another.

        Endpoints number all calls 0, or each piece anew, or none; and some give all calls one id.
        """
        given, index = str(piece.get("id") or ""), piece.get("index")
        function = piece.get("function") or piece
        named, brings = bool(function.get("name")), bool(function.get("arguments"))
        numbered_so = self._at.get(index) if index is not None else None
        if numbered_so is not None and (not given or not numbered_so.id or numbered_so.id == given):
            found, elsewhere = numbered_so, False
        elif given:
            found = next((call for call in reversed(self._calls) if call.id == given), None)
            elsewhere = index is not None
        elif index is not None and named:
            return None
        else:
            found, elsewhere = self._calls[-1] if self._calls else None, False
        # What is whole already does not go on where a call is named anew.
        begins = found is not None and named and (brings or elsewhere) and found.is_whole
        return None if begins else found

    def finished(self, *, provider: str, model: str, notes: tuple[str, ...] = ()) -> Finished:
        """Return the message, and its usage where the endpoint told any. Raises ModelError for half a message."""
        if not self.stopped:
            raise provider_errors.stream_cut()
        if not self._begun:
            raise provider_errors.empty_answer()
        used = self._used
        stop = stop_reason(self._stop, calls=bool(self._calls), refused=bool(self._refusal), usage=used)
        message = self._message(stop, provider=provider, model=model)
        wrote = bool(message.text or message.thinking or self._calls)
        return told(Finished(message, plausible(used, wrote=wrote), stop, notes), self._stop, self._filters)

    def _message(self, stop: StopReason, *, provider: str, model: str) -> AssistantMessage:
        calls = numbered((call.wire_form for call in self._calls), stop=stop, told=self._stop is not None)
        return AssistantMessage(
            text=joined("".join(self._text) + "".join(self._refusal)),
            tool_calls=calls,
            thinking=joined("".join(self._thinking)),
            verbatim=self._verbatim(calls, provider, model) if calls else None,
        )

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
        return Verbatim(provider=provider, model=model, blocks=(joined_all(block),))


class _Call:
    """One tool call being put together."""

    __slots__ = ("_arguments", "_chars", "_index", "_name", "extra", "id")

    def __init__(self) -> None:
        self.id = ""
        self._index: Any = None
        self.extra: dict[str, Any] = {}
        self._name = ""
        self._arguments: list[str] = []
        self._chars = 0

    def take(self, piece: dict[str, Any]) -> None:
        function = piece.get("function") or piece
        self.id = str(piece.get("id") or self.id)
        self._index = piece.get("index", self._index)
        name = function.get("name")
        # The name comes in pieces from some endpoints, and from others with every piece again, as far as it is known.
        if name:
            self._name = name if name.startswith(self._name) else self._name + name
        if arguments := _written(function):
            self._arguments.append(arguments)
            self._chars += len(arguments)
        if not _OUR_CALL_FIELDS.issuperset(piece):
            self.extra.update({key: value for key, value in piece.items() if key not in _OUR_CALL_FIELDS})

    def is_told_again(self, piece: dict[str, Any]) -> bool:
        """Return whether a piece is this whole call once more, as some endpoints end with."""
        if not self.id or (self.id, self._index) != (str(piece.get("id") or ""), piece.get("index")):
            return False
        function = piece.get("function") or piece
        written = _written(function)
        if self._name != function.get("name") or len(written) != self._chars:
            return False
        return "".join(self._arguments) == written and self.is_whole

    @property
    def is_whole(self) -> bool:
        """Return whether its arguments are an object that has ended."""
        last = next((piece for piece in reversed(self._arguments) if not piece.isspace()), "")
        try:
            # Nearly no piece ends so, and only where one does all before it are read.
            return last.rstrip().endswith("}") and isinstance(orjson.loads("".join(self._arguments)), dict)
        except orjson.JSONDecodeError:
            return False

    @property
    def wire_form(self) -> Call:
        return joined(self.id), joined(self._name), "".join(self._arguments)


def _written(function: dict[str, Any]) -> str:
    """Return the arguments of a call as text, which they should be."""
    arguments = function.get("arguments") or ""
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _number(choice: dict[str, Any]) -> str:
    return str(choice.get("index") or 0)


def _within(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _words(value: Any) -> str:
    """Return the text of a value that is text, a part that has some, or a list of those; any other has none."""
    if isinstance(value, list):
        return "".join(map(_words, value))
    if isinstance(value, dict):
        return "" if value.get("type") == "thinking" else _words(value.get("text") or value.get("content"))
    return value if isinstance(value, str) else ""


def _thoughts(parts: Any) -> list[str]:
    """Return the thinking among the parts of a content: a text, or a list of texts."""
    found = parts if isinstance(parts, list) else [parts]
    return [_words(part.get("thinking")) for part in found if _within(part, "type") == "thinking"]


def wanted_call(call: ToolCall, wire_id: str) -> dict[str, Any]:
    """Write a tool call in this wire format."""
    return {
        "id": wire_id,
        "type": "function",
        "function": {"name": called_name(call.tool), "arguments": orjson.dumps(call.arguments).decode()},
    }
