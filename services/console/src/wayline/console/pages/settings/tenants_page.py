"""Tenants and their quotas: how many requests and jobs each may send. Operators change them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse, Response

from wayline.client import ApiError
from wayline.console.access.visitor import PostedForm, Visitor, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages import confirm
from wayline.console.pages.frame import Frame, go, show
from wayline.console.pages.refusal import reason_of
from wayline.console.pages.settings.settings_page import VIEWS

router = APIRouter(prefix="/settings/tenants")
TEMPLATE = "settings/tenants.html"
PAGE_SIZE = 50
TENANT_PATTERN: Final = r"^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$"
WHOSE: Final = (("tenant", "All its keys together"), ("key", "Each key without its own"), ("user", "Each user"))
METERS: Final = (("requests", "requests a minute"), ("jobs", "new jobs a minute"))
TenantName = Annotated[str, Path(pattern=TENANT_PATTERN)]


@dataclass(frozen=True, slots=True)
class TenantsPage:
    """What the page shows."""

    tenants: list[dict[str, Any]]
    chosen: str
    limits: dict[str, Any]
    tag: str
    is_operator: bool
    next_cursor: str | None = None
    problem: str = ""
    typed: Mapping[str, str] = field(default_factory=dict)
    """What a form sent that was refused."""
    views: Any = VIEWS
    view: str = "/tenants"

    def own(self, whose: str, meter: str) -> str:
        """Return the rate that was typed, or saved for the tenant; empty: none was."""
        if self.typed:
            return self.typed.get(f"{whose}.{meter}", "")
        saved = ((self.limits["limits"] or {}).get(whose) or {}).get(meter) or {}
        return str(saved.get("per_minute") or "")

    def holds(self, whose: str, meter: str) -> str:
        """Return the rate that holds, in words."""
        rate = self.limits[f"{whose}_rates"][meter]
        return "as many as they come" if rate is None else f"{rate['per_minute']:,}, {rate['burst']:,} at once"


async def read(visitor: Visitor, chosen: str | None, cursor: str | None = None) -> TenantsPage:
    """Ask the API for tenants and for the limits of one."""
    name = chosen or visitor.me["tenant"]
    is_operator = visitor.may("operator")

    async def listed() -> dict[str, Any]:
        if is_operator:
            return await visitor.client.get("/v1/tenants", limit=PAGE_SIZE, cursor=cursor)
        return {"tenants": [await visitor.client.get(f"/v1/tenants/{name}")], "next_cursor": None}

    page, limits = await asyncio.gather(listed(), visitor.client.tagged(f"/v1/tenants/{name}/limits"))
    return TenantsPage(page["tenants"], name, limits.body, limits.tag or "", is_operator, page["next_cursor"])


def limits_of(get: Callable[[str], str], saved: dict[str, Any] | None) -> dict[str, Any]:
    """Return the limits that a form says; the burst of a rate that stays is kept. Raises ValueError."""
    limits: dict[str, Any] = {}
    for whose, _ in WHOSE:
        for meter, title in METERS:
            text = get(f"{whose}.{meter}")
            if not text:
                continue
            if not (text.isascii() and text.isdigit()):
                raise ValueError(f"{title}: {text!r} is not a whole number")
            before = ((saved or {}).get(whose) or {}).get(meter) or {}
            burst = before.get("burst") if before.get("per_minute") == int(text) else None
            limits.setdefault(whose, {})[meter] = {"per_minute": int(text), "burst": burst}
    return limits


async def _answer(request: Request, visitor: Visitor, page: TenantsPage) -> HTMLResponse:
    frame = Frame.of(request, visitor, title="Tenants and quotas", section="/settings")
    status = 422 if page.problem else 200
    return await show(request, TEMPLATE, frame, status=status, page=page, whose=WHOSE, meters=METERS)


@router.get("")
async def tenants(
    request: Request,
    visitor: VisitorDependency,
    tenant: Annotated[str | None, Query(pattern=TENANT_PATTERN)] = None,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
) -> HTMLResponse:
    """Show tenants and the limits of one."""
    return await _answer(request, visitor, await read(visitor, tenant, cursor))


async def _act(
    request: Request,
    visitor: Visitor,
    tenant: str,
    act: Callable[[], Any],
    *,
    done: str,
    is_new: bool = False,
    typed: Mapping[str, str] | None = None,
) -> Response:
    """Do what a form asks for, and lead back; a refusal is shown there, beside what was typed."""
    try:
        await act()
    except (ApiError, ValueError) as error:
        problem = reason_of(error) if isinstance(error, ApiError) else str(error)
        if isinstance(error, ApiError) and error.status == 412:
            problem = "The limits were changed after this form was opened: look at them, and save again."
        page = await read(visitor, None if is_new else tenant)
        return await _answer(request, visitor, replace(page, problem=problem, typed=typed or {}))
    return go(f"/settings/tenants?tenant={tenant}", done=done)


@router.post("")
async def create(request: Request, visitor: VisitorDependency, form: PostedForm) -> Response:
    """Create a tenant with the bundled agents."""
    name = field_of(form, "tenant")
    body = {"tenant": name}
    return await _act(
        request, visitor, name, lambda: visitor.client.post("/v1/tenants", body), done="saved", is_new=True
    )


@router.post("/{tenant}/limits")
async def put_limits(request: Request, visitor: VisitorDependency, form: PostedForm, tenant: TenantName) -> Response:
    """Set the limits of a tenant; none at all: those of the installation hold again."""
    path = f"/v1/tenants/{tenant}/limits"
    typed = {f"{whose}.{meter}": field_of(form, f"{whose}.{meter}") for whose, _ in WHOSE for meter, _ in METERS}

    async def act() -> None:
        saved = (await visitor.client.get(path))["limits"]
        limits = limits_of(typed.__getitem__, saved)
        headers = {"If-Match": field_of(form, "tag")}
        if limits or saved is None:
            # A tenant without limits of its own has nothing that a tag could name.
            await visitor.client.put(path, limits, headers=headers if saved else {"If-None-Match": "*"})
        else:
            await visitor.client.delete(path, headers=headers)

    return await _act(request, visitor, tenant, act, done="saved", typed=typed)


@router.post("/{tenant}/disable")
async def disable(request: Request, visitor: VisitorDependency, form: PostedForm, tenant: TenantName) -> Response:
    """Ask, and refuse a tenant's keys and new jobs."""
    if not confirm.is_confirmed(form):
        question = confirm.Confirmation.of(
            "disable",
            f"the tenant {tenant}",
            at=f"/settings/tenants/{tenant}",
            back=f"/settings/tenants?tenant={tenant}",
            sentences=("Its keys and its new jobs are refused until it is enabled; jobs that run go on.",),
            fields=confirm.fields_of(form),
            scope="operator",
        )
        return await confirm.ask(request, visitor, question, section="/settings")
    body = {"reason": field_of(form, "reason")}
    path = f"/v1/tenants/{tenant}/disable"
    return await _act(request, visitor, tenant, lambda: visitor.client.post(path, body), done="disabled")


@router.post("/{tenant}/enable")
async def enable(request: Request, visitor: VisitorDependency, form: PostedForm, tenant: TenantName) -> Response:
    """Take a tenant's keys and jobs again."""
    path = f"/v1/tenants/{tenant}/enable"
    return await _act(request, visitor, tenant, lambda: visitor.client.post(path), done="saved")
