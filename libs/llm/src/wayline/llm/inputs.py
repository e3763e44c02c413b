"""The files that a message names, checked against what its model takes."""

from __future__ import annotations

from base64 import b64encode
from typing import Literal

from wayline.contracts.chat import FilePart, ImagePart
from wayline.llm.model import File, ModelError, ModelRequest

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
TEXTS = frozenset({"application/json", "application/xml", "application/yaml", "application/x-yaml"})
PDF = "application/pdf"

Kind = Literal["image", "pdf", "text"]


def opened(part: ImagePart | FilePart, request: ModelRequest) -> tuple[Kind, File]:
    """The file and how to send it. Text goes as text, which every model takes."""
    file = request.files.get(part.document_id)
    if file is None:
        raise _unsupported(f"the file {part.document_id} is not there")
    media = file.media_type.split(";")[0].strip().lower()
    if media in IMAGES:
        if not request.card.images:
            raise _unsupported(f"{request.card.name} takes no images: {file.name}")
        return "image", file
    if media == PDF:
        if not request.card.files:
            raise _unsupported(f"{request.card.name} takes no documents: {file.name}")
        return "pdf", file
    if media.startswith("text/") or media in TEXTS:
        return "text", file
    raise _unsupported(f"{file.name} is {media}; models are sent images, PDF and text")


def base64(file: File) -> str:
    return b64encode(file.data).decode()


def text(file: File) -> str:
    return f"[FILE {file.name}]\n{file.data.decode(errors='replace')}"


def _unsupported(message: str) -> ModelError:
    return ModelError("unsupported_input", message, retryable=False)
