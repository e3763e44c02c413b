"""Images and files that a request brings along: what document each becomes, by its bytes or by its address."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from wayline.contracts.chat import FilePart, ImagePart, Part
from wayline.gateway.errors import UnsupportedParameter

DIGITS: Final = 24
"""Of a hash in the id of a document."""
_DATA_URL: Final = re.compile(r"data:([\w.+-]+/[\w.+-]+)?((?:;[\w-]+=[\w.-]+)*)(;base64)?,", re.ASCII)


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that has to be a document before its job is submitted."""

    document_id: str
    name: str
    media_type: str
    content_base64: str | None = None
    url: str | None = None
    """Where it is fetched from, by the service that guards such fetches."""
    sha256: str | None = None


def image_of(url: str, *, param: str) -> tuple[Part, NewFile]:
    """Return an image's part and document. Raises UnsupportedParameter."""
    if url.startswith("data:"):
        new = _from_data(url, name="image", param=param)
        return ImagePart(document_id=new.document_id, sha256=new.sha256), new
    if not url.startswith(("https://", "http://")):
        raise UnsupportedParameter(
            param, "an image is at an http(s) address or in a data: URL", code="invalid_image_url"
        )
    document_id = f"sent-{sha256(url.encode()).hexdigest()[:DIGITS]}"
    return ImagePart(document_id=document_id), NewFile(document_id, "image", "application/octet-stream", url=url)


def file_of(data: str, *, name: str | None, param: str) -> tuple[Part, NewFile]:
    """Return a file's part and document. Raises UnsupportedParameter."""
    encoded = data if data.startswith("data:") else f"data:application/pdf;base64,{data}"
    new = _from_data(encoded, name=name or "file", param=param)
    return FilePart(document_id=new.document_id, sha256=new.sha256), new


def _from_data(url: str, *, name: str, param: str) -> NewFile:
    head = _DATA_URL.match(url)
    if head is None or head.group(3) is None:
        raise UnsupportedParameter(
            param, "a data: URL here is `data:<media type>;base64,<bytes>`", code="invalid_data_url"
        )
    encoded = url[head.end() :]
    try:
        content = b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise UnsupportedParameter(param, "its bytes are no base64", code="invalid_data_url") from None
    digest = sha256(content).hexdigest()
    media_type = head.group(1) or "application/octet-stream"
    return NewFile(f"sent-{digest[:DIGITS]}", name, media_type, content_base64=encoded, sha256=digest)
