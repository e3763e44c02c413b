"""Read an uploaded document from a request, sent as JSON or as a form."""

from __future__ import annotations

from base64 import b64decode, b64encode
from hashlib import sha256
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from wayline.contracts.knowledge import IndexDocument
from wayline.contracts.strict_json import NotStrictJson, read_json
from wayline.gateway.errors import Empty, WrongContentType
from wayline.gateway.problems import InvalidBody
from wayline.gateway.shapes.documents import DocumentBody, FileFields

B = TypeVar("B", bound=BaseModel)

PART_MAX_BYTES = 64 * 1024
"""A multipart field that is not the file."""
FIELDS_MAX = 8

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


async def read_document(request: Request, tenant: str) -> IndexDocument:
    """Return the document in a request. Raises InvalidBody, Empty, or WrongContentType."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if kind == "multipart/form-data":
            return await _from_form(request, tenant)
        if kind == "application/json" or kind.endswith("+json"):
            return _from_json(await request.body(), tenant)
    except ClientDisconnect:
        raise HTTPException(400, "the request ended before its body did") from None
    raise WrongContentType(found=kind, wanted="application/json, or multipart/form-data with the field `file`")


def _from_json(body: bytes, tenant: str) -> IndexDocument:
    try:
        value = read_json(body)
    except NotStrictJson as error:
        raise HTTPException(422, f"the body is not JSON: {error}") from None
    document = _fit(DocumentBody, value)
    if not document.text.strip():
        raise Empty
    return IndexDocument(
        tenant=tenant,
        document_id=document.document_id or same_id(document.name, document.text.encode("utf-8", "surrogatepass")),
        name=document.name,
        media_type=document.media_type or _TEXT_TYPES.get(_ending(document.name), "text/plain"),
        text=document.text,
        metadata=document.metadata,
        trust=document.trust,
    )


async def _from_form(request: Request, tenant: str) -> IndexDocument:
    async with request.form(max_files=1, max_fields=FIELDS_MAX, max_part_size=PART_MAX_BYTES) as form:
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise Empty
        content = await file.read()
        others = {name: value for name, value in form.items() if name != "file"}
        fields = _fit(FileFields, {"name": file.filename or "document", **others})
    if not content:
        raise Empty
    stated = (file.content_type or "").partition(";")[0].strip().lower()
    return IndexDocument(
        tenant=tenant,
        document_id=fields.document_id or same_id(fields.name, content),
        name=fields.name,
        media_type=type_of_file(fields.name, content) if stated in _UNKNOWN_TYPES else stated,
        content_base64=b64encode(content).decode(),
        metadata=fields.metadata,
        trust=fields.trust,
    )


def same_id(name: str, content: bytes) -> str:
    """Return the id of a document that its sender gave none: the same for the same name and content."""
    return f"doc_{sha256(name.encode('utf-8', 'surrogatepass') + bytes(1) + content).hexdigest()[:24]}"


def type_of_file(name: str, content: bytes) -> str:
    """Return a media type by a file's name, else by its bytes.

    The machine's own table of endings is not used: in it Booking.com is a program and main.rs a web service.
    """
    known = (_TEXT_TYPES | _FILE_TYPES).get(_ending(name))
    return known or ("text/plain" if _is_text(content) else "application/octet-stream")


def _is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False


def _ending(name: str) -> str:
    return "." + name.rpartition(".")[2].lower()


def size_bytes(document: IndexDocument) -> int:
    """Count the bytes of what was sent."""
    if document.text is not None:
        return len(document.text.encode())
    encoded = document.content_base64 or ""
    return len(encoded) * 3 // 4 - encoded[-2:].count("=")


def content_sha256(document: IndexDocument) -> str:
    """Return the hash by which the stored bytes of a document are known."""
    content = document.text.encode() if document.text is not None else b64decode(document.content_base64 or "")
    return sha256(content).hexdigest()


def index_id(document: IndexDocument) -> str:
    """Return the id under which the same document with the same content is queued once."""
    return f"{document.tenant}/{document.document_id}:{sha256(document.to_wire()).hexdigest()[:32]}"


def _fit(model: type[B], value: Any) -> B:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise InvalidBody(error) from None
