"""An answer of the Messages API put together from its events; lenient about what is in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from wayline.contracts.chat import AssistantMessage, ToolCall, Verbatim
from wayline.contracts.money import Usage
from wayline.llm import usage
from wayline.llm.anthropic.request import THINKING, rebuilt
from wayline.llm.broken_json import tool_arguments
from wayline.llm.calls import Call, numbered
from wayline.llm.characters import joined_all
from wayline.llm.model import Finished
from wayline.llm.refusals import told
from wayline.llm.stops import last_word, stop_reason
from wayline.llm.transport import provider_errors

Json = dict[str, Any]

UNSAID: Mapping[str, Any] = {"caller": {"type": "direct"}, "citations": None}
"""What a block may say that goes without saying."""


class Reply:
    """A streamed message being put together; what it does not know is passed over."""

    def __init__(self, *, provider: str, model: str) -> None:
        self._provider, self._model = provider, model
        self._blocks: list[Json] = []
        """In the order in which they began."""
        self._places: dict[Any, int] = {}
        """By the index that a block came under: some servers number all of them 0, or none."""
        self._inputs: dict[int, list[str]] = {}
        self._begun: Json = {}
        self._texts: dict[int, list[str]] = {}
        self._counted: Json | None = None
        self._stop: str | None = None
        self._details: object = None
        self.seen: Usage | None = None
        self.over = False

    def take(self, event: Json) -> str:
        kind = event.get("type")
        if kind == "content_block_delta":
            return self._grow(event.get("index"), event.get("delta") or {})
        if kind == "content_block_start":
            return self._start(event.get("index"), dict(event.get("content_block") or {}))
        if kind == "message_start":
            self._begun = (event.get("message") or {}).get("usage") or {}
            self.seen = usage.from_anthropic(self._begun) if self._begun else None
        elif kind == "message_delta":
            delta = event.get("delta") or {}
            self._stop = last_word(self._stop, delta.get("stop_reason"))
            self._details = delta.get("stop_details") or self._details
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
        if not self._blocks and self._stop is None:
            raise provider_errors.empty_answer()
        for at, texts in self._texts.items():
            self._blocks[at]["text"] = (self._blocks[at].get("text") or "") + "".join(texts)
        inputs = {at: self._input(at) for at in range(len(self._blocks))}
        # A half of a character may have had its other half in the next piece.
        blocks = list(map(joined_all, self._blocks))
        finished = _finished(blocks, inputs, self._stop, self._usage(), provider=self._provider, model=self._model)
        return told(finished, self._stop, self._details)

    def _usage(self) -> Usage | None:
        """Return what was counted: the last count is of the whole message, but may leave out what has not changed."""
        if not self._counted or self._counted.get("output_tokens") is None:
            return None
        told = {key: value for key, value in self._counted.items() if value}
        return usage.from_anthropic({**self._begun, **told, "output_tokens": self._counted["output_tokens"]})

    def _input(self, at: int) -> str | Json:
        return "".join(self._inputs.get(at, ())) or self._blocks[at].get("input") or {}

    def _start(self, index: Any, block: Json) -> str:
        known = self._places.get(index)
        has_grown = known in self._inputs or known in self._texts
        if known is not None and self._blocks[known] == block and not has_grown:
            # Told twice.
            return ""
        self._places[index] = len(self._blocks)
        self._blocks.append(block)
        return (block.get("text") or "") if block.get("type") == "text" else ""

    def _grow(self, index: Any, delta: Json) -> str:
        if index not in self._places:
            self._start(index, {"type": "text", "text": ""})
        at = self._places[index]
        block = self._blocks[at]
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


def events(body: Json) -> list[Json]:
    """Turn a message that came in one piece into the events of a stream."""
    if error := provider_errors.within(body):
        return [{"type": "error", "error": error}]
    content = body.get("content")
    if content is None:
        return []
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    blocks = [block for block in blocks if isinstance(block, dict)]
    told: list[Json] = []
    for at, block in enumerate(blocks):
        told.append({"type": "content_block_start", "index": at, "content_block": block})
        told.append({"type": "content_block_stop", "index": at})
    return [
        {"type": "message_start", "message": {"usage": body.get("usage")}},
        *told,
        {
            "type": "message_delta",
            "delta": {name: body.get(name) for name in ("stop_reason", "stop_details")},
            "usage": body.get("usage"),
        },
        {"type": "message_stop"},
    ]


def _finished(
    blocks: list[Json],
    inputs: Mapping[int, str | Json],
    stopped: str | None,
    counted: Usage | None,
    *,
    provider: str,
    model: str,
) -> Finished:
    asked: list[Call] = [
        (b.get("id"), b.get("name"), inputs[n]) for n, b in enumerate(blocks) if b.get("type") == "tool_use"
    ]
    stop = stop_reason(stopped, calls=bool(asked), usage=counted)
    calls = numbered(asked, stop=stop, told=stopped is not None)
    message = AssistantMessage(
        text="".join(block.get("text") or "" for block in blocks if block.get("type") == "text"),
        tool_calls=calls,
        thinking="\n\n".join(block["thinking"] for block in blocks if block.get("thinking")),
    )
    finished = Finished(message, usage.plausible(counted, wrote=bool(message.text or message.thinking or asked)), stop)
    if stop == "refused" and asked:
        # Its calls do not run, so they must not go back without results either.
        return finished
    given = iter(calls)
    kept = [_kept(block, inputs[n], given) for n, block in enumerate(blocks)]
    sent = tuple(block for block in kept if block.get("type") != "text" or _worth_sending(block, kept))
    if [_without_unsaid(block) for block in sent] != rebuilt(message, (call.provider_id or "" for call in calls)):
        verbatim = Verbatim(provider=provider, model=model, blocks=sent)
        return replace(finished, message=message.model_copy(update={"verbatim": verbatim}))
    return finished


def _worth_sending(text: Json, blocks: list[Json]) -> bool:
    """Return whether a text block goes back: blank text is refused, but a signature beside it may cover it."""
    bound = any(block.get("type") in THINKING for block in blocks)
    return bool(text.get("text")) if bound else bool(str(text.get("text") or "").strip())


def _kept(block: Json, given: str | Json, calls: Iterator[ToolCall]) -> Json:
    """Return a block as it goes back: with its input whole."""
    if block.get("type") == "tool_use":
        return {**block, "input": next(calls).arguments}
    return {**block, "input": tool_arguments.read(given)} if "input" in block else block


def _without_unsaid(block: Json) -> Json:
    return {key: value for key, value in block.items() if key not in UNSAID or value not in (UNSAID[key], [])}
