"""Documents and search."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from typing import Annotated, TypeAlias
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from wayline.contracts import ids
from wayline.contracts.document_changes import ChangeDocument, DocumentChange
from wayline.contracts.errors import Refused, Retry
from wayline.contracts.knowledge import (
    DOCUMENT_ID_PATTERN,
    AcceptDocument,
    DeleteDocument,
    Document,
    DocumentDeleted,
    DocumentPage,
    DocumentStatus,
    GetDocument,
    IndexDocument,
    ListDocuments,
    SearchKnowledge,
    SearchResult,
    Trust,
    trust_by_origin,
)
from wayline.gateway.conditions import IfUnchanged, entity_tag
from wayline.gateway.errors import Forbidden
from wayline.gateway.handlers.shared.changing import Changeable, tagged
from wayline.gateway.handlers.shared.dependencies import Gateway, GatewayDependency, Reader, Writer, acting_as
from wayline.gateway.handlers.shared.seen_by import SeenBy, seen_by
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails, tags
from wayline.gateway.parameters import Cursor, Wait
from wayline.gateway.read_upload import Upload, reading
from wayline.gateway.shapes.body import ONE_LINE
from wayline.gateway.shapes.documents import DocumentBody, DocumentChangeBody, FileFields, SearchBody
from wayline.gateway.strict_json import StrictRoute

SEARCH_WITHIN_S = 20.0

router = APIRouter(prefix="/v1", tags=["knowledge"], route_class=StrictRoute)
uploads = APIRouter(prefix="/v1", tags=["knowledge"], route_class=StrictRoute)
"""Apart, because a document may be larger than any other body."""

POLL_FIRST_S = 0.05
POLL_MAX_S = 0.5

# Any id that the bus takes: a slash in it is quoted.
DocumentPath: TypeAlias = Annotated[str, Path(pattern=DOCUMENT_ID_PATTERN, examples=["doc_1f2e3d4c5b6a79880011"])]
NameFilter: TypeAlias = Annotated[
    str | None,
    Query(max_length=500, pattern=ONE_LINE, description="Only documents of this name; `*` stands for anything."),
]
_UPLOAD = FileFields.model_json_schema()["properties"]
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": DocumentBody.model_json_schema()},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "name": {**_UPLOAD["name"], "description": "Instead of the file's own name."},
                        "document_id": {"type": "string", "pattern": ids.JOB_ID_PATTERN},
                        "metadata": {"type": "string", "description": "A JSON object.", "example": "{}"},
                        "trust": _UPLOAD["trust"],
                        "collection": _UPLOAD["collection"],
                        "audience": {"type": "string", "description": "A JSON list of user ids and groups."},
                        "valid_until": _UPLOAD["valid_until"],
                        "user_id": _UPLOAD["user_id"],
                    },
                }
            },
        },
    }
}


@uploads.post(
    "/documents",
    status_code=202,
    response_model=Document,
    openapi_extra=_BODY,
    responses={200: {"model": Document, "description": "It is ready, or has failed"}, **fails(400, 413, 415, 429)},
)
async def add_document(request: Request, gateway: GatewayDependency, caller: Writer, wait: Wait = None) -> Response:
    """Add a document: a file as multipart, or text as JSON. 202 means that it is stored and will be indexed.

    Without a `document_id` the same name with the same content is the same document, however often it is sent.

    With `wait`, 200 is the document once it is ready or has failed.
    """
    if wait:
        gateway.streams.require_room(caller)
    async with reading(request, caller.tenant) as sent:
        upload = sent.of_user(acting_as(caller, sent.document.user_id), apart=caller.user_id is not None)
        await _require_own(gateway, caller, upload.document.document_id)
        known = await _note(gateway, upload, sequence=await _queue(gateway, upload))
    if wait:
        known = await _after_wait(gateway, known, caller, wait_s=min(wait, gateway.settings.wait_max_s))
    done = wait and known.status in (DocumentStatus.READY, DocumentStatus.FAILED)
    return Response(
        known.model_dump_json(),
        status_code=200 if done else 202,
        headers={"Location": f"/v1/documents/{quote(known.document_id, safe='')}"},
        media_type="application/json",
    )


async def _require_own(gateway: Gateway, caller: Caller, document_id: str) -> None:
    """Pass where no document is replaced that the key's user may not see. Raises Forbidden."""
    if caller.user_id is None:
        return
    with suppress(Refused):
        found = await gateway.bus.ask(GetDocument(tenant=caller.tenant, document_id=document_id), Document)
        if found.audience is not None and caller.user_id not in found.audience:
            raise Forbidden(f"this API key acts for user {caller.user_id!r}, and the document is not theirs")


