"""Turn what was sent into text, and keep what it was: its format, how bytes become characters."""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import re
from dataclasses import dataclass, field
from typing import Any

from wayline.contracts.chat import IMAGES, PDF
from wayline.contracts.images import seen
from wayline.contracts.knowledge import IndexDocument
from wayline.documents import (
    BYTE_ORDER_MARKS,
    Unreadable,
    characters,
    html_text,
    is_binary,
    pdf_pages,
    without_nuls,
)
from wayline.llm.tokens import estimate_bytes

NO_TEXT = (
    "The PDF has no text in it, only pictures of pages: run it through text recognition (OCR) first, if it is to be "
    "found. It is kept as it is, and a job can be given it."
)

_SURROGATE = re.compile("[\ud800-\udfff]")
_BY_SUFFIX = {
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".html": "text/html",
    ".htm": "text/html",
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".pdf": PDF,
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
_TABLE_SUFFIXES = {".csv": "text/csv", ".tsv": "text/tab-separated-values"}
_TABLES = frozenset(_TABLE_SUFFIXES.values())
_NUMBER = re.compile(r"[-+]?[\d.,]+ ?%?")
HEADER_CHARS_MAX = 500
"""Of a longer first line every passage would hold too much."""
_MARKDOWN = frozenset({"text/markdown", "text/x-markdown"})
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_PLAIN = frozenset(
    {"application/json", "application/x-ndjson", "application/yaml", "application/xml", "application/toml"}
)
_UNSAID = frozenset({"", "application/octet-stream", "binary/octet-stream"})


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a document may be and how long reading it may take."""

    bytes_max: int
    pdf_pages_max: int
    read_seconds_max: float
    metadata_bytes_max: int


@dataclass(frozen=True, slots=True)
class Page:
    """A stretch of readable text; only a PDF has more than one, and numbers."""

    text: str
    markdown: bool = False
    number: int | None = None
    header: str | None = None
    """Of a table: the line that names its columns."""


@dataclass(frozen=True, slots=True)
class Original:
    """A document's own bytes and what they are."""

    content: bytes
    media_type: str
    width: int | None = None
    height: int | None = None
    pages: int | None = None
    text_bytes: int = 0
    text_tokens: int | None = None
    """Estimated; None: it has no text."""
    sha256: str = field(init=False)
    """Taken at once, where the document is read: that is a thread, and the largest take a while."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sha256", hashlib.sha256(self.content).hexdigest())


@dataclass(frozen=True, slots=True)
class Decoded:
    """What came of a document: what is kept of it, the text to be found in it, and why there is none."""

    original: Original
    pages: list[Page]
    problem: str | None = None


def decode(document: IndexDocument, limits: Limits) -> Decoded:
    """Decode a document into its original and its text. Blocking; raises Unreadable with what to do about it."""
    content = _content(document, limits.bytes_max)
    media_type = media_type_of(document, content)
    if media_type in IMAGES:
        return _image(content)
    if media_type == PDF:
        return _pdf(content, limits)
    pages = _text(content, media_type)
    encoded = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return Decoded(Original(encoded, media_type, text_bytes=len(encoded), text_tokens=estimate_bytes(encoded)), pages)


def _image(content: str | bytes) -> Decoded:
    """Keep an image for jobs to be given: nothing is found in it."""
    encoded = content if isinstance(content, bytes) else b""
    image = seen(encoded)
    if image is None:
        raise Unreadable("This is no image in PNG, JPEG, GIF or WebP, or it is damaged: save it anew in one of them.")
    return Decoded(Original(encoded, image.media_type, image.width, image.height), [])


def _pdf(content: str | bytes, limits: Limits) -> Decoded:
    if isinstance(content, str):
        raise Unreadable("A PDF must be sent as a file (content_base64), not as text.")
    pages = pdf_pages(
        content,
        pages_max=limits.pdf_pages_max,
        seconds_max=limits.read_seconds_max,
        advice="split it, or raise WAYLINE_RETRIEVAL_PDF_PAGES_MAX",
    )
    found = [
        Page(storable(without_nuls(text)), number=number) for number, text in enumerate(pages, start=1) if text.strip()
    ]
    texts = [_encoded(page.text) for page in found]
    tokens = sum(map(estimate_bytes, texts)) or None
    original = Original(content, PDF, pages=len(pages), text_bytes=sum(map(len, texts)), text_tokens=tokens)
    return Decoded(original, found, None if found else NO_TEXT)


def _text(content: str | bytes, media_type: str) -> list[Page]:
    text = content if isinstance(content, str) else characters(content, html=media_type in _HTML)
    if is_binary(text):
        raise Unreadable(
            "This is binary data, not text: check the file, and send its real media type "
            "(text, Markdown, HTML and PDF can be read)."
        )
    text = storable(without_nuls(text))
    if media_type in _HTML:
        text = storable(html_text(text))
    if not text.strip():
        raise Unreadable("The document is empty: there is no text in it.")
    header = header_of(text) if media_type in _TABLES else None
    return [Page(text, markdown=media_type in _MARKDOWN, header=header)]


def header_of(table: str) -> str | None:
    """Return the first line of a table where it names the columns: several, and no number among them."""
    line = table.lstrip("\n").split("\n", 1)[0].strip()
    cells = [cell.strip(" \"'") for cell in re.split(r"[,;\t|]", line)]
    names = len(cells) > 1 and all(cells) and not any(_NUMBER.fullmatch(cell) for cell in cells)
    return line if names and len(line) <= HEADER_CHARS_MAX else None


def media_type_of(document: IndexDocument, content: str | bytes) -> str:
    """Return the format to read a document as: the one that its sender named, else by its name, else by its bytes.

    What senders take from tables of endings is often wrong of a text (main.rs, Booking.com): a type that we do not know
    says nothing. Raises Unreadable.
    """
    media_type = document.media_type.split(";")[0].strip().lower()
    by_name = _BY_SUFFIX.get(_suffix(document.name), "")
    if media_type in _UNSAID:
        media_type = by_name
    if media_type == "text/plain" and _suffix(document.name) in _TABLE_SUFFIXES:
        media_type = _TABLE_SUFFIXES[_suffix(document.name)]
    if media_type == "text/plain" and by_name in _MARKDOWN:
        media_type = by_name
    if media_type in _MARKDOWN | _HTML | _PLAIN | IMAGES or media_type == PDF or media_type.startswith("text/"):
        return media_type
    if seen_as := _seen_as(content):
        return by_name if seen_as == "text/plain" and by_name in _MARKDOWN | _HTML else seen_as
    raise Unreadable(
        f"Documents of type {document.media_type!r} cannot be read: send text, Markdown, HTML, PDF or an image "
        f"(text/plain, text/markdown, text/html, application/pdf, image/png, image/jpeg, image/gif, image/webp)."
    )


def _seen_as(content: str | bytes) -> str | None:
    """Return a document's media type by its content alone; None: none of what we read."""
    if isinstance(content, str):
        return "text/plain"
    if content.startswith(b"%PDF-"):
        return PDF
    if image := seen(content):
        return image.media_type
    return "text/plain" if is_text(content) else None


def is_text(content: bytes) -> bool:
    """Return whether bytes are text: UTF-8 or with a byte order mark, and hardly a control character in them."""
    encoding = next((encoding for bom, encoding in BYTE_ORDER_MARKS if content.startswith(bom)), "utf-8")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        return False
    return bool(text) and not is_binary(text)


def _suffix(name: str) -> str:
    _, dot, suffix = name.rpartition(".")
    return f"{dot}{suffix}".lower()


def _content(document: IndexDocument, bytes_max: int) -> str | bytes:
    content: str | bytes
    if document.content_base64 is not None:
        try:
            content = base64.b64decode(document.content_base64, validate=True)
        except (binascii.Error, ValueError):
            raise Unreadable("content_base64 is not valid base64: encode the file's bytes again.") from None
    else:
        content = document.text or ""
    if not content:
        raise Unreadable("The document is empty: there is no text in it.")
    size = len(content) if isinstance(content, bytes) else size_of(content)
    if size > bytes_max:
        raise Unreadable(
            f"The document has {size} bytes and at most {bytes_max} can be read: split it, "
            f"or raise WAYLINE_RETRIEVAL_DOCUMENT_BYTES_MAX."
        )
    return content


def size_of(text: str) -> int:
    """Return how many bytes a text takes, also one that no encoding takes as it is."""
    return len(_encoded(text))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def storable(text: str) -> str:
    """Return the text without what no Postgres column takes: NUL bytes, and halves of surrogate pairs."""
    return _SURROGATE.sub("\ufffd", text.replace("\x00", "")).replace("\r\n", "\n")


def storable_json(value: Any) -> Any:
    """Return metadata without what no column takes; its numbers must be finite too."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {storable(str(key)): storable_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable_json(item) for item in value]
    return value
