"""Turn what was sent into text, and keep what it was: its format, how bytes become characters."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import re
from dataclasses import dataclass, field, replace
from typing import Protocol

from wayline.contracts.chat import IMAGES, PDF
from wayline.contracts.images import seen
from wayline.contracts.knowledge import IndexDocument
from wayline.documents import (
    ReadableDocument,
    ReadLimits,
    TextPage,
    Unreadable,
    is_binary,
    language_of,
    looks_like_text,
    without_nuls,
)
from wayline.documents.file_kinds import BY_SUFFIX, CODE_SUFFIXES, KINDS, OLD_OFFICE, suffix, type_by_content
from wayline.llm.inputs import kind_of
from wayline.llm.tokens import estimate_bytes
from wayline.retrieval.documents.near_copies import signature_of
from wayline.retrieval.storable import storable

NO_TEXT = (
    "The PDF has no text in it, only pictures of pages: run it through text recognition (OCR) first, if it is to be "
    "found, or set WAYLINE_RETRIEVAL_OCR_LANGUAGES where tesseract is installed. It is kept as it is, and a job can be "
    "given it."
)

_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.-]{1,40})", re.I)
_TEXTS_BY_SUFFIX = {
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
_BY_SUFFIX = BY_SUFFIX | _TEXTS_BY_SUFFIX
_TABLE_SUFFIXES = {".csv": "text/csv", ".tsv": "text/tab-separated-values"}
_TABLES = frozenset(_TABLE_SUFFIXES.values())
_NUMBER = re.compile(r"[-+]?[\d.,]+ ?%?")
HEADER_CHARS_MAX = 500
"""Of a longer first line every passage would hold too much."""
_MARKDOWN = frozenset({"text/markdown", "text/x-markdown"})
_PLAIN = frozenset({"application/x-ndjson", "application/yaml", "application/xml", "application/toml"})
_KINDS_OF_TEXT = frozenset({"json", "notebook", "subtitles"})
"""What senders call plain text, and names tell apart."""
READ = (
    "text, Markdown, HTML, PDF, DOCX, PPTX, XLSX, XLS, ODT, ODS, ODP, EPUB, RTF, EML, a notebook, subtitles or an image"
)
_MARKED_UP = frozenset({"rtf", "mail", "notebook"})
"""Formats whose bytes may be text, but mostly of other things than what they say."""
_UNSAID = frozenset({"", "application/octet-stream", "binary/octet-stream"})


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a document may be and how long reading it may take."""

    bytes_max: int
    pdf_pages_max: int
    read_seconds_max: float
    metadata_bytes_max: int
    page_seconds_max: float = 20.0
    ocr_program: str = ""
    ocr_languages: str = ""

    @property
    def reading(self) -> ReadLimits:
        """Return what bounds the process that reads a document."""
        return ReadLimits(
            pages_max=self.pdf_pages_max,
            page_s=self.page_seconds_max,
            document_s=self.read_seconds_max,
            text_max_chars=self.bytes_max,
            ocr_program=self.ocr_program,
            ocr_languages=self.ocr_languages,
            pages_advice="split it, or raise WAYLINE_RETRIEVAL_PDF_PAGES_MAX",
        )