async def _queue(gateway: Gateway, upload: Upload) -> int:
    """Put a document on the bus, whose ack is the acceptance; the answer is its place in the stream."""
    msg_id = upload.index_id
    ack = await gateway.bus.publish(upload.document, msg_id=msg_id, moved=upload.moved)
    if ack.duplicate and not await _is_in_place(gateway, upload):
        # It was deleted since it was queued a moment ago, or another version came after it: this is a newer one now.
        again = f"{msg_id}:{secrets.token_hex(4)}"
        ack = await gateway.bus.publish(upload.document, msg_id=again, moved=upload.moved)
    return ack.seq


async def _is_in_place(gateway: Gateway, upload: Upload) -> bool:
    """Return whether the searchable document is this very version."""
    document = upload.document
    try:
        known = await gateway.bus.ask(GetDocument(tenant=document.tenant, document_id=document.document_id), Document)
    except (Refused, Retry):
        return False
    trust = document.trust or _trust(document)
    whose = (document.collection, document.audience, document.valid_until)
    same = (document.name, document.media_type, document.metadata, trust, upload.sha256, *whose)
    return known.status is DocumentStatus.READY and same == (
        known.name,
        known.media_type,
        known.metadata,
        known.trust,
        known.sha256,
        known.collection,
        known.audience,
        known.valid_until,
    )


def _trust(document: IndexDocument) -> Trust:
    return trust_by_origin(document.name, document.metadata, media_type=document.media_type)


async def _note(gateway: Gateway, upload: Upload, *, sequence: int) -> Document:
    """Announce a document to retrieval, if it answers, so that it is listed before it is indexed."""
    document = upload.document
    fields = {
        "document_id": document.document_id,
        "name": document.name,
        "media_type": document.media_type,
        "size_bytes": upload.size_bytes,
        "metadata": document.metadata,
    }
    fields |= {name: getattr(document, name) for name in ("collection", "audience", "valid_until")}
    asked = AcceptDocument(
        tenant=document.tenant, sequence=sequence, trust=document.trust, user_id=document.user_id, **fields
    )
    with suppress(Retry):
        return await gateway.bus.ask(asked, Document)
    return Document(trust=document.trust or _trust(document), **fields)


async def _after_wait(gateway: Gateway, known: Document, caller: Caller, *, wait_s: float) -> Document:
    """Return a document that is ready or has failed, or as it is when the wait is over or this process stops.

    It is stored by now: where others have taken the last place to wait, that is no failure.
    """
    with suppress(Retry), gateway.streams.follower(caller) as follower:
        try:
            return await _settled(gateway, known, caller.tenant, wait_s=wait_s)
        except asyncio.CancelledError:
            if not follower.absorb_stop():
                raise
    return known


async def _settled(gateway: Gateway, known: Document, tenant: str, *, wait_s: float) -> Document:
    pause_s = POLL_FIRST_S
    with suppress(TimeoutError):
        async with asyncio.timeout(wait_s):
            while known.status not in (DocumentStatus.READY, DocumentStatus.FAILED):
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 1.5, POLL_MAX_S)
                with suppress(Retry):
                    known = await gateway.bus.ask(GetDocument(tenant=tenant, document_id=known.document_id), Document)
    return known


