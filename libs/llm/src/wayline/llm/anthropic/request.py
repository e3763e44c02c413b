"""A request in the words of the Messages API: the same bytes for the same request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
)
from wayline.contracts.models import Effort
from wayline.contracts.tools import ToolDefinition
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
    label,
    orphan_result,
    turns,
)
from wayline.llm.model import ModelRequest

Json = dict[str, Any]
Images = Mapping[int, Sequence[ToolImage]]
"""What tools returned, by the place of the message."""
Found = Mapping[int, Sequence[ToolDefinition]]
"""The tools that results refer to, by the place of the message."""

EFFORTS: tuple[Effort, ...] = ("low", "medium", "high", "xhigh", "max")
THINKING = frozenset({"thinking", "redacted_thinking"})
THINKING_MIN_TOKENS = 1_024
ANSWER_MIN_TOKENS = 1_024
"""What is left for the answer when a thinking budget would take all of the output."""
MARK = {"type": "ephemeral"}


@dataclass(frozen=True, slots=True)
class Block:
    """One content block, and the message of the history that it says."""

    index: int
    content: Json


@dataclass(frozen=True, slots=True)
class Spoken:
    """One message of the history as the wire has it."""

    role: str
    blocks: list[Block]


def body(request: ModelRequest) -> Json:
    """Return the body alone."""
    return build_body(request)[0]


def build_body(request: ModelRequest) -> tuple[Json, tuple[str, ...]]:
    """Return the body, and a note for everything that is not sent as configured."""
    notes: list[str] = []
    form = _format(request, notes)
    if request.output_schema is not None and not form:
        request = structured.with_instruction(request)
    found = found_tools(request)
    spoken = _spoken(request, found)
    system, tools = _system(request), _tools(request)
    _mark(request, system, tools, spoken)
    # Behind the marker: no deferred tool may bear one, and none is part of the prefix.
    tools += _deferred(found)
    max_tokens = knobs.output_tokens(request, notes)
    thinking, output = _thinking(request, spoken, max_tokens, notes)
    temperature = knobs.temperature(request, notes, thinking=thinking is not None)
    optional = {
        "system": system,
        "tools": tools,
        "thinking": thinking,
        "output_config": output | form,
        "temperature": temperature,
    }
    body: Json = {
        "model": request.model,
        "max_tokens": max_tokens,
        **{key: value for key, value in optional.items() if value not in (None, [], {})},
        "messages": [{"role": each.role, "content": [b.content for b in each.blocks]} for each in spoken],
        "stream": True,
    }
    return body, tuple(notes)


def rebuilt(message: AssistantMessage, ids: Iterable[str]) -> list[Json]:
    """Rebuild an answer from our own fields."""
    blocks = [_text(message.text)] if message.text.strip() else []
    return blocks + [_call(call, wire_id) for call, wire_id in zip(message.tool_calls, ids, strict=True)]


def _call(call: ToolCall, wire_id: str) -> Json:
    return {"type": "tool_use", "id": wire_id, "name": called_name(call.tool), "input": call.arguments}


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _system(request: ModelRequest) -> list[Json]:
    return [_text(request.system)] if request.system.strip() else []


def _tools(request: ModelRequest) -> list[Json]:
    return [_tool(tool) for tool in sorted(request.tools, key=lambda tool: tool.name)]


def _tool(tool: ToolDefinition) -> Json:
    return {"name": tool.name, "description": tool.description, "input_schema": schemas.arguments(tool.input_schema)}


def _deferred(found: Found) -> list[Json]:
    """Return the tools that results refer to: a reference to any other is refused."""
    named = {tool.name: tool for tools in found.values() for tool in tools}
    return [{**_tool(tool), "defer_loading": True} for tool in named.values()]


def _spoken(request: ModelRequest, found: Found) -> list[Spoken]:
    spoken: list[Spoken] = []
    images = media.returned(request.card, request.messages, request.attachments)
    for turn in turns(request.messages, echoes=lambda verbatim: verbatim.provider == request.card.provider):
        if isinstance(turn, Answer):
            spoken.append(Spoken("assistant", _answer(turn, request)))
        else:
            spoken.extend(_input(turn, request, images, found))
    return spoken


def _answer(turn: Answer, request: ModelRequest) -> list[Block]:
    blocks = _echo(turn, request) or rebuilt(turn.message, turn.ids) or [_text(NO_ANSWER)]
    return [Block(turn.index, block) for block in blocks]


def _echo(turn: Answer, request: ModelRequest) -> list[Json]:
    blocks = echo(turn, is_call=lambda block: block.get("type") == "tool_use", id_field="id")
    # Thinking is signed for the model that thought it; the rest of its provider's blocks any of its models reads.
    same = turn.message.verbatim is not None and turn.message.verbatim.model == request.model
    return [block for block in blocks if same or block.get("type") not in THINKING]


def _input(turn: Input, request: ModelRequest, images: Images, found: Found) -> list[Spoken]:
    closing = turn.closing if request.card.system_messages else []
    others = turn.others[: len(turn.others) - len(closing)]
    user = [_result(each, images.get(each.index, ()), found.get(each.index, ())) for each in turn.results]
    user += [block for each in turn.results if each.index in found for block in _beside(each)]
    user += [block for other in others for block in _other(other, request)]
    spoken = [Spoken("user", user)] if user else []
    if closing:
        spoken.append(Spoken("system", [block for other in closing for block in _other(other, request)]))
    return spoken


def _result(result: Result, images: Sequence[ToolImage], found: Sequence[ToolDefinition]) -> Block:
    block: Json = {"type": "tool_result", "tool_use_id": result.id}
    if result.message is None:
        return Block(result.index, {**block, "content": NO_RESULT, "is_error": True})
    if found:
        references = [{"type": "tool_reference", "tool_name": tool.name} for tool in found]
        return Block(result.index, {**block, "content": references})
    failed = {"is_error": True} if result.message.failed else {}
    text = result.message.content
    content = [*([_text(text)] if text.strip() else []), *map(_tool_image, images)] if images else text
    return Block(result.index, {**block, "content": content, **failed})


def _beside(result: Result) -> list[Block]:
    """Return what a result with references says beside them; in the result itself only references may stand."""
    beside = result.message.loaded.beside if result.message and result.message.loaded else ""
    return [Block(result.index, _text(beside))] if beside else []


def _tool_image(image: ToolImage) -> Json:
    return {"type": "image", "source": _source(image.media_type, image.content_base64)}


def _source(media_type: str, content_base64: str) -> Json:
    return {"type": "base64", "media_type": media_type, "data": content_base64}


def _other(other: Other, request: ModelRequest) -> list[Block]:
    index, message = other
    if isinstance(message, NoteMessage):
        return [Block(index, _text(label(message)))]
    if isinstance(message, ToolMessage):
        return [Block(index, _text(orphan_result(message)))]
    parts = [_part(part, request) for part in inputs.announced(message.parts, request)]
    beside = asides(message)
    content = [part for part in parts if part.get("text", " ").strip() or part["type"] != "text"]
    content += [_text(beside)] if beside else []
    return [Block(index, part) for part in content or [_text("(nothing)")]]


def _part(part: TextPart | ImagePart | FilePart, request: ModelRequest) -> Json:
    if isinstance(part, TextPart):
        return _text(part.text)
    kind, file = inputs.opened(part, request)
    if kind == "text":
        return _text(inputs.text(file))
    source = _source(file.media_type, file.content)
    if kind == "image":
        return {"type": "image", "source": source}
    return {"type": "document", "source": {**source, "media_type": PDF}, "title": file.name}


def _mark(request: ModelRequest, system: list[Json], tools: list[Json], spoken: list[Spoken]) -> None:
    """Put a marker where the prefix is worth keeping; later places win when there are more than may be marked."""
    rules = request.card.cache
    if rules.kind != "breakpoints" or rules.breakpoints_max < 1:
        return
    still = system or tools
    if still:
        still[-1]["cache_control"] = MARK
    left = rules.breakpoints_max - bool(still)
    places = [(each, at) for each in spoken for at, block in enumerate(each.blocks) if _markable(block.content)]
    chosen: list[int] = []
    for wanted in sorted(set(request.breakpoints)):
        before = [n for n, (each, at) in enumerate(places) if each.blocks[at].index <= wanted]
        exact = [n for n in before if places[n][0].blocks[places[n][1]].index == wanted]
        chosen += (exact or before)[-1:]
    for n in sorted(set(chosen))[-left:] if left > 0 else []:
        each, at = places[n]
        block = each.blocks[at]
        # A copy: what was echoed belongs to the log.
        each.blocks[at] = Block(block.index, {**block.content, "cache_control": MARK})


def _markable(content: Json) -> bool:
    return content.get("type") not in THINKING and not (content.get("type") == "text" and not content.get("text"))


def _thinking(request: ModelRequest, spoken: list[Spoken], limit: int, notes: list[str]) -> tuple[Json | None, Json]:
    """Return how to ask for thinking, and what goes into `output_config` for it."""
    kind = request.card.reasoning
    if kind == "budget":
        return _budget(request, spoken, limit, notes), {}
    effort = knobs.effort(request, notes, known=EFFORTS)
    if effort == "none":
        return {"type": "disabled"}, {}
    output = {"effort": effort} if effort else {}
    # Summaries cost nothing more, and without asking some models show none of their thinking.
    return ({"type": "adaptive", "display": "summarized"} if kind == "adaptive" else None), output


def _budget(request: ModelRequest, spoken: list[Spoken], limit: int, notes: list[str]) -> Json | None:
    wanted = request.thinking_tokens
    if wanted is None:
        if request.effort not in (None, "none"):
            notes.append("effort dropped: the model's thinking takes a number of tokens")
        return None
    found = min(wanted, limit - ANSWER_MIN_TOKENS)
    if found < THINKING_MIN_TOKENS:
        notes.append(f"thinking dropped: {limit} tokens of output leave no room for it")
        return None
    if _continues_without_thinking(spoken):
        notes.append("thinking dropped: the tool call it would go on from was made without")
        return None
    if found < wanted:
        notes.append(f"thinking clipped to {found} tokens: output has room for no more")
    return {"type": "enabled", "budget_tokens": found}


def _continues_without_thinking(spoken: list[Spoken]) -> bool:
    answers = [each for each in spoken if each.role == "assistant"]
    asked_for = any(block.content["type"] == "tool_result" for each in spoken[-2:] for block in each.blocks)
    return asked_for and bool(answers) and answers[-1].blocks[0].content.get("type") not in THINKING


def _format(request: ModelRequest, notes: list[str]) -> Json:
    if request.output_schema is None:
        return {}
    if not request.card.structured_output:
        notes.append("output schema asked for in words: the model takes none")
        return {}
    schema = schemas.closed(request.output_schema)
    if schema is None:
        notes.append("output schema asked for in words: the provider cannot enforce an open one")
        return {}
    return {"format": {"type": "json_schema", "schema": schema}}
