"""Say a request of ours in Chat Completions, byte for byte the same for the same request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from wayline.contracts.chat import AssistantMessage, FilePart, ImagePart, TextPart, ToolImage, UserMessage, Verbatim
from wayline.llm import inputs, knobs, media, schemas, structured
from wayline.llm.history_turns import NO_RESULT, Answer, Other, Result, is_ours, label, orphan_result, turns
from wayline.llm.model import ModelRequest
from wayline.llm.openai_chat.reply import wanted_call

Json = dict[str, Any]

LimitName = Literal["max_tokens", "max_completion_tokens"]


UNSIGNED: Json = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""What Google documents for a call without a signature: another model made it, or it is kept in our own words."""


def limit_name(request: ModelRequest) -> LimitName:
    """Return the name of the output limit for this kind of model: where thinking counts too, it has a new name."""
    return "max_completion_tokens" if request.card.reasoning == "effort" else "max_tokens"


def build_body(request: ModelRequest, *, limit: LimitName | None = None) -> tuple[Json, tuple[str, ...]]:
    """Return the request's body, and notes on what was not sent as asked for. Raises ModelError."""
    card, notes = request.card, list[str]()
    if request.output_schema is not None and not card.structured_output:
        request = structured.with_instruction(request)
    body: Json = {
        "model": card.model,
        "messages": _messages(request),
        limit or limit_name(request): knobs.output_tokens(request, notes),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": t.name,
                    "description": t.description,
                    "parameters": schemas.arguments(t.input_schema),
                },
            }
            for t in request.tools
        ]
    if (temperature := knobs.temperature(request, notes)) is not None:
        body["temperature"] = temperature
    if (effort := knobs.effort(request, notes, known=())) is not None:
        body["reasoning_effort"] = effort
    if request.thinking_tokens is not None:
        notes.append("thinking budget dropped: Chat Completions has none")
    if request.output_schema is not None and card.structured_output:
        body["response_format"] = _response_format(request.output_schema)
    if request.cache_key and card.cache.prompt_cache_key:
        body["prompt_cache_key"] = request.cache_key
    return body, tuple(notes)


def _response_format(schema: Json) -> Json:
    strict = schemas.strict(schema)
    wanted = {"name": "answer", "schema": schema if strict is None else strict, "strict": strict is not None}
    return {"type": "json_schema", "json_schema": wanted}


def _messages(request: ModelRequest) -> list[Json]:
    messages: list[Json] = [{"role": "system", "content": request.system}]
    images = media.returned(request.card, request.messages, request.attachments)
    # Nothing goes back with its ids as they came: two answers of an endpoint may have numbered their calls alike.
    # In any characters, for some models' own templates read them.
    for turn in turns(request.messages, echoes=lambda _: False, fit=str):
        if isinstance(turn, Answer):
            messages.append(_answer(turn, request))
            continue
        messages.extend(map(_result, turn.results))
        # A tool's message holds text alone, and nothing may stand between the results.
        messages.extend(_shown(result, images[result.index]) for result in turn.results if result.index in images)
        for other in turn.others:
            messages.append(_other(other, request))
    return messages


def _answer(turn: Answer, request: ModelRequest) -> Json:
    message = turn.message
    kept = message.verbatim
    if kept is not None and (kept.provider, kept.model) == (request.card.provider, request.card.model):
        answer = _renumbered(kept, turn.ids)
    else:
        answer = _rebuilt(message, turn.ids)
    return _signed(answer) if request.card.signed_calls else answer


def _rebuilt(message: AssistantMessage, ids: tuple[str, ...]) -> Json:
    """Rebuild what our own fields can say of an answer."""
    answer: Json = {"role": "assistant", "content": message.text or None}
    if message.tool_calls:
        named = zip(message.tool_calls, ids, strict=True)
        answer["tool_calls"] = [wanted_call(call, wire_id) for call, wire_id in named]
    elif not message.text:
        # Neither text nor calls is refused by most endpoints.
        answer["content"] = ""
    return answer


def _signed(answer: Json) -> Json:
    """Give the first call of an answer the word for calls of other models, where it has no signature of its own."""
    calls = answer.get("tool_calls")
    if not calls or "extra_content" in calls[0]:
        return answer
    return {**answer, "tool_calls": [{**calls[0], "extra_content": UNSIGNED}, *calls[1:]]}


def _renumbered(kept: Verbatim, ids: tuple[str, ...]) -> Json:
    """Return the model's answer as it came, with its calls under the ids that their results name."""
    answer = kept.blocks[0]
    calls = answer.get("tool_calls")
    if not calls:
        return answer
    return {**answer, "tool_calls": [{**call, "id": wire_id} for call, wire_id in zip(calls, ids, strict=True)]}


def _result(result: Result) -> Json:
    content = result.message.content if result.message else NO_RESULT
    return {"role": "tool", "tool_call_id": result.id, "content": content}


def _shown(result: Result, images: Sequence[ToolImage]) -> Json:
    """Return the images of a tool's result as the user's."""
    assert result.message is not None
    heading = {"type": "text", "text": f"[IMAGES OF {result.message.tool}, call {result.id}]"}
    return {"role": "user", "content": [heading, *(_image(image.media_type, image.content_base64) for image in images)]}


def _other(other: Other, request: ModelRequest) -> Json:
    _, message = other
    if message.role == "note":
        ours = request.card.system_messages and is_ours(message)
        return {"role": "system" if ours else "user", "content": label(message)}
    if message.role == "tool":
        return {"role": "user", "content": orphan_result(message)}
    return {"role": "user", "content": _content(message, request)}


def _content(message: UserMessage, request: ModelRequest) -> str | list[Json]:
    """Return one string where there is only text: every endpoint accepts that."""
    texts = [part.text for part in message.parts if part.type == "text"]
    if len(texts) == len(message.parts):
        return "\n\n".join([*texts, *message.asides])
    parts = [_part(part, request) for part in inputs.announced(message.parts, request)]
    return [*parts, *({"type": "text", "text": text} for text in message.asides)]


def _part(part: TextPart | ImagePart | FilePart, request: ModelRequest) -> Json:
    if part.type == "text":
        return {"type": "text", "text": part.text}
    kind, file = inputs.opened(part, request)
    if kind == "text":
        return {"type": "text", "text": inputs.text(file)}
    if kind == "image":
        return _image(file.media_type, file.content)
    return {
        "type": "file",
        "file": {"filename": file.name, "file_data": inputs.data_url(file.media_type, file.content)},
    }


def _image(media_type: str, content_base64: str) -> Json:
    return {"type": "image_url", "image_url": {"url": inputs.data_url(media_type, content_base64)}}
