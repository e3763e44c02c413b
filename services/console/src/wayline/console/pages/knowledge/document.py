"""One document: what describes it, as a form, and its passages."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, TypeAlias
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.client.documents import document_path
from wayline.console.access.visitor import PostedForm, Visitor, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages.confirm import Confirmation, ask, is_confirmed
from wayline.console.pages.file_download import file_of
from wayline.console.pages.form_values import WrongField, is_untouched, moment_of, names_of, object_of
from wayline.console.pages.frame import Frame, go, show
from wayline.console.pages.refusal import reason_of, reason_of_save
from wayline.console.render.addresses import query_of
from wayline.console.render.formats import one_line, typed_moment, visible
from wayline.console.render.json_text import editable

router = APIRouter()
TEMPLATE = "knowledge/document.html"
CHUNKS_SHOWN = 20
JOBS_SHOWN: Final = 20
"""Of those that cite a document, the newest."""
DOCUMENT_ID_MAX = 200
FILE_HEADERS: Final = {"Content-Security-Policy": "default-src 'none'; sandbox"}
"""A document is a stranger's: it is saved, and where a browser shows it all the same it may do nothing."""

DocumentId: TypeAlias = Annotated[str, Query(alias="id", min_length=1, max_length=DOCUMENT_ID_MAX)]
Place: TypeAlias = Annotated[str | None, Query(max_length=100)]


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """What the page shows."""

    document: dict[str, Any]
    tag: str
    chunks: list[dict[str, Any]]
    next_cursor: str | None
    cursor: str | None = None
    problem: str = ""
    typed: dict[str, str] = field(default_factory=dict)
    """What a form sent that was refused, by field: nobody types it twice."""
    cited: list[dict[str, Any]] = field(default_factory=list)
    """The newest jobs whose answers rest on it, each with the passages."""
    cited_more: bool = False
    uncited_why: str = ""
    """Why nobody could tell who cites it; empty: it was told."""

    @property
    def address(self) -> str:
        return address_of(self.document["document_id"])

    @property
    def is_busy(self) -> bool:
        """Return whether it is being read now."""
        return self.document["status"] in ("queued", "indexing")


def address_of(document_id: str) -> str:
    """Return the address of a document's page."""
    return f"/knowledge/document?{query_of({'id': document_id})}"


async def read(
    client: Client,
    document_id: str,
    *,
    cursor: str | None = None,
    problem: str = "",
    typed: dict[str, str] | None = None,
) -> DocumentPage:
    """Ask the API for a document, one page of its passages, and who cites it."""
    path = document_path(document_id)
    found, page, cited = await asyncio.gather(
        client.tagged(path),
        client.get(f"{path}/chunks", limit=CHUNKS_SHOWN, cursor=cursor),
        _citations(client, path),
    )
    return DocumentPage(
        document=found.body,
        tag=found.tag or "",
        chunks=page["chunks"],
        next_cursor=page["next_cursor"],
        cursor=cursor,
        problem=problem,
        typed=typed or {},
        cited=cited["citations"],
        cited_more=cited["next_cursor"] is not None,
        uncited_why=cited.get("problem", ""),
    )


async def _citations(client: Client, path: str) -> dict[str, Any]:
    """Ask which jobs cite a document; where that is not known, as another service tells it, the document is shown."""
    try:
        return await client.get(f"{path}/citations", limit=JOBS_SHOWN)
    except ApiError as error:
        return {"citations": [], "next_cursor": None, "problem": str(error)}


def shown_fields(document: Mapping[str, Any], zone: Any) -> dict[str, str]:
    """Return what the form shows of a document, by field: what comes back as it was shown is not changed."""
    audience = document["audience"]
    return {
        "name": visible(document["name"]),
        "collection": visible(document["collection"] or ""),
        "everybody": "on" if audience is None else "",
        "audience": visible("\n".join(audience or ())),
        "valid_until": typed_moment(document["valid_until"], zone),
        "trust": document["trust"],
        "metadata": editable(document["metadata"]),
    }


