"""Messages between a job and a model, in our own types; adapters translate."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from wayline.contracts.base import Frozen


class TextPart(Frozen):
    """Words."""

    type: Literal["text"] = "text"
    text: str


IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""The formats of images that models are sent; others they refuse."""
PDF = "application/pdf"

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class ImagePart(Frozen):
    """An image, by the document it was uploaded as."""

    type: Literal["image"] = "image"
    document_id: str = Field(description="An image that was uploaded as a document.")
    sha256: Sha256 | None = Field(
        default=None, description="The bytes that are meant; None: those that the document has when the job is routed."
    )


class FilePart(Frozen):
    """A file, by the document it was uploaded as."""

    type: Literal["file"] = "file"
    document_id: str
    sha256: Sha256 | None = Field(
        default=None, description="The bytes that are meant; None: those that the document has when the job is routed."
    )


class Attachment(Frozen):
    """An uploaded document as a job is given it: which bytes, and what they are; never the bytes themselves."""

    document_id: str
    name: str
    media_type: str = Field(description="What its bytes are, whatever their sender said.")
    sha256: Sha256
    original_sha256: Sha256 | None = Field(
        default=None, description="Of the file that it is the text of, such as a DOCX; null: it is the file itself."
    )
    size_bytes: int = Field(ge=0)
    width: int | None = Field(default=None, ge=1, description="Of an image, in pixels.")
    height: int | None = Field(default=None, ge=1)
    pages: int | None = Field(default=None, ge=0, description="Of a PDF.")
    text_bytes: int = Field(default=0, ge=0, description="The text that can be read in it.")
    text_tokens: int | None = Field(
        default=None, ge=0, description="Estimated, of that text; null: an earlier build read it, and its bytes tell."
    )
    untrusted: bool = Field(default=False, description="It holds the words of strangers: a job given it is tainted.")


Part = Annotated[TextPart | ImagePart | FilePart, Field(discriminator="type")]

# Not `strftime`: its names of days are the process's locale, and a prompt is the same bytes everywhere.
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


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
    """The text of the user or program that submitted the job."""

    role: Literal["user"] = "user"
    parts: tuple[Part, ...]
    style: str | None = Field(default=None, description="How the job asked to be answered.")
    sent_at: datetime | None = None

    @property
    def asides(self) -> tuple[str, ...]:
        """Return what a model is told after the user's own words, a paragraph each."""
        when = (_when(self.sent_at),) if self.sent_at else ()
        return (*when, f"Answer in this style: {self.style}") if self.style else when


def _when(at: datetime) -> str:
    sent = at.astimezone(UTC)
    stamp = sent.isoformat()
    return f"Sent on {stamp[:10]}, a {_DAYS[sent.weekday()]}, at {stamp[11:16]} UTC."


class NoteMessage(Frozen):
    """Something the platform tells the model between the others' messages; appended once and kept for good."""

    role: Literal["note"] = "note"
    label: Literal[
        "CONTEXT", "TOOL GUIDANCE", "AVAILABLE TOOLS", "CONTEXT UPDATE", "CORRECTION", "MEMORY", "MEMORY UPDATE"
    ]
    text: str
    quoted: bool = Field(
        default=False,
        description="It repeats words that are not the platform's own, so that it never travels with the operator's "
        "role. Notes of earlier builds do not say so, and are sent as they were.",
    )


class AssistantMessage(Frozen):
    """What a model answered: words, wishes to use tools, or both."""

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


class ToolImage(Frozen):
    """An image that a tool returned, with its bytes."""

    media_type: str = Field(description="What its bytes are, whatever the tool said.")
    sha256: Sha256
    size_bytes: int = Field(ge=0)
    width: int = Field(ge=1, description="In pixels.")
    height: int = Field(ge=1)
    content_base64: str = Field(repr=False)

    @property
    def note(self) -> str:
        """Return what stands for it in the text of its result."""
        return f"[image {self.media_type}, {self.width}x{self.height}]"


NO_TEXT = {"images": {"__all__": {"content_base64"}}}
"""What of a message is no text: to be excluded where its size or its tokens are read."""


class LoadedTools(Frozen):
    """The tools whose definitions a result of `tool_search` holds."""

    names: tuple[str, ...] = Field(description="A provider with deferred tools is sent references to them instead.")
    beside: str = Field(default="", description="What the result says beside the definitions.")


class ToolMessage(Frozen):
    """What came of a tool call, as the model is shown it."""

    role: Literal["tool"] = "tool"
    call: str
    tool: str
    content: str
    images: tuple[ToolImage, ...] = Field(
        default=(), description="Shown with `content`, which says in words where each stands."
    )
    citations: tuple[Citation, ...] = ()
    failed: bool = False
    provider_id: str | None = None
    loaded: LoadedTools | None = None


class Citation(Frozen):
    """A passage that an answer rests on."""

    document: str = Field(description="The document's name.")
    quote: str
    document_id: str = ""
    chunk_id: str = ""
    covered: float | None = Field(
        default=None, description="The share of what was searched for, weighed by rarity, that the passage holds."
    )


ChatMessage = UserMessage | AssistantMessage | ToolMessage | NoteMessage
AssistantMessage.model_rebuild()
ToolMessage.model_rebuild()
