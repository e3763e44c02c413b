"""The body of a chat completion request, as far as agents heed it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StringConstraints, Tag, model_validator

from wayline.contracts.jobs.submission import HISTORY_MESSAGES_MAX
from wayline.contracts.models import Effort
from wayline.gateway.openai.client_tools import FunctionSpec

ONE_LINE = r"^[^\x00-\x1f\x7f]*$"
PARTS_MAX = 1_000
Label = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=ONE_LINE)]
ModelName = Annotated[str, StringConstraints(min_length=1, max_length=129, pattern=ONE_LINE)]
"""An agent, or `agent:label`."""


class ImageUrl(BaseModel):
    """An image by its address: `https://…`, or a `data:` URL."""

    url: str = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _by_itself(cls, value: Any) -> Any:
        # As a Responses request has it, and many clients of either.
        return {"url": value} if isinstance(value, str) else value


class SentFile(BaseModel):
    """A file: one that was uploaded as a document, or its bytes."""

    file_id: Label | None = Field(default=None, description="The id of a document.")
    filename: str | None = Field(default=None, max_length=500)
    file_data: str | None = Field(default=None, description="Base64, or a `data:` URL.")


class ContentPart(BaseModel):
    """A part of a message."""

    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: ImageUrl | None = None
    file: SentFile | None = None


def form_of(content: Any) -> str:
    """Return which form of a message's content is meant, so that what is wrong with it is told of that form alone."""
    return "parts" if isinstance(content, list) else "text"


class FunctionCall(BaseModel):
    """What a call of a tool said."""

    name: str = ""
    arguments: str = ""


class SaidToolCall(BaseModel):
    """A call of a tool of the client's, as an assistant message has it."""

    id: str
    function: FunctionCall = FunctionCall()


class ChatMessageBody(BaseModel):
    """A message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: (
        Annotated[
            Annotated[str, Tag("text")] | Annotated[list[ContentPart], Field(max_length=PARTS_MAX), Tag("parts")],
            Discriminator(form_of),
        ]
        | None
    ) = None
    tool_calls: list[SaidToolCall] | None = None
    tool_call_id: str | None = None


class JsonSchemaFormat(BaseModel):
    """A JSON Schema that the answer fits."""

    name: str = ""
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")


class ResponseFormat(BaseModel):
    """The form of the answer."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchemaFormat | None = None
    schema_: dict[str, Any] | None = Field(
        default=None, alias="schema", description="The same beside `type`, as other servers take it."
    )


class ToolBody(BaseModel):
    """A tool that the client runs."""

    type: str
    function: FunctionSpec | None = None


class StreamOptions(BaseModel):
    """What a stream says beside the answer."""

    include_usage: bool | None = None


class ChatBody(BaseModel):
    """A conversation for an agent to answer."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [{"model": "assistant", "messages": [{"role": "user", "content": "What is a job?"}]}]
        },
    )

    model: ModelName = Field(description="The agent that answers; `agent:label`: the version that has the label.")
    messages: Annotated[list[ChatMessageBody], Field(min_length=1, max_length=HISTORY_MESSAGES_MAX)] = Field(
        description="The whole conversation; of a session only the last user message counts."
    )
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    response_format: ResponseFormat | None = None
    reasoning_effort: Effort | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_completion_tokens: int | None = Field(default=None, ge=1, description="Of one model call of the job.")
    max_tokens: int | None = Field(default=None, ge=1, description="The same, by its older name.")
    tools: list[ToolBody] | None = Field(
        default=None, description="Functions that you run: their calls end the answer, and your next request goes on."
    )
    tool_choice: Any = Field(default=None, description="`auto` or `none`: a model cannot be forced here.")
    parallel_tool_calls: bool | None = Field(default=None, description="false: one call at a time.")
    metadata: dict[str, str] | None = Field(default=None, description="`session_id`: the session that it belongs to.")
    user: Label | None = Field(default=None, description="For whom the job is: its `user_id`.")
    store: bool | None = Field(default=None, description="A job's log is kept, whatever this says.")
