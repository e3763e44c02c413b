"""A Responses request as a job: one turn of a session, or a conversation that it brings along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wayline.contracts.chat import Part, TextPart
from wayline.contracts.jobs import EarlierMessage, JobOptions
from wayline.gateway.errors import UnsupportedParameter
from wayline.gateway.openai.chat_body import (
    ChatMessageBody,
    ContentPart,
    FunctionCall,
    ImageUrl,
    SaidToolCall,
    SentFile,
)
from wayline.gateway.openai.chat_to_job import OBJECT, Parts, Translated, earlier, make_job
from wayline.gateway.openai.client_tools import GivenResult, tool_options
from wayline.gateway.openai.model_names import named_model
from wayline.gateway.openai.responses_body import InputItem, InputPart, ResponsesBody

CALL: Final = "function_call"
OUTPUT: Final = "function_call_output"
REASONING: Final = "reasoning"
TAKEN: Final = frozenset({"message", CALL, OUTPUT, REASONING})
"""Types of items that an input may have; thinking is not told again."""
APPLICATION: Final = "The application says: {}"


def responses_to_job(
    body: ResponsesBody,
    *,
    tenant: str,
    user_id: str | None,
    session_id: str | None,
    before: tuple[EarlierMessage, ...] = (),
) -> Translated:
    """Return the job that a request asks for; `before`: what was said up to it.

    Raises UnsupportedParameter, and Reject for an unknown label.
    In a session what stands before the last user message is no past: only the application's words are told with it.
    """
    named = named_model(body.model)
    items = [InputItem(content=body.input)] if isinstance(body.input, str) else body.input
    wrong = next((place for place, item in enumerate(items) if item.type not in TAKEN), None)
    if wrong is not None:
        raise UnsupportedParameter(f"input.{wrong}.type", f"an item {items[wrong].type!r} cannot be given to an agent")
    items = [item for item in items if item.type != REASONING]
    if not items or items[-1].type != "message" or items[-1].role != "user":
        raise UnsupportedParameter("input", "end it with a message of the user", code="invalid_input")
    parts, messages = Parts(), [_message(item) for item in items]
    said = parts.of(messages[-1].content, param="input")
    if not said:
        raise UnsupportedParameter("input", "the user's last message is empty", code="invalid_input")
    told = messages[:-1]
    if body.instructions:
        told = [ChatMessageBody(role="system", content=body.instructions), *told]
    history = () if session_id is not None else (*before, *earlier(told, parts))
    if session_id is not None:
        said = (*_told(told, parts), *said)
    options = JobOptions(
        agent_label=named.label,
        output_schema=_schema(body),
        effort=body.reasoning.effort if body.reasoning else None,
        temperature=body.temperature,
        max_output_tokens=body.max_output_tokens,
        **tool_options(
            [(tool.type, tool) for tool in body.tools or ()],
            choice=body.tool_choice,
            parallel=body.parallel_tool_calls,
        ),
    )
    whose = {"tenant": tenant, "user_id": user_id, "session_id": session_id}
    job = make_job(agent=named.agent, said=said, history=history, options=options, **whose)
    return Translated(job, tuple(parts.files.values()))


def outputs_in(body: ResponsesBody) -> tuple[GivenResult, ...]:
    """Return what tools of the client's returned, where the input ends with that. Raises UnsupportedParameter."""
    given: list[GivenResult] = []
    for place, item in reversed(list(enumerate(body.input if not isinstance(body.input, str) else ()))):
        if item.type != OUTPUT:
            break
        output = item.output
        if not isinstance(output, str):
            if any(part.text is None for part in output or ()):
                raise UnsupportedParameter(f"input.{place}.output", "the result of a tool is text")
            output = "\n".join(part.text or "" for part in output or ())
        given.append(GivenResult(item.call_id or "", output, f"input.{place}"))
    return tuple(reversed(given))


def begins_session(body: ResponsesBody) -> bool:
    """Return whether a request that names no session brings no conversation along: it begins one of its own."""
    if isinstance(body.input, str):
        return True
    return not any(item.type != "message" or item.role in ("user", "assistant") for item in body.input[:-1])


def _told(before: Sequence[ChatMessageBody], parts: Parts) -> tuple[Part, ...]:
    """Return what the application says, as text before the user's words."""
    applications = (message for message in before if message.role in ("system", "developer"))
    said = (part for message in applications for part in parts.of(message.content, param="input"))
    return tuple(TextPart(text=APPLICATION.format(part.text)) for part in said if isinstance(part, TextPart))


def _message(item: InputItem) -> ChatMessageBody:
    if item.type == CALL:
        function = FunctionCall(name=item.name or "", arguments=item.arguments or "")
        return ChatMessageBody(role="assistant", tool_calls=[SaidToolCall(id=item.call_id or "", function=function)])
    if item.type == OUTPUT:
        output = item.output if isinstance(item.output, str) else [_part(part) for part in item.output or ()]
        return ChatMessageBody(role="tool", tool_call_id=item.call_id, content=output)
    content = item.content if isinstance(item.content, str) else [_part(part) for part in item.content or ()]
    return ChatMessageBody(role=item.role, content=content)


def _part(part: InputPart) -> ContentPart:
    if part.type == "input_image" and part.image_url is not None:
        return ContentPart(type="image_url", image_url=ImageUrl(url=part.image_url))
    if part.type in ("input_file", "input_image"):
        file = SentFile(file_id=part.file_id, filename=part.filename, file_data=part.file_data)
        return ContentPart(type="file", file=file)
    return ContentPart(type=part.type, text=part.text, refusal=part.refusal)


def _schema(body: ResponsesBody) -> dict[str, object] | None:
    form = body.text.format if body.text else None
    if form is None or form.type == "text":
        return None
    return (form.schema_ if form.type == "json_schema" else None) or OBJECT