class Reader(Protocol):
    """Reads what strangers wrote where it can be ended."""

    async def read(
        self, content: bytes, *, kind: str, limits: ReadLimits, charset: str = "", links: bool = True
    ) -> ReadableDocument: ...


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
    text: bytes | None = None
    """What a model is given instead; None: the bytes themselves, which models read."""
    sha256: str = field(init=False)
    """Taken at once, where the document is read: that is a thread, and the largest take a while."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sha256", hashlib.sha256(self.content).hexdigest())


@dataclass(frozen=True, slots=True)
class Decoded:
    """What came of a document: what is kept of it, the text to be found in it, and why there is none."""

    original: Original
    pages: list[TextPage]
    problem: str | None = None
    language: str | None = None
    """ISO 639-1; None: it cannot be told."""
    signature: bytes | None = None
    """By which documents of nearly the same text are known."""


async def decode(document: IndexDocument, limits: Limits, reader: Reader) -> Decoded:
    """Decode a document into its original and its text. Raises Unreadable with what to do about it.

    Text that is plainly text is decoded here; what has to be parsed, or whose encoding is not known, by the reader.
    """
    content, media_type = await asyncio.to_thread(_typed, document, limits)
    if media_type in IMAGES:
        return _image(content)
    kind = KINDS.get(media_type, "text")
    if kind == "pdf" and isinstance(content, str):
        raise Unreadable("A PDF must be sent as a file (content_base64), not as text.")
    found = await asyncio.to_thread(_plain, content) if kind == "text" else None
    if found is None:
        named = _CHARSET.search(document.media_type)
        charset = "utf-8" if isinstance(content, str) else named[1] if named else ""
        encoded = content if isinstance(content, bytes) else storable(content).encode()
        found = await reader.read(encoded, kind=kind, limits=limits.reading, charset=charset, links=False)
    code = kind == "text" and suffix(document.name) in CODE_SUFFIXES
    decoded = await asyncio.to_thread(_decoded, content, media_type, found, code=code)
    signature = await asyncio.to_thread(signature_of, [page.text for page in decoded.pages])
    return replace(decoded, signature=signature)


def _typed(document: IndexDocument, limits: Limits) -> tuple[str | bytes, str]:
    content = _content(document, limits.bytes_max)
    return content, media_type_of(document, content)


def _image(content: str | bytes) -> Decoded:
    """Keep an image for jobs to be given: nothing is found in it."""
    encoded = content if isinstance(content, bytes) else b""
    image = seen(encoded)
    if image is None:
        raise Unreadable("This is no image in PNG, JPEG, GIF or WebP, or it is damaged: save it anew in one of them.")
    return Decoded(Original(encoded, image.media_type, image.width, image.height), [])


def _plain(content: str | bytes) -> ReadableDocument | None:
    """Return a text that was sent as one, or is UTF-8; None: its encoding has to be found."""
    try:
        text = content if isinstance(content, str) else content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    if isinstance(content, bytes) and "\0" in text:
        return None
    if is_binary(text):
        raise Unreadable(
            f"This is binary data, not text: check the file, and send its real media type. What can be read is {READ}."
        )
    return ReadableDocument([TextPage(storable(without_nuls(text)))])


def _decoded(content: str | bytes, media_type: str, found: ReadableDocument, *, code: bool) -> Decoded:
    encoded = content if isinstance(content, bytes) else _encoded(content)
    pages = [page for page in found.pages if page.text.strip()]
    language = language_of("\n".join(page.text for page in pages))
    if media_type == PDF:
        texts = [_encoded(page.text) for page in pages]
        tokens = sum(map(estimate_bytes, texts)) or None
        original = Original(encoded, PDF, pages=found.page_count, text_bytes=sum(map(len, texts)), text_tokens=tokens)
        return Decoded(original, pages, None if pages else NO_TEXT, language)
    if not pages:
        raise Unreadable("The document is empty: there is no text in it.")
    if media_type in _TABLES:
        pages = [replace(page, header=header_of(page.text)) for page in pages]
    elif media_type in _MARKDOWN:
        pages = [replace(page, markdown=True) for page in pages]
    elif code:
        pages = [replace(page, code=True) for page in pages]
    given = None if _is_readable(encoded, media_type) else _given(pages)
    text = encoded if given is None else given
    original = Original(encoded, media_type, text_bytes=len(text), text_tokens=estimate_bytes(text), text=given)
    return Decoded(original, pages, language=language)


def _is_readable(content: bytes, media_type: str) -> bool:
    """Return whether a model can be given these bytes as they are."""
    if kind_of(media_type) is None or KINDS.get(media_type) in _MARKED_UP:
        return False
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _given(pages: list[TextPage]) -> bytes:
    """Return a document's text as a model is given it, with the names of its sheets and the numbers of its pages."""
    pieces = list[str]()
    for page in pages:
        above = page.title or (f"Page {page.number}" if page.number is not None and len(pages) > 1 else "")
        pieces.append(f"[{above}]\n{page.text}" if above else page.text)
    return _encoded("\n\n".join(pieces))


def header_of(table: str) -> str | None:
    """Return the first line of a table where it names the columns: several, and no number among them."""
    line = table.lstrip("\n").split("\n", 1)[0].strip()
    cells = [cell.strip(" \"'") for cell in re.split(r"[,;\t|]", line)]
    names = len(cells) > 1 and all(cells) and not any(_NUMBER.fullmatch(cell) for cell in cells)
    return line if names and len(line) <= HEADER_CHARS_MAX else None


def media_type_of(document: IndexDocument, content: str | bytes) -> str:
    """Return the format to read a document as: the one that its bytes show, its sender named, or its name ends with.

    What senders take from tables of endings is often wrong of a text (main.rs, Booking.com): a type that we do not know
    says nothing. Raises Unreadable.
    """
    if isinstance(content, bytes) and (shown := _shown_by(content)):
        return shown
    media_type = document.media_type.split(";")[0].strip().lower()
    by_name = _BY_SUFFIX.get(suffix(document.name), "")
    if media_type in _UNSAID:
        media_type = by_name
    if media_type == "text/plain" and (by_name in _TABLES | _MARKDOWN or KINDS.get(by_name) in _KINDS_OF_TEXT):
        media_type = by_name
    if media_type in _MARKDOWN | _PLAIN | IMAGES | KINDS.keys() or media_type.startswith("text/"):
        return media_type
    if isinstance(content, str) or looks_like_text(content):
        return by_name if by_name in _MARKDOWN or KINDS.get(by_name) in _KINDS_OF_TEXT | {"html"} else "text/plain"
    raise Unreadable(f"Documents of type {document.media_type!r} cannot be read: send {READ}.")


def _shown_by(content: bytes) -> str | None:
    if image := seen(content):
        return image.media_type
    shown = type_by_content(content)
    if shown == OLD_OFFICE:
        raise Unreadable("This is a file of an old Word, PowerPoint or Outlook: save it as DOCX, PPTX, EML or PDF.")
    return shown


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
