"""A request in the words of the Responses API: the same bytes for the same request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import orjson

from wayline.contracts.chat import (
    PDF,
    AssistantMessage,
    FilePart,
    ImagePart,
    NoteMessage,
    TextPart,
    ToolCall,
    ToolImage,
    ToolMessage,
    Verbatim,
)
from wayline.contracts.tools import TOOL_SEARCH, ToolDefinition
from wayline.llm import inputs, knobs, media, schemas, structured
from wayline.llm.deferred import found_tools
from wayline.llm.history_turns import (
    NO_ANSWER,
    NO_RESULT,
    Answer,
    Input,
    Other,
    Result,
    asides,
    called_name,
    echo,
    is_ours,
    label,
    orphan_result,
    turns,
)
from wayline.llm.knobs import BY_STRENGTH
from wayline.llm.model import ModelRequest

Json = dict[str, Any]
Images = Mapping[int, Sequence[ToolImage]]
"""What tools returned, by the place of the message."""
Found = Mapping[int, Sequence[ToolDefinition]]
"""The tools that results refer to, by the place of the message."""

MARK = {"mode": "explicit"}
SCHEMA_NAME = "answer"
SEALED = "reasoning.encrypted_content"
"""What was thought, to be sent back: nothing is kept on their side."""
SUMMARY = "reasoning.summary"
STREAM = "stream"
"""Both as OpenAI names them where it refuses them: to accounts whose organisation is not verified."""
CACHE_KEY_MAX_CHARS = 64
SEARCH_CALL, SEARCH_OUTPUT = "tool_search_call", "tool_search_output"
"""Of a search that we make ourselves: what it finds is read at the end of the prompt, and never changes its head."""


@dataclass(frozen=True, slots=True)
class Item:
    """One input item, and the message of the history that it says."""

    index: int
    content: Json


def body(request: ModelRequest) -> Json:
    """Return the body alone."""
    return build_body(request)[0]


@dataclass(frozen=True, slots=True)
class Account:
    """What an account may ask for: OpenAI keeps some things for verified organisations."""

    summaries: bool = True
    """Of what was thought."""
    streams: bool = True
    """Of the models that it keeps back."""


VERIFIED = Account()


def build_body(request: ModelRequest, *, account: Account = VERIFIED) -> tuple[Json, tuple[str, ...]]:
    """Return the body, and a note for everything that is not sent as configured."""
    notes: list[str] = []
    form = _format(request, notes)
    if request.output_schema is not None and form is None:
        request = structured.with_instruction(request)
    marks = request.card.cache.kind == "breakpoints"
    items = _items(request, marks=marks)
    if marks:
        _mark(request, items)
    optional = {
        # A string cannot carry a marker; a model reads both alike.
        "instructions": None if marks else request.system.strip() and request.system,
        "tools": _tools(request),
        "prompt_cache_key": _cache_key(request),
        "reasoning": _reasoning(request, notes, summaries=account.summaries),
        "text": form,
        "temperature": knobs.temperature(request, notes),
    }
    body: Json = {
        "model": request.model,
        "max_output_tokens": knobs.output_tokens(request, notes),
        **{key: value for key, value in optional.items() if value not in (None, "", [], {})},
        "input": [item.content for item in items],
        "store": False,
        # A model that does not reason refuses the word.
        **({} if request.card.reasoning == "none" else {"include": [SEALED]}),
        "stream": account.streams,
    }
    return body, tuple(notes)


def rebuilt(message: AssistantMessage, ids: Iterable[str], *, searches: bool = False) -> list[Json]:
    """Rebuild an answer from our own fields; `searches`: a search for tools is an item of its own kind."""
    items = [_spoken("assistant", message.text)] if message.text.strip() else []
    calls = zip(message.tool_calls, ids, strict=True)
    return items + [
        _search(call, wire_id) if searches and call.tool == TOOL_SEARCH else _call(call, wire_id)
        for call, wire_id in calls
    ]


def is_call(item: Json) -> bool:
    """Return whether an item asks us for something; the provider's own searches are its own affair."""
    return item.get("type") == "function_call" or is_search(item)


