"""An answer of the Responses API put together from its events; lenient about what is in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from wayline.contracts.chat import AssistantMessage, Verbatim
from wayline.contracts.money import Usage
from wayline.contracts.tools import TOOL_SEARCH
from wayline.llm import usage
from wayline.llm.calls import Call, numbered
from wayline.llm.characters import joined_all
from wayline.llm.model import Finished, StopReason
from wayline.llm.openai.request import is_call, is_search, rebuilt
from wayline.llm.refusals import told
from wayline.llm.stops import stop_reason
from wayline.llm.transport import provider_errors

Json = dict[str, Any]

ENDS = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})
ITEM_ADDED = "response.output_item.added"
ITEM = frozenset({ITEM_ADDED, "response.output_item.done"})
SPOKEN = frozenset({"response.output_text.delta", "response.refusal.delta"})
UNFINISHED = frozenset({"queued", "in_progress"})
UNSAID = frozenset({"id", "status"})
"""What an item says that goes without saying, once its answer is whole and nothing hangs on it."""


class Reply:
    """A streamed response being put together; what it does not know is passed over."""

    def __init__(self, *, provider: str, model: str) -> None:
        self._provider, self._model = provider, model
        self._items: list[_Item] = []
        self._last: Json = {}
        self.seen: Usage | None = None
        self.over = False

    def take(self, event: Json) -> str:
        kind = event.get("type")
        if kind in SPOKEN:
            text = event.get("delta") or ""
            self._item_of(event).text.append(text)
            return text
        if kind == "response.function_call_arguments.delta":
            self._item_of(event).arguments.append(event.get("delta") or "")
        elif kind == "response.function_call_arguments.done":
            found = self._item_of(event)
            found.arguments = [event["arguments"]] if event.get("arguments") else found.arguments
        elif kind in ITEM:
            item = event.get("item") or {}
            found = self._item_of(event, item, begins=kind == ITEM_ADDED)
            found.item.update(item)
            found.done = found.done if kind == ITEM_ADDED else item
        elif kind in ENDS:
            # What an event leaves out, its name says.
            told = {name: value for name, value in (event.get("response") or {}).items() if value is not None}
            self._last = {"status": str(kind).removeprefix("response."), **told}
            self.over = True
        elif kind == "error":
            raise provider_errors.from_stream(event.get("error") or event)
        return ""

    @property
    def whole(self) -> bool:
        return self.over

    def finished(self) -> Finished:
        if not self.over:
            raise provider_errors.stream_cut()
        self._take_output([item for item in self._last.get("output") or () if isinstance(item, dict)])
        # A half of a character may have had its other half in the next piece.
        whole = [joined_all(each.whole()) for each in sorted(self._items, key=lambda each: each.at)]
        finished = _finished(self._last, whole, provider=self._provider, model=self._model)
        details = self._last.get("incomplete_details") or {}
        return told(finished, details.get("reason"), details)

    def _item_of(self, event: Json, item: Json | None = None, *, begins: bool = False) -> _Item:
        """Return the item that an event is of: some servers number all of them 0, or none."""
        named, at = (item or {}).get("id") or event.get("item_id"), event.get("output_index")
        for each in reversed(self._items):
            known = each.item.get("id")
            if named and known:
                if named == known:
                    return each
            elif each.done is None and (at == each.at or (at is None and not begins)):
                return each
        return self._begin(at if isinstance(at, int) else len(self._items))

    def _begin(self, at: int) -> _Item:
        self._items.append(_Item(at))
        return self._items[-1]

    def _take_output(self, output: list[Json]) -> None:
        """Add what the last event tells of items. An item's own event has the final form of its sealed reasoning."""
        left, missing = list(self._items), list[tuple[int, Json]]()
        for at, item in enumerate(output):
            known = next((each for each in left if _is_named_so(each.item, item)), None)
            if known is None:
                missing.append((at, item))
            else:
                known.told = item
                left.remove(known)
        for at, item in missing:
            # Some servers name an item anew in the end.
            known = next((each for each in left if each.kind == item.get("type")), None)
            if known is None:
                known = self._begin(at)
            else:
                left.remove(known)
            known.told = item


def _is_named_so(one: Json, other: Json) -> bool:
    return any(one.get(name) and one.get(name) == other.get(name) for name in ("id", "call_id"))


