"""A chat completion request as a job: what was said before, what is said now, and how it is to be answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError

from wayline.contracts.base import plain
from wayline.contracts.chat import FilePart, Part, TextPart
from wayline.contracts.jobs import EarlierMessage, JobOptions, SubmitJob
from wayline.gateway.errors import UnsupportedParameter
from wayline.gateway.openai.chat_body import ChatBody, ChatMessageBody, ContentPart, ResponseFormat
from wayline.gateway.openai.client_tools import GivenResult, tool_options
from wayline.gateway.openai.model_names import named_model
from wayline.gateway.openai.sent_files import NewFile, file_of, image_of

SESSION: Final = "session_id"
"""In `metadata`: the session that a request belongs to."""
BEGUN_BY_ASSISTANT: Final = "The conversation begins with the assistant's words."
RESULT: Final = "The application has run {name}({arguments}) for you. Its result:\n{result}"
OBJECT: Final[dict[str, Any]] = {"type": "object"}
THINKING: Final = frozenset({"thinking", "redacted_thinking", "reasoning"})
"""Parts with what a model thought, which are not told again."""
_INSTRUCTING: Final = frozenset({"system", "developer"})


@dataclass(frozen=True, slots=True)
class Translated:
    """A request as a job, and the documents that it needs first."""

    job: SubmitJob
    files: tuple[NewFile, ...] = ()


@dataclass(slots=True)
class Parts:
    """Reads the parts of messages, and collects the files that they bring along."""

    files: dict[str, NewFile] = field(default_factory=dict)

    def of(self, content: str | Sequence[ContentPart] | None, *, param: str) -> tuple[Part, ...]:
        """Return the parts of a message. Raises UnsupportedParameter."""
        if content is None or isinstance(content, str):
            return (TextPart(text=content),) if content else ()
        told = ((place, part) for place, part in enumerate(content) if part.type not in THINKING)
        found = (self._part(part, param=f"{param}.{place}") for place, part in told)
        return tuple(part for part in found if not isinstance(part, TextPart) or part.text)

    def _part(self, part: ContentPart, *, param: str) -> Part:
        if part.type in ("text", "input_text", "output_text", "refusal"):
            return TextPart(text=part.text or part.refusal or "")
        if part.type == "image_url" and part.image_url is not None:
            return self._kept(*image_of(part.image_url.url, param=f"{param}.image_url"))
        if part.type == "file" and part.file is not None:
            if part.file.file_id is not None:
                return FilePart(document_id=part.file.file_id)
            if part.file.file_data is not None:
                return self._kept(*file_of(part.file.file_data, name=part.file.filename, param=f"{param}.file"))
        raise UnsupportedParameter(f"{param}.type", f"a part {part.type!r} cannot be given to an agent")

    def _kept(self, part: Part, new: NewFile) -> Part:
        self.files[new.document_id] = new
        return part


def session_of(metadata: Mapping[str, str] | None, header: str | None) -> str | None:
    """Return the session that a request names; None: it brings its conversation along."""
    return header or (metadata or {}).get(SESSION) or None


def results_in(messages: Sequence[ChatMessageBody]) -> tuple[GivenResult, ...]:
    """Return the results of the client's tools that a conversation ends with; none: it ends with other words.

    Raises UnsupportedParameter.
    """
    said = [(place, one) for place, one in enumerate(messages) if one.role not in _INSTRUCTING]
    given: list[GivenResult] = []
    for place, message in reversed(said):
        if message.role != "tool":
            break
        given.append(_result(message, f"messages.{place}"))
    return tuple(reversed(given))


def _result(message: ChatMessageBody, param: str) -> GivenResult:
    content = message.content
    if not isinstance(content, str):
        wrong = next((place for place, part in enumerate(content or ()) if part.text is None), None)
        if wrong is not None:
            raise UnsupportedParameter(f"{param}.content.{wrong}", "the result of a tool is text")
        content = "\n".join(part.text or "" for part in content or ())
    return GivenResult(message.tool_call_id or "", content, param)


def chat_to_job(body: ChatBody, *, tenant: str, user_id: str | None, session_id: str | None) -> Translated:
    """Return the job that a request asks for. Raises UnsupportedParameter, and Reject for an unknown label."""
    named = named_model(body.model)
    last = next((at for at in range(len(body.messages) - 1, -1, -1) if body.messages[at].role == "user"), None)
    after = () if last is None else body.messages[last + 1 :]
    if last is None or any(message.role not in _INSTRUCTING for message in after):
        raise UnsupportedParameter("messages", "end them with a message of the user", code="invalid_messages")
    parts = Parts()
    said = parts.of(body.messages[last].content, param=f"messages.{last}.content")
    if not said:
        raise UnsupportedParameter("messages", "the user's last message is empty", code="invalid_messages")
    functions = [(tool.type, tool.function) for tool in body.tools or ()]
    client_tools = tool_options(functions, choice=body.tool_choice, parallel=body.parallel_tool_calls)
    before = () if session_id is not None else earlier((*body.messages[:last], *after), parts)
    options = JobOptions(
        agent_label=named.label,
        output_schema=schema_of(body.response_format),
        effort=body.reasoning_effort,
        temperature=body.temperature,
        max_output_tokens=body.max_completion_tokens or body.max_tokens,
        **client_tools,
    )
    job = make_job(
        agent=named.agent,
        said=said,
        history=before,
        session_id=session_id,
        user_id=user_id,
        options=options,
        tenant=tenant,
    )
    return Translated(job, tuple(parts.files.values()))


def make_job(*, agent: str, said: tuple[Part, ...], **fields: Any) -> SubmitJob:
    """Return a job of these parts. Raises UnsupportedParameter for what no job may have."""
    words = said[0].text if len(said) == 1 and isinstance(said[0], TextPart) else said
    try:
        return SubmitJob(agent=agent, input=words, **fields)
    except ValidationError as error:
        wrong = error.errors()[0]
        name = ".".join(map(str, wrong["loc"]))
        raise UnsupportedParameter(name, plain(wrong["msg"]), code="invalid_request") from None


def earlier(messages: Sequence[ChatMessageBody], parts: Parts) -> tuple[EarlierMessage, ...]:
    """Return what was said before. What the client's own tools returned is told as the application's words."""
    calls = {call.id: call.function for message in messages for call in message.tool_calls or ()}
    history: list[EarlierMessage] = []
    for place, message in enumerate(messages):
        said = parts.of(message.content, param=f"messages.{place}.content")
        if message.role == "tool":
            called = calls.get(message.tool_call_id or "")
            result = "\n".join(part.text for part in said if isinstance(part, TextPart))
            name, arguments = (called.name, called.arguments) if called else ("a tool", "")
            history.append(_words("system", RESULT.format(name=name, arguments=arguments, result=result)))
        elif said and message.role == "user":
            history.append(EarlierMessage(role="user", parts=said))
        elif said:
            role = "assistant" if message.role == "assistant" else "system"
            history.append(_words(role, "\n".join(part.text for part in said if isinstance(part, TextPart))))
    if history and history[0].role == "assistant":
        # No provider takes a conversation that begins with its model.
        history.insert(0, _words("system", BEGUN_BY_ASSISTANT))
    return tuple(history)


def _words(role: Any, text: str) -> EarlierMessage:
    return EarlierMessage(role=role, parts=(TextPart(text=text),))


def schema_of(wanted: ResponseFormat | None) -> dict[str, Any] | None:
    """Return the JSON Schema that an answer is to fit; None: it is text."""
    if wanted is None or wanted.type == "text":
        return None
    return (wanted.json_schema.schema_ if wanted.json_schema else None) or wanted.schema_ or OBJECT
