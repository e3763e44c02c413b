"""Subjects: what insights are about."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Path, Query, Response

from wayline.contracts.memory import (
    DeleteSubject,
    GetSubject,
    ListSubjects,
    PutSubject,
    Subject,
    SubjectDeleted,
    SubjectPage,
    SubjectRef,
)
from wayline.gateway.conditions import IfUnchanged, entity_tag
from wayline.gateway.handlers.shared.changing import Changeable, tagged
from wayline.gateway.handlers.shared.dependencies import Gateway, GatewayDependency, Reader, Writer
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails, tags
from wayline.gateway.parameters import Cursor
from wayline.gateway.shapes.body import ONE_LINE
from wayline.gateway.shapes.memories import SubjectBody
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1/subjects", tags=["memory"], route_class=StrictRoute)

TypePath: TypeAlias = Annotated[str, Path(pattern=r"^[a-z][a-z0-9_-]{0,31}$", examples=["client"])]
IdPath: TypeAlias = Annotated[str, Path(min_length=1, max_length=128, pattern=ONE_LINE, examples=["acme"])]


@router.get("", responses=fails(400))
async def list_subjects(
    *,
    gateway: GatewayDependency,
    caller: Reader,
    kind: Annotated[str | None, Query(alias="type", max_length=32, pattern=r"^[a-z][a-z0-9_-]*$")] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    cursor: Cursor = None,
) -> SubjectPage:
    """Page through the subjects, by type and id."""
    asked = ListSubjects(tenant=caller.tenant, type=kind, limit=limit, cursor=cursor)
    return await gateway.bus.ask(asked, SubjectPage)


@router.get("/{kind}/{subject_id:path}", responses=tags(404))
async def get_subject(
    kind: TypePath, subject_id: IdPath, gateway: GatewayDependency, caller: Reader, response: Response
) -> Subject:
    """Return a subject with its links and the number of its insights."""
    found = await _subject(gateway, caller, SubjectRef(type=kind, id=subject_id))
    return tagged(response, found, _tag(found))


@router.put("/{kind}/{subject_id:path}", responses=tags(404, 409, 412, 413))
async def put_subject(
    *,
    kind: TypePath,
    subject_id: IdPath,
    body: SubjectBody,
    gateway: GatewayDependency,
    caller: Writer,
    condition: IfUnchanged,
    response: Response,
) -> Subject:
    """Make or change a subject; a link to a subject that is not there is a 404."""
    ref = SubjectRef(type=kind, id=subject_id)

    async with SUBJECT.changing(gateway, caller, _name(ref), condition):
        asked = PutSubject(tenant=caller.tenant, ref=ref, name=body.name, attributes=body.attributes, links=body.links)
        saved = await gateway.bus.ask(asked, Subject)
    return tagged(response, saved, _tag(saved))


@router.delete("/{kind}/{subject_id:path}", responses=fails(404, 412))
async def delete_subject(
    kind: TypePath, subject_id: IdPath, gateway: GatewayDependency, caller: Writer, condition: IfUnchanged
) -> SubjectDeleted:
    """Delete a subject with its insights, also those in which it comes second."""
    ref = SubjectRef(type=kind, id=subject_id)
    async with SUBJECT.changing(gateway, caller, _name(ref), condition):
        return await gateway.bus.ask(DeleteSubject(tenant=caller.tenant, ref=ref), SubjectDeleted)


async def _subject(gateway: Gateway, caller: Caller, ref: SubjectRef) -> Subject:
    return await gateway.bus.ask(GetSubject(tenant=caller.tenant, ref=ref), Subject)


async def _named(gateway: Gateway, caller: Caller, name: str) -> Subject:
    kind, _, subject_id = name.partition("/")
    return await _subject(gateway, caller, SubjectRef(type=kind, id=subject_id))


def _name(ref: SubjectRef) -> str:
    return f"{ref.type}/{ref.id}"


def _tag(subject: Subject) -> str:
    return entity_tag(subject.type, subject.id, subject.version)


SUBJECT = Changeable("subject", _named, _tag)