def is_search(item: Json) -> bool:
    """Return whether an item asks us for tools."""
    return item.get("type") == SEARCH_CALL and item.get("execution") != "server"


def _spoken(role: str, content: str | list[Json]) -> Json:
    return {"type": "message", "role": role, "content": content}


def _call(call: ToolCall, wire_id: str) -> Json:
    arguments = orjson.dumps(call.arguments).decode()
    return {"type": "function_call", "call_id": wire_id, "name": called_name(call.tool), "arguments": arguments}


def _search(call: ToolCall, wire_id: str) -> Json:
    return {"type": SEARCH_CALL, "call_id": wire_id, "execution": "client", "arguments": call.arguments}


def _cache_key(request: ModelRequest) -> str:
    key = request.cache_key
    return key if len(key) <= CACHE_KEY_MAX_CHARS else sha256(key.encode()).hexdigest()


def _text(text: str) -> Json:
    return {"type": "input_text", "text": text}


def _tools(request: ModelRequest) -> list[Json]:
    searches = _searches(request)
    return [
        _search_tool(tool) if searches and tool.name == TOOL_SEARCH else _function(tool)
        for tool in sorted(request.tools, key=lambda tool: tool.name)
    ]


def _searches(request: ModelRequest) -> bool:
    """Return whether the model is told what a search has found as tools, and not as text."""
    return request.card.tool_references and any(tool.name == TOOL_SEARCH for tool in request.tools)


def _search_tool(tool: ToolDefinition) -> Json:
    described = {"description": tool.description, "parameters": schemas.arguments(tool.input_schema)}
    return {"type": TOOL_SEARCH, "execution": "client", **described}


def _function(tool: ToolDefinition) -> Json:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": schemas.arguments(tool.input_schema),
        # Left unsaid it would be true, and refuse every schema with an optional property.
        "strict": False,
    }


def _items(request: ModelRequest, *, marks: bool) -> list[Item]:
    def echoes(verbatim: Verbatim) -> bool:
        # Sealed reasoning is for the model that made it, and its other items hang on it.
        return (verbatim.provider, verbatim.model) == (request.card.provider, request.model)

    items = [Item(-1, _spoken("developer", [_text(request.system)]))] if marks and request.system.strip() else []
    images = media.returned(request.card, request.messages, request.attachments)
    found, searches = found_tools(request), frozenset[str]()
    for turn in turns(request.messages, echoes=echoes):
        if isinstance(turn, Answer):
            answered = _answer(turn, searches=_searches(request))
            # What was echoed says by itself which of its calls were searches.
            searches = frozenset(item["call_id"] for item in answered if item.get("type") == SEARCH_CALL)
            items += [Item(turn.index, item) for item in answered]
        else:
            items += _input(turn, request, images, found, searches, marks=marks)
    return items


def _answer(turn: Answer, *, searches: bool) -> list[Json]:
    echoed = echo(turn, is_call=is_call, id_field="call_id")
    if not searches and any(block.get("type") == SEARCH_CALL for block in echoed):
        # Without the tool, as in a later job of its session, its calls are those of a function.
        echoed = []
    return echoed or rebuilt(turn.message, turn.ids, searches=searches) or [_spoken("assistant", NO_ANSWER)]


def _input(
    turn: Input, request: ModelRequest, images: Images, found: Found, searches: frozenset[str], *, marks: bool
) -> list[Item]:
    results: list[Item] = []
    beside: list[Item] = []
    for each in turn.results:
        if each.id in searches:
            results.append(Item(each.index, _search_output(each, found.get(each.index, ()))))
            if text := _beside(each, told=each.index in found):
                # It names tools and servers, as others named them.
                beside.append(Item(each.index, _spoken("user", [_text(text)])))
        else:
            results.append(_result(each, images.get(each.index, ()), marks=marks))
    return results + beside + [_other(other, request) for other in turn.others]


def _search_output(result: Result, found: Sequence[ToolDefinition]) -> Json:
    tools = [{**_function(tool), "defer_loading": True} for tool in found]
    return {
        "type": SEARCH_OUTPUT,
        "call_id": result.id,
        "execution": "client",
        "status": "completed",
        "tools": tools,
    }


