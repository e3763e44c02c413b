"""The passages of a document, the answers that rest on them, and indexing it once more from what is kept of it."""

from __future__ import annotations

import base64
import binascii
import secrets
from typing import Annotated, Final

from fastapi import APIRouter, HTTPException, Query

from wayline.contracts.document_changes import CHUNKS_MAX, ChunkPage, DocumentChunk, ListChunks
from wayline.contracts.errors import Reject
from wayline.contracts.knowledge import AcceptDocument, Document, DocumentStatus, GetDocument, IndexDocument
from wayline.contracts.traces import JobPage, ListJobs
from wayline.gateway.handlers.knowledge.documents import DocumentPath, document_of
from wayline.gateway.handlers.shared.dependencies import GatewayDependency, Reader, Writer
from wayline.gateway.handlers.shared.seen_by import SeenBy
from wayline.gateway.openapi import fails
from wayline.gateway.paging import Paged
from wayline.gateway.parameters import Cursor
from wayline.gateway.shapes.body import ONE_LINE
from wayline.gateway.shapes.documents import CitedIn
from wayline.gateway.subresource_route import SubresourceRoute

router = APIRouter(prefix="/v1", tags=["knowledge"], route_class=SubresourceRoute)

POSITION_MAX: Final = 2**31 - 1
JOBS_MAX: Final = 200
"""On one page of those that cite a document."""


class ChunksPage(Paged):
    """A page of a document's passages, in their order."""

    chunks: tuple[DocumentChunk, ...]


@router.get("/documents/{document_id:path}/chunks", responses=fails(400, 404))
async def list_chunks(
    *,
    document_id: DocumentPath,
    gateway: GatewayDependency,
    caller: Reader,
    names: SeenBy,
    limit: Annotated[int, Query(ge=1, le=CHUNKS_MAX)] = 100,
    cursor: Cursor = None,
) -> ChunksPage:
    """Page through a document's passages: the text, where it stands, and whether searches by meaning find it."""
    asked = ListChunks(
        tenant=caller.tenant, document_id=document_id, position=_position(cursor), limit=limit, seen_by=names
    )
    page = await gateway.bus.ask(asked, ChunkPage)
    following = None if page.next_position is None else _cursor(page.next_position)
    return ChunksPage(chunks=page.chunks, next_cursor=following)


@router.post("/documents/{document_id:path}/reindex", status_code=202, responses=fails(404, 409))
async def reindex_document(document_id: DocumentPath, gateway: GatewayDependency, caller: Writer) -> Document:
    """Read, cut and embed a document once more, from the bytes that are kept of it and as it is described now."""
    known = await document_of(gateway, caller, document_id)
    if known.status in (DocumentStatus.QUEUED, DocumentStatus.INDEXING):
        raise Reject(f"{document_id!r} is being indexed already", code="document_not_ready", status=409)
    if known.sha256 is None:
        raise Reject(f"nothing is kept of {document_id!r}: send it again", code="document_not_kept", status=409)
    described = {name: getattr(known, name) for name in ("document_id", "name", "media_type")}
    message = IndexDocument(tenant=caller.tenant, kept=True, **described)
    ack = await gateway.bus.publish(message, msg_id=f"{caller.tenant}/{document_id}:{secrets.token_hex(8)}")
    asked = AcceptDocument(tenant=caller.tenant, sequence=ack.seq, size_bytes=known.size_bytes, kept=True, **described)
    return await gateway.bus.ask(asked, Document)


@router.api_route(
    "/documents/{document_id:path}/chunks", methods=["POST", "PUT", "PATCH", "DELETE"], include_in_schema=False
)
async def refuse_on_chunks(document_id: str) -> None:
    """Refuse what cannot be done with passages."""
    raise HTTPException(405, headers={"Allow": "GET"})


class CitationPage(Paged):
    """A page of the answers that rest on a document, the newest first, each with the passages."""

    citations: tuple[CitedIn, ...]


@router.get("/documents/{document_id:path}/citations", responses=fails(400, 404))
async def list_citations(
    *,
    document_id: DocumentPath,
    gateway: GatewayDependency,
    caller: Reader,
    names: SeenBy,
    chunk_id: Annotated[str | None, Query(min_length=1, max_length=200, pattern=ONE_LINE)] = None,
    limit: Annotated[int, Query(ge=1, le=JOBS_MAX, description="How many jobs on a page.")] = 50,
    cursor: Cursor = None,
) -> CitationPage:
    """Page through the jobs whose answers rest on a document, or on one of its passages, the newest first.

    A key of one user sees that user's jobs.
    """
    await gateway.bus.ask(GetDocument(tenant=caller.tenant, document_id=document_id, seen_by=names), Document)
    asked = ListJobs(
        tenant=caller.tenant,
        user_id=caller.user_id,
        cites=document_id,
        cites_chunk=chunk_id,
        limit=limit,
        cursor=cursor,
    )
    page = await gateway.bus.ask(asked, JobPage)
    cited = (CitedIn.of(job, document_id, chunk_id) for job in page.jobs)
    # A tracing of a version before lists every job.
    return CitationPage(citations=tuple(one for one in cited if one.passages), next_cursor=page.next_cursor)


@router.api_route(
    "/documents/{document_id:path}/citations", methods=["POST", "PUT", "PATCH", "DELETE"], include_in_schema=False
)
async def refuse_on_citations(document_id: str) -> None:
    """Refuse what cannot be done with citations."""
    raise HTTPException(405, headers={"Allow": "GET"})


@router.api_route(
    "/documents/{document_id:path}/reindex", methods=["GET", "PUT", "PATCH", "DELETE"], include_in_schema=False
)
async def refuse_on_reindex(document_id: str) -> None:
    """Refuse what cannot be done with indexing."""
    raise HTTPException(405, headers={"Allow": "POST"})


def _cursor(position: int) -> str:
    return base64.urlsafe_b64encode(str(position).encode()).decode()


def _position(cursor: str | None) -> int:
    """Return the position that a cursor names. Raises Reject for one that is not ours."""
    if not cursor:
        return 0
    try:
        position = int(base64.urlsafe_b64decode(cursor)[:12])
    except (binascii.Error, ValueError):
        position = -1
    if not 0 <= position <= POSITION_MAX:
        raise Reject("this cursor is not one of ours: ask for the first page again", code="invalid_cursor")
    return position
