"""An answer of the Messages API put together from its events; lenient about what is in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wayline.contracts.chat import AssistantMessage, Verbatim
from wayline.contracts.money import Usage
from wayline.llm import usage
from wayline.llm.anthropic.request import THINKING, rebuilt
from wayline.llm.calls import numbered
from wayline.llm.model import Finished, StopReason
from wayline.llm.transport import provider_errors

Json = dict[str, Any]

STOPS: dict[str, StopReason] = {
    "end_turn": "end",
    "tool_use": "tools",
    "max_tokens": "max_tokens",
    "stop_sequence": "stop_sequence",
    "refusal": "refused",
    "pause_turn": "paused",
    "model_context_window_exceeded": "context_full",
}
CUT: frozenset[StopReason] = frozenset({"max_tokens", "context_full"})
UNSAID: Mapping[str, Any] = {"caller": {"type": "direct"}, "citations": None}
"""What a block may say that goes without saying."""


class Reply:
    """A streamed message being put together; what it does not know is passed over."""

    def __init__(self, *, provider: str, model: str) -> None:
        self._provider, self._model = provider, model
        self._blocks: dict[int, Json] = {}
        self._inputs: dict[int, list[str]] = {}
        self._begun: Json = {}
        self._texts: dict[int, list[str]] = {}
        self._counted: Json | None = None
        self._stop: str | None = None
        self.seen: Usage | None = None
        self.over = False

    def take(self, event: Json) -> str:
        kind = event.get("type")
        if kind == "content_block_delta":
            return self._grow(event.get("index", 0), event.get("delta") or {})
        if kind == "content_block_start":
            return self._start(event.get("index", 0), dict(event.get("content_block") or {}))
        if kind == "message_start":
            self._begun = (event.get("message") or {}).get("usage") or {}
            self.seen = usage.from_anthropic(self._begun) if self._begun else None
        elif kind == "message_delta":
            self._stop = (event.get("delta") or {}).get("stop_reason") or self._stop
            self._counted = event.get("usage") or self._counted
        elif kind == "message_stop":
            self.over = True
        elif kind == "error" and not self.whole:
            raise provider_errors.from_stream(event.get("error") or {})
        return ""

    @property
    def whole(self) -> bool:
        """Return whether the stop reason and the usage are known: nothing of the message comes after them."""
        return self.over or (self._stop is not None and self._counted is not None)

    def finished(self) -> Finished:
        if not self.whole:
            raise provider_errors.stream_cut()
        # The last count is of the whole message, but leaves out what has not changed since the first.
        counted = self._counted and {**self._begun, **{k: v for k, v in self._counted.items() if v is not None}}
        for at, texts in self._texts.items():
            self._blocks[at]["text"] = (self._blocks[at].get("text") or "") + "".join(texts)
        places = sorted(self._blocks)
        inputs = {n: self._input(at) for n, at in enumerate(places)}
        blocks = [self._blocks[at] for at in places]
        return _finished(blocks, inputs, self._stop, counted, provider=self._provider, model=self._model)

    def _input(self, at: int) -> str | Json:
        return "".join(self._inputs.get(at, ())) or self._blocks[at].get("input") or {}

    def _start(self, at: int, block: Json) -> str:
        self._blocks[at] = block
        return (block.get("text") or "") if block.get("type") == "text" else ""

    def _grow(self, at: int, delta: Json) -> str:
        block = self._blocks.setdefault(at, {"type": "text", "text": ""})
        kind = delta.get("type")
        if kind == "text_delta":
            text = delta.get("text") or ""
            self._texts.setdefault(at, []).append(text)
            return text
        if kind == "input_json_delta":
            self._inputs.setdefault(at, []).append(delta.get("partial_json") or "")
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]
        else:
            for key, value in delta.items():
                if key != "type":
                    grows = isinstance(value, str) and isinstance(block.get(key), str)
                    block[key] = block[key] + value if grows else value
        return ""


def _finished(
    blocks: list[Json],
    inputs: Mapping[int, str | Json],
    stop: str | None,
    counted: Mapping[str, Any] | None,
    *,
    provider: str,
    model: str,
) -> Finished:
    asked = [(b.get("id"), b.get("name"), inputs[n]) for n, b in enumerate(blocks) if b.get("type") == "tool_use"]
    calls = numbered(asked, cut=STOPS.get(stop or "") in CUT)
    message = AssistantMessage(
        text="".join(block.get("text") or "" for block in blocks if block.get("type") == "text"),
        tool_calls=calls,
        thinking="\n\n".join(block["thinking"] for block in blocks if block.get("thinking")),
    )
    arguments = iter(calls)
    kept = [_kept(block, inputs[n], arguments) for n, block in enumerate(blocks)]
    sent = tuple(block for block in kept if block.get("type") != "text" or _worth_sending(block, kept))
    if [_without_unsaid(block) for block in sent] != rebuilt(message, (call.provider_id or "" for call in calls)):
        message = message.model_copy(update={"verbatim": Verbatim(provider=provider, model=model, blocks=sent)})
    return Finished(message, _usage(counted), _reason(stop, calls=bool(calls)))


def _worth_sending(text: Json, blocks: list[Json]) -> bool:
    """Return whether a text block goes back: blank text is refused, but a signature beside it may cover it."""
    bound = any(block.get("type") in THINKING for block in blocks)
    return bool(text.get("text")) if bound else bool(str(text.get("text") or "").strip())


def _kept(block: Json, given: str | Json, calls: Any) -> Json:
    """Return a block as it goes back: with its input whole."""
    if block.get("type") == "tool_use":
        return {**block, "input": next(calls).arguments}
    if "input" not in block:
        return block
    [call] = numbered([("", "", given)])
    return {**block, "input": call.arguments}


def _without_unsaid(block: Json) -> Json:
    return {key: value for key, value in block.items() if key not in UNSAID or value not in (UNSAID[key], [])}


def _usage(counted: Mapping[str, Any] | None) -> Usage | None:
    if not counted or counted.get("output_tokens") is None:
        return None
    return usage.from_anthropic(counted)


def _reason(stop: str | None, *, calls: bool) -> StopReason:
    return STOPS.get(stop or "", "tools" if calls else "end")