def _beside(result: Result, *, told: bool) -> str:
    """Return what is said of a search beside the tools that it has found: there is no place for it in its output."""
    if result.message is None:
        return NO_RESULT
    return result.message.loaded.beside if told and result.message.loaded else result.message.content


def _result(result: Result, images: Sequence[ToolImage], *, marks: bool) -> Item:
    content = result.message.content if result.message else NO_RESULT
    # The form does not depend on whether this one is marked, so that markers never change a prefix.
    shown = [_image(image.media_type, image.content_base64) for image in images]
    output = [_text(content), *shown] if marks or shown else content
    return Item(result.index, {"type": "function_call_output", "call_id": result.id, "output": output})


def _other(other: Other, request: ModelRequest) -> Item:
    index, message = other
    if isinstance(message, NoteMessage):
        role = "developer" if request.card.system_messages and is_ours(message) else "user"
        return Item(index, _spoken(role, [_text(label(message))]))
    if isinstance(message, ToolMessage):
        return Item(index, _spoken("user", [_text(orphan_result(message))]))
    beside = asides(message)
    said = [_part(part, request) for part in inputs.announced(message.parts, request)]
    parts = said + ([_text(beside)] if beside else [])
    return Item(index, _spoken("user", parts))


def _part(part: TextPart | ImagePart | FilePart, request: ModelRequest) -> Json:
    if isinstance(part, TextPart):
        return _text(part.text)
    kind, file = inputs.opened(part, request)
    if kind == "text":
        return _text(inputs.text(file))
    if kind == "image":
        return _image(file.media_type, file.content)
    return {"type": "input_file", "filename": file.name, "file_data": inputs.data_url(PDF, file.content)}


def _image(media_type: str, content_base64: str) -> Json:
    url = inputs.data_url(media_type, content_base64)
    # `auto` has no limit that is told: a photo was measured to cost five times as much.
    return {"type": "input_image", "image_url": url, "detail": "high"}


def _mark(request: ModelRequest, items: list[Item]) -> None:
    """Put a marker where the prefix is worth keeping; later places win when there are more than may be marked."""
    most = request.card.cache.breakpoints_max
    places = [n for n, item in enumerate(items) if _parts(item.content)]
    chosen = [n for n in places if items[n].index < 0]
    left = max(0, most - len(chosen))
    wanted: list[int] = []
    for message in sorted(set(request.breakpoints)):
        before = [n for n in places if items[n].index <= message]
        exact = [n for n in before if items[n].index == message]
        wanted += (exact or before)[-1:]
    later = sorted(set(wanted) - set(chosen))
    for n in [*chosen[:most], *(later[-left:] if left else [])]:
        parts = _parts(items[n].content)
        parts[-1] = {**parts[-1], "prompt_cache_breakpoint": MARK}


def _parts(content: Json) -> list[Json]:
    """Return the parts of an item that can carry a marker: never the model's own text."""
    if content.get("role") == "assistant":
        return []
    parts = content.get("output") if content.get("type") == "function_call_output" else content.get("content")
    return parts if isinstance(parts, list) and content.get("type") != "reasoning" else []


def _reasoning(request: ModelRequest, notes: list[str], *, summaries: bool) -> Json | None:
    effort = knobs.effort(request, notes, known=BY_STRENGTH)
    if request.card.reasoning == "none":
        return None
    if not summaries:
        notes.append("summary of thinking dropped: OpenAI shows it to verified organisations alone")
    return {**({"effort": effort} if effort else {}), **({"summary": "auto"} if summaries else {})}


def _format(request: ModelRequest, notes: list[str]) -> Json | None:
    if request.output_schema is None:
        return None
    if not request.card.structured_output:
        notes.append("output schema asked for in words: the model takes none")
        return None
    strict = schemas.strict(request.output_schema)
    if strict is None:
        notes.append("output schema sent as a wish: the provider enforces only closed ones without optional properties")
    sent = request.output_schema if strict is None else strict
    return {"format": {"type": "json_schema", "name": SCHEMA_NAME, "schema": sent, "strict": strict is not None}}
