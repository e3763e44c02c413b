"""The body of a Responses request, as far as agents heed it."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from wayline.contracts.jobs.submission import HISTORY_MESSAGES_MAX
from wayline.contracts.models import Effort
from wayline.gateway.openai.chat_body import PARTS_MAX, Label, ModelName
from wayline.gateway.openai.client_tools import FunctionSpec

RESPONSE_ID: Final = r"^resp_[A-Za-z0-9_-]{1,64}(\.[1-9][0-9]{0,3})?$"
"""A job's; of one whose client runs tools its parts are numbered from the second on."""
ResponseId = Annotated[str, StringConstraints(pattern=RESPONSE_ID)]


class InputPart(BaseModel):
    """A part of a message."""

    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: str | None = None
    file_id: Label | None = None
    filename: str | None = Field(default=None, max_length=500)
    file_data: str | None = None


class InputItem(BaseModel):
    """A message of the input, a call of one of the client's tools, or what one returned."""

    type: str = "message"
    id: str | None = None
    role: Literal["system", "developer", "user", "assistant"] = "user"
    content: str | Annotated[list[InputPart], Field(max_length=PARTS_MAX)] | None = ""
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    output: str | Annotated[list[InputPart], Field(max_length=PARTS_MAX)] | None = None


class TextFormat(BaseModel):
    """The form of the answer."""

    type: Literal["text", "json_object", "json_schema"] = "text"
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")


class TextConfig(BaseModel):
    """How the answer's text is to be."""

    format: TextFormat = TextFormat()


class ReasoningConfig(BaseModel):
    """How hard to think."""

    effort: Effort | None = None


class ConversationId(BaseModel):
    """A session by its id."""

    id: Label


class ResponseTool(FunctionSpec):
    """A tool that the client runs."""

    type: str
    name: str = ""


class ResponsesBody(BaseModel):
    """Something for an agent to answer."""

    model_config = ConfigDict(
        extra="allow", json_schema_extra={"examples": [{"model": "assistant", "input": "What is a job?"}]}
    )

    model: ModelName = Field(description="The agent that answers; `agent:label`: the version that has the label.")
    input: str | Annotated[list[InputItem], Field(min_length=1, max_length=HISTORY_MESSAGES_MAX)]
    instructions: str | None = Field(default=None, description="Told as the application's words.")
    previous_response_id: ResponseId | None = Field(default=None, description="Its session goes on.")
    conversation: Label | ConversationId | None = Field(default=None, description="The session that it belongs to.")
    stream: bool | None = None
    background: bool | None = Field(default=None, description="Answer at once, and go on: GET tells how far it is.")
    store: bool | None = Field(default=None, description="A job's log is kept: false is refused.")
    text: TextConfig | None = None
    reasoning: ReasoningConfig | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_output_tokens: int | None = Field(default=None, ge=1, description="Of one model call of the job.")
    tools: list[ResponseTool] | None = Field(
        default=None, description="Functions that you run: their calls end the response, and your next one goes on."
    )
    tool_choice: Any = Field(default=None, description="`auto` or `none`: a model cannot be forced here.")
    parallel_tool_calls: bool | None = Field(default=None, description="false: one call at a time.")
    metadata: dict[str, str] | None = None
    user: Label | None = Field(default=None, description="For whom the job is: its `user_id`.")
