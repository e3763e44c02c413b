"""Read an uploaded document from a request, sent as JSON or as a form."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from codecs import IncrementalDecoder, getincrementaldecoder
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any, BinaryIO, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from wayline.chassis.claim_check.claims import MovedField
from wayline.chassis.claim_check.payloads import CHUNK_BYTES
from wayline.contracts.knowledge import IndexDocument
from wayline.contracts.strict_json import NotStrictJson, read_json
from wayline.gateway.errors import Empty, WrongContentType
from wayline.gateway.problem_answers import InvalidBody
from wayline.gateway.shapes.documents import DocumentBody, FileFields

B = TypeVar("B", bound=BaseModel)

PART_MAX_BYTES = 64 * 1024
"""A multipart field that is not the file."""
FIELDS_MAX = 8
BLOCK_BYTES = CHUNK_BYTES // 4 * 3
"""Read at a time of a file: its base64 is one chunk of the object store."""
INLINE_MAX_BYTES = BLOCK_BYTES
"""A file that is not larger travels in its message."""

NAME_MAX_CHARS = 500
_TEXT_TYPES = {
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".rst": "text/x-rst",
    ".txt": "text/plain",
    ".html": "text/html",
    ".htm": "text/html",
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
}
_FILE_TYPES = {
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
_UNKNOWN_TYPES = frozenset({"", "application/octet-stream", "binary/octet-stream"})


@dataclass(frozen=True, slots=True)
class Upload:
    """A document that was sent, and what is known of its content."""

    document: IndexDocument
    """Without the bytes of a large file."""
    size_bytes: int
    sha256: str
    """By which its stored bytes are known."""
    file: MovedField | None = None
    """The value of `content_base64` of a large file."""
    named: bool = False
    """Whether its sender chose its id."""

    def of_user(self, user_id: str | None, *, apart: bool = False) -> Upload:
        """Return it as sent by a user. `apart`: what others sent, and may keep to themselves, has other ids."""
        changed = {"user_id": user_id}
        if apart and not self.named:
            changed["document_id"] = same_id(self.document.document_id, (user_id or "").encode())
        return replace(self, document=self.document.model_copy(update=changed))

    @property
    def moved(self) -> dict[str, MovedField]:
        """Return the fields that its message leaves out."""
        return {} if self.file is None else {"content_base64": self.file}

    @property
    def index_id(self) -> str:
        """Return the id under which the same document with the same content is queued once."""
        content = sha256(self.document.to_wire() + (self.file.sha256.encode() if self.file else b"")).hexdigest()
        return f"{self.document.tenant}/{self.document.document_id}:{content[:32]}"


@asynccontextmanager
async def reading(request: Request, tenant: str) -> AsyncIterator[Upload]:
    """Yield the document in a request; its file is there until the end. Raises InvalidBody, Empty, WrongContentType."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    async with AsyncExitStack() as stack:
        try:
            if kind == "multipart/form-data":
                form = request.form(max_files=1, max_fields=FIELDS_MAX, max_part_size=PART_MAX_BYTES)
                upload = await _from_form(await stack.enter_async_context(form), tenant)
            elif kind == "application/json" or kind.endswith("+json"):
                upload = _from_json(await request.body(), tenant)
            else:
                raise WrongContentType(
                    found=kind, wanted="application/json, or multipart/form-data with the field `file`"
                )
        except ClientDisconnect:
            raise HTTPException(400, "the request ended before its body did") from None
        yield upload


def _from_json(body: bytes, tenant: str) -> Upload:
    try:
        value = read_json(body)
    except NotStrictJson as error:
        raise HTTPException(422, f"the body is not JSON: {error}") from None
    sent = _fit(DocumentBody, value)
    if sent.url is not None:
        return _from_url(sent, sent.url, tenant)
    if sent.text is None or sent.name is None or not sent.text.strip():
        raise Empty
    content = sent.text.encode("utf-8", "surrogatepass")
    document = IndexDocument(
        tenant=tenant,
        document_id=sent.document_id or same_id(sent.name, content),
        name=sent.name,
        media_type=sent.media_type or _TEXT_TYPES.get(_ending(sent.name), "text/plain"),
        text=sent.text,
        metadata=sent.metadata,
        trust=sent.trust,
        collection=sent.collection,
        audience=sent.audience,
        valid_until=sent.valid_until,
        user_id=sent.user_id,
    )
    return Upload(document, len(content), sha256(content).hexdigest(), named=sent.document_id is not None)


