"""Adding documents: files, folders, addresses or text, each with its own progress and its own error."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Annotated, Any, Final, TypeAlias

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse, Response
from starlette.datastructures import FormData, UploadFile

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.client.documents import add_document, document_path
from wayline.client.uploads import document_id_of
from wayline.console.access.visitor import Visitor, VisitorDependency, require_token
from wayline.console.access.visitor import field as field_of
from wayline.console.pages.form_values import WrongField, moment_of, names_of, object_of
from wayline.console.pages.frame import Frame, go, show, show_region
from wayline.console.pages.refusal import reason_of
from wayline.console.render.addresses import query_of

router = APIRouter()
sending = APIRouter()
"""Apart, because documents may be larger than any other form."""
TEMPLATE = "knowledge/upload.html"
ADDRESS: Final = "/knowledge/upload"
FILES_MAX = 200
"""Of one form; with scripts each file is sent by itself."""
FIELDS_MAX = 16
TEXT_MAX_BYTES = 1024 * 1024
FOLLOWED_MAX = 40
"""Documents whose progress one page shows."""
AT_ONCE = 4
NAME_MAX_CHARS = 500
TYPED: Final = ("urls", "name", "text", "collection", "audience", "valid_until", "trust", "metadata")
"""What is typed into the form."""

Ids: TypeAlias = Annotated[list[str], Query(alias="id", max_length=FOLLOWED_MAX)]


@dataclass(frozen=True, slots=True)
class Refused:
    """What was not taken, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Upload:
    """What the page shows: the form, and how far the documents are that were sent from it."""

    documents: list[dict[str, Any]]
    refused: list[Refused] = field(default_factory=list)
    typed: dict[str, str] = field(default_factory=lambda: dict.fromkeys(TYPED, ""))

    @property
    def is_busy(self) -> bool:
        """Return whether one of the documents is still being read."""
        return any(found["status"] in ("queued", "indexing") for found in self.documents)

    @property
    def region(self) -> str:
        ids = [("id", found["document_id"]) for found in self.documents]
        return f"{ADDRESS}/region?{query_of(ids)}"


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A document that a form sends."""

    name: str
    body: dict[str, Any]
    file: UploadFile | None = None


async def read(client: Client, ids: list[str]) -> list[dict[str, Any]]:
    """Ask the API how far documents are; one that was deleted meanwhile is left out."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(document_id: str) -> dict[str, Any] | None:
        async with gate:
            try:
                return await client.get(document_path(document_id))
            except ApiError as error:
                if error.status not in (404, 422):
                    raise
                return None

    found = await asyncio.gather(*(one(document_id) for document_id in dict.fromkeys(ids)))
    return [document for document in found if document is not None]


@router.get(ADDRESS)
async def upload_form(request: Request, visitor: VisitorDependency, ids: Ids = []) -> Response:  # noqa: B006
    """Show the form, and how far what was sent is."""
    return await _show(request, visitor, Upload(await read(visitor.client, ids)))


@router.get(f"{ADDRESS}/region")
async def progress_region(request: Request, visitor: VisitorDependency, ids: Ids = []) -> Response:  # noqa: B006
    """Answer with how far documents are."""
    frame = Frame.of(request, visitor, title="Add documents", section="/knowledge")
    return await show_region(request, TEMPLATE, "progress", frame, page=Upload(await read(visitor.client, ids)))


async def _show(request: Request, visitor: Visitor, page: Upload) -> Response:
    frame = Frame.of(request, visitor, title="Add documents", section="/knowledge")
    status = 422 if page.refused else 200
    most = request.app.state.document_max_bytes
    return await show(request, TEMPLATE, frame, status=status, page=page, document_max_bytes=most)


async def _sent_documents(request: Request, visitor: VisitorDependency) -> AsyncIterator[FormData]:
    """Yield a form with files, which are on disk and not in memory. Raises ForeignForm."""
    async with request.form(max_files=FILES_MAX, max_fields=FIELDS_MAX, max_part_size=TEXT_MAX_BYTES) as form:
        require_token(form, visitor.session)
        yield form


@sending.post(ADDRESS)
async def upload(
    request: Request, visitor: VisitorDependency, form: Annotated[FormData, Depends(_sent_documents)]
) -> Response:
    """Hand documents to the gateway, each by itself, and say what became of each."""
    typed = {name: field_of(form, name) for name in TYPED}
    try:
        said = described(typed, zone=request.app.state.templates.zone)
        documents = new_documents(form, said, of_user=visitor.me["user_id"] is not None)
    except WrongField as error:
        documents, refused, sent = [], [Refused("The form", str(error))], []
    else:
        refused, sent = await _send(visitor.client, documents)
        if not documents:
            refused = [Refused("The form", "choose files, or give an address or a text")]
    if request.headers.get("accept") == "application/json":
        return JSONResponse({"ids": sent, "refused": [f"{one.name}: {one.reason}" for one in refused]})
    if refused:
        page = Upload(await read(visitor.client, sent[-FOLLOWED_MAX:]), refused, typed)
        return await _show(request, visitor, page)
    return go(f"{ADDRESS}?{query_of([('id', one) for one in sent[-FOLLOWED_MAX:]])}")


def described(typed: Mapping[str, str], *, zone: Any) -> dict[str, Any]:
    """Return what is said of all documents of a form. Raises WrongField."""
    audience = names_of(typed.get("audience", ""))
    fields = {
        "collection": typed.get("collection"),
        "audience": audience,
        "valid_until": moment_of(typed.get("valid_until", ""), zone, what="Valid until"),
        "trust": typed.get("trust"),
        "metadata": object_of(typed.get("metadata", ""), what="Metadata"),
    }
    return {name: value for name, value in fields.items() if value}


def new_documents(form: FormData, said: Mapping[str, Any], *, of_user: bool = False) -> list[NewDocument]:
    """Return the documents of a form: its files, its addresses and its text. Raises WrongField.

    `of_user`: what others have added under the same name may be hidden from this user, and is not replaced.
    """
    found = list[NewDocument]()

    def named(name: str) -> dict[str, Any]:
        return {**said, "name": name} | ({} if of_user else {"document_id": document_id_of(name)})

    for file in form.getlist("file"):
        # A field without a file is sent all the same, as one without a name.
        if isinstance(file, UploadFile) and file.filename:
            name = str(PurePosixPath(file.filename))[-NAME_MAX_CHARS:]
            found.append(NewDocument(name, named(name), file))
    for url in names_of(field_of(form, "urls")):
        found.append(NewDocument(url, {**said, "url": url}))
    text, name = field_of(form, "text"), field_of(form, "name")
    if text:
        if not name:
            raise WrongField("Name of the text: citations need one")
        found.append(NewDocument(name, named(name) | {"text": text}))
    return found


async def _send(client: Client, documents: list[NewDocument]) -> tuple[list[Refused], list[str]]:
    """Send documents, a few at a time; return those that were refused, and the ids of the others in their order."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(document: NewDocument) -> Refused | str:
        async with gate:
            try:
                return (await add_document(client, document.body, file=_file_of(document)))["document_id"]
            except ApiError as error:
                return Refused(document.name, reason_of(error))

    ended = await asyncio.gather(*(one(document) for document in documents))
    return [end for end in ended if isinstance(end, Refused)], [end for end in ended if isinstance(end, str)]


def _file_of(document: NewDocument) -> tuple[str, Any, str] | None:
    file = document.file
    return None if file is None else (document.name, file.file, file.content_type or "application/octet-stream")