def change_of(document: Mapping[str, Any], sent: Mapping[str, str], *, zone: Any) -> dict[str, Any]:
    """Return what a form changes of a document. Raises WrongField."""
    shown = shown_fields(document, zone)
    touched = {name for name, value in shown.items() if not is_untouched(sent.get(name, ""), value)}
    change: dict[str, Any] = {}
    if "name" in touched:
        change["name"] = sent["name"]
    if "collection" in touched:
        change["collection"] = sent["collection"] or None
    if touched & {"everybody", "audience"}:
        change["audience"] = None if sent.get("everybody") else names_of(sent["audience"])
    if "valid_until" in touched:
        change["valid_until"] = moment_of(sent["valid_until"], zone, what="Valid until")
    if "trust" in touched:
        change["trust"] = sent["trust"]
    if "metadata" in touched:
        change["metadata"] = object_of(sent["metadata"], what="Metadata")
    return change


@router.get("/knowledge/document")
async def document(
    request: Request, visitor: VisitorDependency, document_id: DocumentId, cursor: Place = None
) -> Response:
    """Show a document."""
    return await _show(request, visitor, await read(visitor.client, document_id, cursor=cursor))


async def _show(request: Request, visitor: Visitor, page: DocumentPage) -> Response:
    frame = Frame.of(request, visitor, title=page.document["name"], section="/knowledge")
    zone = request.app.state.templates.zone
    shown = {**shown_fields(page.document, zone), **page.typed}
    return await show(request, TEMPLATE, frame, status=422 if page.problem else 200, page=page, shown=shown)


@router.post("/knowledge/document/change")
async def change(request: Request, visitor: VisitorDependency, document_id: DocumentId, form: PostedForm) -> Response:
    """Change what describes a document, if it is still as the form showed it."""
    client, zone = visitor.client, request.app.state.templates.zone
    sent = {name: field_of(form, name) for name in form}
    try:
        changed = change_of(await client.get(document_path(document_id)), sent, zone=zone)
        if changed:
            tag = sent.get("tag")
            await client.patch(document_path(document_id), changed, headers={"If-Match": tag} if tag else None)
    except (WrongField, ApiError) as error:
        problem = reason_of_save(error) if isinstance(error, ApiError) else str(error)
        typed = {name: value for name, value in sent.items() if name not in ("token", "tag")} | {
            "everybody": sent.get("everybody", "")
        }
        return await _show(request, visitor, await read(client, document_id, problem=problem, typed=typed))
    return go(address_of(document_id), done="saved")


@router.post("/knowledge/document/reindex")
async def reindex(request: Request, visitor: VisitorDependency, document_id: DocumentId, form: PostedForm) -> Response:
    """Have a document read, cut and embedded once more."""
    try:
        await visitor.client.post(f"{document_path(document_id)}/reindex")
    except ApiError as error:
        problem = reason_of(error)
        return await _show(request, visitor, await read(visitor.client, document_id, problem=problem))
    return go(address_of(document_id), done="reindexing")


@router.post("/knowledge/document/delete")
async def delete(request: Request, visitor: VisitorDependency, document_id: DocumentId, form: PostedForm) -> Response:
    """Delete a document with its passages, once that was asked."""
    if not is_confirmed(form):
        found = await visitor.client.get(document_path(document_id))
        return await ask(request, visitor, _deletion(found), section="/knowledge")
    try:
        await visitor.client.delete(document_path(document_id))
    except ApiError as error:
        if error.status == 404:
            raise
        problem = reason_of(error)
        return await _show(request, visitor, await read(visitor.client, document_id, problem=problem))
    return go("/knowledge", done="deleted")


def _deletion(found: Mapping[str, Any]) -> Confirmation:
    return Confirmation.of(
        "delete",
        one_line(found["name"]),
        at=address_of(found["document_id"]),
        sentences=(
            f"Its bytes and all of its passages ({found['chunks_done']:,}) go. Searches do not find it any more.",
            "What jobs have quoted from it stays in their logs.",
        ),
    )


@router.get("/knowledge/file")
async def file(visitor: VisitorDependency, document_id: DocumentId) -> Response:
    """Pass a document's bytes on, to be saved."""
    found = await visitor.client.get(document_path(document_id))
    name = quote(found["name"].rpartition("/")[2].encode("utf-8", "replace") or "document", safe="")
    content = visitor.client.download(f"/v1/files/{quote(document_id, safe='')}")
    return await file_of(
        content,
        disposition=f"attachment; filename*=UTF-8''{name}",
        media_type="application/octet-stream",
        headers=FILE_HEADERS,
    )