def _from_url(sent: DocumentBody, url: str, tenant: str) -> Upload:
    """Return a document that retrieval fetches; until then nothing is known of its content."""
    name = sent.name or url[:NAME_MAX_CHARS]
    document = IndexDocument(
        tenant=tenant,
        document_id=sent.document_id or same_id(name, url.encode()),
        name=name,
        media_type="",
        url=url,
        metadata={"url": url, **sent.metadata},
        trust=sent.trust,
        collection=sent.collection,
        audience=sent.audience,
        valid_until=sent.valid_until,
        user_id=sent.user_id,
    )
    return Upload(document, 0, "", named=sent.document_id is not None)


async def _from_form(form: FormData, tenant: str) -> Upload:
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise Empty
    others = {name: value for name, value in form.items() if name != "file"}
    fields = _fit(FileFields, {"name": file.filename or "document", **others})
    known = await asyncio.to_thread(look_through, file.file, fields.name)
    if not known.size_bytes:
        raise Empty
    stated = (file.content_type or "").partition(";")[0].strip().lower()
    document = IndexDocument(
        tenant=tenant,
        document_id=fields.document_id or known.same_id,
        name=fields.name,
        media_type=type_of_file(fields.name, is_text=known.is_text) if stated in _UNKNOWN_TYPES else stated,
        metadata=fields.metadata,
        trust=fields.trust,
        collection=fields.collection,
        audience=fields.audience,
        valid_until=fields.valid_until,
        user_id=fields.user_id,
    )
    named = fields.document_id is not None
    if known.size_bytes <= INLINE_MAX_BYTES:
        await file.seek(0)
        document = document.model_copy(update={"content_base64": b64encode(await file.read()).decode()})
        return Upload(document, known.size_bytes, known.sha256, named=named)
    field = MovedField(known.encoded_sha256, known.encoded_bytes, partial(_encoded_pieces, file))
    return Upload(document, known.size_bytes, known.sha256, field, named=named)


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What one look through a file tells."""

    size_bytes: int
    sha256: str
    same_id: str
    is_text: bool
    encoded_sha256: str
    """Of the JSON text of its base64, as the bus stores it."""
    encoded_bytes: int


def look_through(file: BinaryIO, name: str) -> FileFacts:
    """Read a file once, a block at a time. Blocking."""
    content, encoded, named = sha256(), sha256(b'"'), sha256(name.encode("utf-8", "surrogatepass") + bytes(1))
    text, is_text, size, encoded_bytes = getincrementaldecoder("utf-8")(), True, 0, 2
    file.seek(0)
    while block := file.read(BLOCK_BYTES):
        size += len(block)
        content.update(block)
        named.update(block)
        piece = b64encode(block)
        encoded.update(piece)
        encoded_bytes += len(piece)
        is_text = is_text and b"\0" not in block and _decodes(text, block)
    encoded.update(b'"')
    return FileFacts(
        size_bytes=size,
        sha256=content.hexdigest(),
        same_id=_id_of(named.hexdigest()),
        is_text=is_text and _decodes(text, b"", final=True),
        encoded_sha256=encoded.hexdigest(),
        encoded_bytes=encoded_bytes,
    )


async def _encoded_pieces(file: UploadFile) -> AsyncIterator[bytes]:
    """Yield the JSON text of a file's base64 from its beginning, a block at a time."""
    await file.seek(0)
    yield b'"'
    while block := await file.read(BLOCK_BYTES):
        yield b64encode(block)
    yield b'"'


def _decodes(decoder: IncrementalDecoder, block: bytes, *, final: bool = False) -> bool:
    try:
        decoder.decode(block, final)
    except UnicodeDecodeError:
        return False
    return True


def same_id(name: str, content: bytes) -> str:
    """Return the id of a document that its sender gave none: the same for the same name and content."""
    return _id_of(sha256(name.encode("utf-8", "surrogatepass") + bytes(1) + content).hexdigest())


def _id_of(digest: str) -> str:
    return f"doc_{digest[:24]}"


def type_of_file(name: str, *, is_text: bool) -> str:
    """Return a media type by a file's name, else by whether its bytes are text.

    The machine's own table of endings is not used: in it Booking.com is a program and main.rs a web service.
    """
    known = (_TEXT_TYPES | _FILE_TYPES).get(_ending(name))
    return known or ("text/plain" if is_text else "application/octet-stream")


def _ending(name: str) -> str:
    return "." + name.rpartition(".")[2].lower()


def _fit(model: type[B], value: Any) -> B:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise InvalidBody(error) from None
