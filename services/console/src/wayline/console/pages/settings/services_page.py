"""Services: the running processes of the installation, whether each is ready, and which take no more work."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Path, Request
from fastapi.responses import HTMLResponse, Response

from wayline.client import ApiError
from wayline.console.access.visitor import PostedForm, Visitor, VisitorDependency
from wayline.console.pages import confirm
from wayline.console.pages.frame import Frame, go, show
from wayline.console.pages.refusal import reason_of
from wayline.console.pages.settings.settings_page import VIEWS

router = APIRouter(prefix="/settings/services")
TEMPLATE = "settings/services.html"
ADDRESS: Final = "/settings/services"
DRAINED: Final = "work"
"""What a drained process says that it lacks."""
ReplicaName = Annotated[str, Path(max_length=300)]


@dataclass(frozen=True, slots=True)
class ServicesPage:
    """What the page shows."""

    replicas: list[dict[str, Any]] | None
    """None: the key may not see them."""
    unanswered: tuple[str, ...] = ()
    """Services of which no process answered."""
    problem: str = ""
    views: Any = VIEWS
    view: str = "/services"

    def is_last(self, name: str) -> bool:
        """Return whether no other process of its service is ready."""
        replicas = self.replicas or []
        service = next((one["service"] for one in replicas if one["name"] == name), None)
        return not any(one["ready"] for one in replicas if one["service"] == service and one["name"] != name)


def wrong_with(replica: dict[str, Any]) -> list[str]:
    """Return what a process needs and does not have; that a drained one takes no work is said already."""
    said = {DRAINED} if replica["drained_at"] else set[str]()
    return [f"{need}: {state}" for need, state in replica["needs"].items() if state != "ok" and need not in said]


async def read(visitor: Visitor) -> ServicesPage:
    """Ask the API for the running processes."""
    if not visitor.may("operator"):
        return ServicesPage(None)
    found = await visitor.client.get("/v1/replicas")
    return ServicesPage(found["replicas"], tuple(found["unanswered"]))


async def _answer(request: Request, visitor: Visitor, page: ServicesPage) -> HTMLResponse:
    frame = Frame.of(request, visitor, title="Services", section="/settings")
    status = 422 if page.problem else 200
    return await show(request, TEMPLATE, frame, status=status, page=page, wrong_with=wrong_with)


@router.get("")
async def services(request: Request, visitor: VisitorDependency) -> HTMLResponse:
    """Show the running processes."""
    return await _answer(request, visitor, await read(visitor))


@router.post("/{name}/drain")
async def drain(request: Request, visitor: VisitorDependency, form: PostedForm, name: ReplicaName) -> Response:
    """Ask, and have one process take no more work."""
    if confirm.is_confirmed(form):
        return await _tell(request, visitor, name, "drain")
    sentences = ["It finishes what it has and takes no more work, until it is ended or told to take it again."]
    if (await read(visitor)).is_last(name):
        sentences.append("No other process of its service is ready: work for it waits.")
    question = confirm.Confirmation.of(
        "drain",
        name,
        at=f"{ADDRESS}/{quote(name, safe='')}",
        back=ADDRESS,
        sentences=tuple(sentences),
        scope="operator",
    )
    return await confirm.ask(request, visitor, question, section="/settings")


@router.post("/{name}/undrain")
async def undrain(request: Request, visitor: VisitorDependency, form: PostedForm, name: ReplicaName) -> Response:
    """Have a drained process take work again."""
    return await _tell(request, visitor, name, "undrain")


async def _tell(request: Request, visitor: Visitor, name: str, act: str) -> Response:
    try:
        await visitor.client.post(f"/v1/replicas/{quote(name, safe='')}/{act}")
    except ApiError as error:
        page = replace(await read(visitor), problem=reason_of(error))
        return await _answer(request, visitor, page)
    return go(ADDRESS, done=f"{act}ed")