class _Item:
    """An item as it was told: in pieces, whole in its own event, and once more in the last one."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.item: Json = {}
        self.text: list[str] = []
        self.arguments: list[str] = []
        self.done: Json | None = None
        self.told: Json | None = None

    @property
    def kind(self) -> str | None:
        return self.item.get("type") or ("message" if self.text else "function_call" if self.arguments else None)

    def whole(self) -> Json:
        if told := self.done or self.told:
            return told
        if self.text:
            part = {"type": "output_text", "text": "".join(self.text)}
            return {"type": "message", "role": "assistant", **self.item, "content": [part]}
        if self.arguments:
            return {"type": "function_call", **self.item, "arguments": "".join(self.arguments)}
        return self.item


def events(body: Json) -> list[Json]:
    """Turn a response that came in one piece into the events of a stream: its text, then its end."""
    output = body.get("output")
    if output is None and body.get("status") is None:
        error = provider_errors.within(body)
        return [{"type": "error", "error": error}] if error else []
    items = [item for item in output or () if isinstance(item, dict)]
    deltas = [
        {"type": "response.output_text.delta", "output_index": n, "delta": _text(each)} for n, each in enumerate(items)
    ]
    return [
        *(each for each in deltas if each["delta"]),
        {"type": f"response.{body.get('status') or 'completed'}", "response": body},
    ]


def _finished(response: Mapping[str, Any], items: list[Json], *, provider: str, model: str) -> Finished:
    used = usage.from_responses(response["usage"]) if response.get("usage") else None
    if response.get("error") or response.get("status") in ("failed", "cancelled"):
        raise provider_errors.from_stream(
            response.get("error") or {"message": f"the response is {response.get('status')}"}, usage=used
        )
    if response.get("status") in UNFINISHED:
        raise provider_errors.stream_cut()
    asked = list(filter(is_call, items))
    stop = _stop_reason(response, items, calls=bool(asked), used=used)
    calls = numbered(map(_called, asked), stop=stop)
    searches = any(map(is_search, asked))
    message = AssistantMessage(text="".join(map(_text, items)), tool_calls=calls, thinking=_thinking(items))
    finished = Finished(message, usage.plausible(used, wrote=bool(message.text or message.thinking or asked)), stop)
    if stop == "refused" and asked:
        # Its calls do not run, so they must not go back without results either.
        return finished
    kept = [item for item in items if not _only_named(item)]
    plain = _plain(kept, calls=calls)
    if plain != rebuilt(message, (call.provider_id or "" for call in calls), searches=searches):
        # Without its reasoning an item must not be named either.
        blocks = tuple(kept if len(kept) == len(items) else plain)
        verbatim = Verbatim(provider=provider, model=model, blocks=blocks)
        return replace(finished, message=message.model_copy(update={"verbatim": verbatim}))
    return finished


def _called(item: Json) -> Call:
    """Return the id, the tool and the arguments of a call as they came."""
    given = item.get("arguments") or ""
    if item.get("status") == "incomplete" or (item.get("status") in UNFINISHED and not given):
        # It never ended.
        given = None
    return item.get("call_id"), TOOL_SEARCH if is_search(item) else item.get("name"), given


def _only_named(item: Json) -> bool:
    """Return whether an item is reasoning that cannot be sent back: the provider stores nothing to look it up."""
    return item.get("type") == "reasoning" and not item.get("encrypted_content") and not _parts(item)


def _parts(item: Json) -> list[Json]:
    content = item.get("content")
    if isinstance(content, str) and item.get("type") == "message":
        return [{"type": "output_text", "text": content}]
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _text(item: Json) -> str:
    if item.get("type") != "message":
        return ""
    return "".join(part.get("text") or part.get("refusal") or "" for part in _parts(item))


def _thinking(items: list[Json]) -> str:
    reasoning = [item for item in items if item.get("type") == "reasoning"]
    return "\n\n".join(
        part["text"] for item in reasoning for part in (item.get("summary") or _parts(item)) if part.get("text")
    )


def _plain(items: list[Json], *, calls: Any) -> list[Json]:
    """Return the items in the form that our own fields give them, where they have one."""
    numbered_calls = iter(calls)
    plain: list[Json] = []
    for item in items:
        kept = {key: value for key, value in item.items() if key not in UNSAID and value is not None}
        if kept.get("type") == "message" and not any(part.get("annotations") for part in _parts(item)):
            kept["content"] = _text(item)
        elif kept.get("type") == "function_call":
            [whole] = rebuilt(AssistantMessage(tool_calls=(call := next(numbered_calls),)), [call.provider_id or ""])
            kept["arguments"] = whole["arguments"]
        elif is_search(item):
            [kept] = rebuilt(
                AssistantMessage(tool_calls=(call := next(numbered_calls),)), [call.provider_id or ""], searches=True
            )
        if kept.get("content") != "":
            plain.append(kept)
    return plain


def _stop_reason(response: Mapping[str, Any], items: list[Json], *, calls: bool, used: Usage | None) -> StopReason:
    status = response.get("status")
    why = (response.get("incomplete_details") or {}).get("reason")
    said = why or ("stop" if status == "completed" else status)
    refused = any(part.get("type") == "refusal" for item in items for part in _parts(item))
    return stop_reason(said, calls=calls, refused=refused and said == "stop", usage=used)