@router.get("/documents", responses=fails(400))
async def list_documents(
    gateway: GatewayDependency,
    caller: Reader,
    *,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    cursor: Cursor = None,
    names: SeenBy,
    name: NameFilter = None,
    status: Annotated[DocumentStatus | None, Query(description="Only documents that are so far.")] = None,
    collection: Annotated[
        str | None,
        Query(min_length=1, max_length=200, pattern=ONE_LINE, description="Only documents of this collection."),
    ] = None,
    language: Annotated[
        str | None, Query(pattern=r"^[a-z]{2}$", description="Only documents in this language, by ISO 639-1.")
    ] = None,
) -> DocumentPage:
    """Page through the documents, newest first; `next_cursor` is there while there are more."""
    wanted = {"name": name, "status": status, "collection": collection, "language": language}
    asked = ListDocuments(tenant=caller.tenant, limit=limit, cursor=cursor, seen_by=names, **wanted)
    return await gateway.bus.ask(asked, DocumentPage)


@router.get("/documents/{document_id:path}", responses=tags(404))
async def get_document(
    document_id: DocumentPath, gateway: GatewayDependency, caller: Reader, names: SeenBy, response: Response
) -> Document:
    """Return a document and how far its ingestion is."""
    asked = GetDocument(tenant=caller.tenant, document_id=document_id, seen_by=names)
    found = await gateway.bus.ask(asked, Document)
    return tagged(response, found, tag_of(found))


@router.patch("/documents/{document_id:path}", responses=tags(404, 409, 412, 413))
async def change_document(
    *,
    document_id: DocumentPath,
    change: DocumentChangeBody,
    gateway: GatewayDependency,
    caller: Writer,
    condition: IfUnchanged,
    response: Response,
) -> Document:
    """Change what describes a document; what is left out stays. Searches, lists and jobs see it at once."""
    asked = ChangeDocument(
        tenant=caller.tenant,
        document_id=document_id,
        change=DocumentChange.model_validate(change.model_dump(exclude_unset=True)),
        seen_by=seen_by(caller),
    )
    async with DOCUMENT.changing(gateway, caller, document_id, condition):
        changed = await gateway.bus.ask(asked, Document)
    return tagged(response, changed, tag_of(changed))


@router.delete("/documents/{document_id:path}", responses=fails(404, 412))
async def delete_document(
    document_id: DocumentPath, gateway: GatewayDependency, caller: Writer, condition: IfUnchanged
) -> DocumentDeleted:
    """Delete a document and all of its chunks."""
    asked = DeleteDocument(tenant=caller.tenant, document_id=document_id, seen_by=seen_by(caller))
    async with DOCUMENT.changing(gateway, caller, document_id, condition):
        return await gateway.bus.ask(asked, DocumentDeleted)


async def document_of(gateway: Gateway, caller: Caller, document_id: str) -> Document:
    """Return a document that the caller may see. Raises NotFound."""
    asked = GetDocument(tenant=caller.tenant, document_id=document_id, seen_by=seen_by(caller))
    return await gateway.bus.ask(asked, Document)


def tag_of(document: Document) -> str:
    """Return the entity tag of a document: of what describes it, not of how far it is."""
    return entity_tag(document.document_id, document.model_dump(mode="json", include=set(DocumentChange.model_fields)))


DOCUMENT = Changeable("document", document_of, tag_of)


@router.post("/search", responses=fails(400, 413))
async def search(body: SearchBody, gateway: GatewayDependency, caller: Reader) -> SearchResult:
    """Find the best passages for a query by words, by vector, or by both."""
    fields = {name: getattr(body, name) for name in SearchBody.model_fields}
    if caller.user_id is not None:
        # Groups are what the application says they are; a key of one user says nothing of them.
        fields["audience"] = (caller.user_id,)
    search = SearchKnowledge(tenant=caller.tenant, **fields)
    # On a busy machine an answer that comes late is worth more than a 503.
    return await gateway.bus.ask(search, SearchResult, timeout_s=SEARCH_WITHIN_S)
