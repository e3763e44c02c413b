"""The bytes of documents, as they were uploaded or made by a tool."""

from __future__ import annotations

from base64 import b64decode
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter
from fastapi.responses import Response

from wayline.contracts.chat import IMAGES
from wayline.contracts.errors import NotFound, Reject
from wayline.contracts.knowledge import (
    PIECE_MAX_BYTES,
    AttachmentPiece,
    Document,
    DocumentStatus,
    GetDocument,
    ReadAttachment,
)
from wayline.gateway.handlers.knowledge.documents import DocumentPath
from wayline.gateway.handlers.shared.dependencies import Gateway, GatewayDependency, Reader
from wayline.gateway.handlers.shared.seen_by import SeenBy
from wayline.gateway.openapi import fails
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1", tags=["knowledge"], route_class=StrictRoute)

_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {"description": "The bytes.", "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}
}


@router.get("/files/{document_id:path}", response_class=Response, responses={**_ANSWER, **fails(404, 409)})
async def get_file(document_id: DocumentPath, gateway: GatewayDependency, caller: Reader, names: SeenBy) -> Response:
    """Return the bytes of a document: images as what they are, anything else to be saved."""
    asked = GetDocument(tenant=caller.tenant, document_id=document_id, seen_by=names)
    document = await gateway.bus.ask(asked, Document)
    if document.status in (DocumentStatus.QUEUED, DocumentStatus.INDEXING):
        raise Reject(f"{document_id!r} is still being read: ask again", code="document_not_ready", status=409)
    if document.sha256 is None:
        raise NotFound("file", document_id)
    content = await _content(gateway, asked, document.sha256)
    shown = document.media_type in IMAGES
    return Response(
        content,
        media_type=document.media_type if shown else "application/octet-stream",
        headers={
            "Content-Disposition": f"{'inline' if shown else 'attachment'}; filename*=UTF-8''{quote(document.name)}",
            "Content-Security-Policy": "default-src 'none'; sandbox",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "private, max-age=3600",
            "ETag": f'"{document.sha256}"',
        },
    )


async def _content(gateway: Gateway, of: GetDocument, sha256: str) -> bytes:
    """Return all bytes of a document. Raises Refused where it was deleted or changed meanwhile."""
    found = bytearray()
    while True:
        asked = ReadAttachment(
            tenant=of.tenant,
            document_id=of.document_id,
            seen_by=of.seen_by,
            sha256=sha256,
            offset=len(found),
            length=PIECE_MAX_BYTES,
        )
        piece = await gateway.bus.ask(asked, AttachmentPiece)
        read = b64decode(piece.content_base64)
        found += read
        if len(found) >= piece.size_bytes or not read:
            return bytes(found)
