"""Subjects: what insights are about, and how they are linked."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import PostedForm, Visitor, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages.confirm import Confirmation, ask, is_confirmed
from wayline.console.pages.form_values import WrongField, is_untouched, names_of, object_of
from wayline.console.pages.frame import Frame, go, show
from wayline.console.pages.knowledge.fact_fields import KINDS
from wayline.console.pages.refusal import reason_of, reason_of_save
from wayline.console.render.addresses import query_of
from wayline.console.render.formats import visible
from wayline.console.render.json_text import editable

router = APIRouter()
LIST_TEMPLATE = "knowledge/subjects.html"
TEMPLATE = "knowledge/subject.html"
PAGE_SIZE = 50
INSIGHTS_SHOWN = 50

TypeName: TypeAlias = Annotated[str, Query(alias="type", max_length=32)]
SubjectId: TypeAlias = Annotated[str, Query(alias="id", min_length=1, max_length=128)]


@dataclass(frozen=True, slots=True)
class SubjectPage:
    """What the page of one subject shows."""

    subject: dict[str, Any]
    tag: str
    insights: list[dict[str, Any]]
    problem: str = ""
    typed: dict[str, str] = field(default_factory=dict)

    @property
    def query(self) -> str:
        return subject_query(self.subject["type"], self.subject["id"])


def subject_query(kind: str, subject_id: str) -> str:
    """Return the part of an address that names a subject."""
    return query_of({"type": kind, "id": subject_id})


def path_of(kind: str, subject_id: str) -> str:
    """Return where the gateway has a subject."""
    return f"/v1/subjects/{quote(kind, safe='')}/{quote(subject_id, safe='')}"


def links_of(text: str) -> list[dict[str, str]]:
    """Return links that were typed one a line: `owns company/acme`. Raises WrongField."""
    links = list[dict[str, str]]()
    for line in names_of(text):
        kind, _, named = line.rpartition(" ")
        subject_type, slash, subject_id = named.partition("/")
        if not (kind.strip() and slash and subject_id):
            raise WrongField(f"Links: {line!r} is not of the form `owns company/acme`")
        links.append({"kind": kind.strip(), "type": subject_type, "id": subject_id})
    return links


def shown_subject(subject: dict[str, Any]) -> dict[str, str]:
    """Return what the form shows of a subject, by field."""
    links = (f"{link['kind']} {link['type']}/{link['id']}" for link in subject["links"])
    return {"name": subject["name"], "attributes": editable(subject["attributes"]), "links": "\n".join(links)}


def saved_subject(subject: dict[str, Any], typed: dict[str, str]) -> dict[str, Any]:
    """Return a subject as a form has it saved: what came back as it was shown stays as it is. Raises WrongField."""
    shown = {name: visible(value) for name, value in shown_subject(subject).items()}
    untouched = {name for name, value in typed.items() if is_untouched(value, shown[name])}
    attributes = object_of(typed["attributes"], what="Attributes")
    return {
        "name": subject["name"] if "name" in untouched else typed["name"],
        "attributes": subject["attributes"] if "attributes" in untouched else attributes,
        "links": subject["links"] if "links" in untouched else links_of(typed["links"]),
    }


async def read(
    client: Client, kind: str, subject_id: str, *, problem: str = "", typed: dict[str, str] | None = None
) -> SubjectPage:
    """Ask the API for a subject and for the most important that is known of it."""
    about = {"subject_type": kind, "subject_id": subject_id}
    found, insights = await asyncio.gather(
        client.tagged(path_of(kind, subject_id)), client.get("/v1/insights", limit=INSIGHTS_SHOWN, **about)
    )
    return SubjectPage(found.body, found.tag or "", insights["facts"], problem, typed or {})


@router.get("/knowledge/subjects")
async def subjects(
    request: Request, visitor: VisitorDependency, kind: TypeName = "", cursor: Annotated[str | None, Query()] = None
) -> Response:
    """Show the subjects."""
    return await _show_list(request, visitor, kind, cursor=cursor)


async def _show_list(
    request: Request,
    visitor: Visitor,
    kind: str = "",
    *,
    cursor: str | None = None,
    problem: str = "",
    typed: dict[str, str] | None = None,
) -> Response:
    frame = Frame.of(request, visitor, title="Subjects", section="/knowledge")
    try:
        page = await visitor.client.get("/v1/subjects", type=kind or None, limit=PAGE_SIZE, cursor=cursor)
    except ApiError as error:
        page, problem = {"subjects": [], "next_cursor": None}, problem or reason_of(error)
    status = 422 if problem else 200
    return await show(
        request, LIST_TEMPLATE, frame, status=status, page=page, kind=kind, problem=problem, typed=typed or {}
    )


@router.post("/knowledge/subjects")
async def add(request: Request, visitor: VisitorDependency, form: PostedForm) -> Response:
    """Make a subject that is not there yet."""
    kind, subject_id = field_of(form, "type"), field_of(form, "id")
    typed = {"type": kind, "id": subject_id, "name": field_of(form, "name")}
    try:
        await visitor.client.put(path_of(kind, subject_id), {"name": typed["name"]}, headers={"If-None-Match": "*"})
    except ApiError as error:
        return await _show_list(request, visitor, problem=reason_of(error), typed=typed)
    return go(f"/knowledge/subject?{subject_query(kind, subject_id)}", done="saved")


@router.get("/knowledge/subject")
async def subject(request: Request, visitor: VisitorDependency, kind: TypeName, subject_id: SubjectId) -> Response:
    """Show a subject, what is known of it and how it is linked."""
    return await _show(request, visitor, await read(visitor.client, kind, subject_id))


async def _show(request: Request, visitor: Visitor, page: SubjectPage) -> Response:
    frame = Frame.of(request, visitor, title=page.subject["name"] or page.subject["id"], section="/knowledge")
    shown = {**shown_subject(page.subject), **page.typed}
    status = 422 if page.problem else 200
    return await show(request, TEMPLATE, frame, status=status, page=page, shown=shown, kind=KINDS["insights"])


@router.post("/knowledge/subject/change")
async def change(
    request: Request, visitor: VisitorDependency, kind: TypeName, subject_id: SubjectId, form: PostedForm
) -> Response:
    """Save a subject, if it is still as the form showed it."""
    client = visitor.client
    typed = {name: field_of(form, name) for name in ("name", "attributes", "links")}
    try:
        body = saved_subject(await client.get(path_of(kind, subject_id)), typed)
        tag = field_of(form, "tag")
        await client.put(path_of(kind, subject_id), body, headers={"If-Match": tag} if tag else None)
    except (WrongField, ApiError) as error:
        problem = reason_of_save(error) if isinstance(error, ApiError) else str(error)
        return await _show(request, visitor, await read(client, kind, subject_id, problem=problem, typed=typed))
    return go(f"/knowledge/subject?{subject_query(kind, subject_id)}", done="saved")


@router.post("/knowledge/subject/delete")
async def delete(
    request: Request, visitor: VisitorDependency, kind: TypeName, subject_id: SubjectId, form: PostedForm
) -> Response:
    """Delete a subject with its insights, once that was asked."""
    if not is_confirmed(form):
        found = await visitor.client.get(path_of(kind, subject_id))
        at = f"/knowledge/subject?{subject_query(kind, subject_id)}"
        lost = (f"Its insights ({found['insights']:,}) go with it, also those in which it comes second.",)
        question = Confirmation.of("delete", f"{kind}/{subject_id}", at=at, sentences=lost)
        return await ask(request, visitor, question, section="/knowledge")
    await visitor.client.delete(path_of(kind, subject_id))
    return go("/knowledge/subjects", done="deleted")
