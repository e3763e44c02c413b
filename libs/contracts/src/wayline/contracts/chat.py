"""What is said between a job and a model, in our own words; adapters translate."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from wayline.contracts.base import Frozen


class TextPart(Frozen):
    type: Literal["text"] = "text"
    text: str


class ImagePart(Frozen):
    type: Literal["image"] = "image"
    document_id: str = Field(description="An image that was uploaded as a document.")


class FilePart(Frozen):
    type: Literal["file"] = "file"
    document_id: str


Part = Annotated[TextPart | ImagePart | FilePart, Field(discriminator="type")]


class ToolCall(Frozen):
    """A model's wish to use a tool."""

    call: str = Field(description="Its place in the step: `1`, `2` …; part of the ledger key.")
    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    provider_id: str | None = Field(default=None, description="The id the provider gave the call, echoed back to it.")
    reason: str | None = Field(default=None, description="Why the model wants it, where it was asked to say so.")


class Verbatim(Frozen):
    """A message exactly as its provider sent it, because our own fields cannot say all of it (thinking, signatures).

    It goes back to the same provider unchanged; another provider is sent our own fields instead.
    """

    provider: str
    model: str
    blocks: tuple[dict[str, Any], ...]


class UserMessage(Frozen):
    role: Literal["user"] = "user"
    parts: tuple[Part, ...]
    style: str | None = Field(default=None, description="How the job asked to be answered.")


class NoteMessage(Frozen):
    """Something the platform tells the model between the others' messages; appended once and kept for good."""

    role: Literal["note"] = "note"
    label: Literal["CONTEXT", "TOOL GUIDANCE", "AVAILABLE TOOLS", "CONTEXT UPDATE", "CORRECTION"]
    text: str


class AssistantMessage(Frozen):
    role: Literal["assistant"] = "assistant"
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    citations: tuple[Citation, ...] = ()
    thinking: str = Field(default="", description="What the model let us read of its thinking.")
    confidence: float | None = Field(default=None, ge=0, le=1, description="How sure the model says it is.")
    read_as: Literal["native", "json", "repaired", "tags", "text"] = Field(
        default="native", description="How its words were understood; `text`: it should have been more than that."
    )
    verbatim: Verbatim | None = None


class ToolMessage(Frozen):
    role: Literal["tool"] = "tool"
    call: str
    tool: str
    content: str
    citations: tuple[Citation, ...] = ()
    failed: bool = False
    provider_id: str | None = None


class Citation(Frozen):
    """A passage that an answer rests on."""

    document: str = Field(description="The document's name.")
    quote: str
    document_id: str = ""
    chunk_id: str = ""


ChatMessage = UserMessage | AssistantMessage | ToolMessage | NoteMessage
AssistantMessage.model_rebuild()
ToolMessage.model_rebuild()
