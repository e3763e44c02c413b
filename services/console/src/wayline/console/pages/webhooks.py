"""Webhooks: where a tenant is told what happens. Made, changed, rotated, enabled, disabled and deleted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, TypeAlias

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from starlette.datastructures import FormData

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import PostedForm, Visitor, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages.confirm import Confirmation, ask, is_confirmed
from wayline.console.pages.form_values import names_of
from wayline.console.pages.frame import Frame, go, show
from wayline.console.pages.refusal import reason_of, reason_of_save

router = APIRouter()
LIST_TEMPLATE = "webhooks/list.html"
TEMPLATE = "webhooks/one.html"
DELIVERIES_SHOWN = 20
EVENTS: Final = (
    "job.completed", "job.failed", "job.cancelled", "job.parked", "approval.requested", "budget.alert",
    "dead_letter.created", "tool.changed",
)  # fmt: skip
NEW_WEBHOOK: Final = {
    "name": "", "url": "", "events": EVENTS, "agents": (), "tags": (), "description": "", "content": False,
    "enabled": True,
}  # fmt: skip
"""The fields of a new webhook, before anything is typed."""
STATES: Final = ("pending", "delivered", "failed")
OF_JOBS: Final = "jobs"
"""The name under which the addresses are kept that jobs name themselves."""

NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
Name: TypeAlias = Annotated[str, Path(pattern=f"^{NAME.pattern}$")]


@dataclass(frozen=True, slots=True)
class WebhookPage:
    """What the page of one webhook shows."""

    webhook: dict[str, Any]
    tag: str
    deliveries: list[dict[str, Any]]
    next_cursor: str | None = None
    state: str = ""
    problem: str = ""
    secret: str | None = None
    """A new one, shown this once."""
    tested: dict[str, Any] | None = None
    """The delivery of a test event, with what was answered."""
    typed: dict[str, Any] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"/webhooks/{self.webhook['name']}"

    @property
    def is_of_jobs(self) -> bool:
        return self.webhook["name"] == OF_JOBS


def may_keep(me: Mapping[str, Any]) -> bool:
    """Return whether a key may read and change webhooks: they tell of all users of the tenant."""
    return bool({"webhooks", "admin"} & set(me["scopes"])) and me["user_id"] is None


def config_of(form: FormData) -> dict[str, Any]:
    """Return the webhook that a form describes."""
    return {
        "url": field_of(form, "url"),
        "events": [event for event in EVENTS if event in form.getlist("events")],
        "agents": names_of(field_of(form, "agents")),
        "tags": names_of(field_of(form, "tags")),
        "description": field_of(form, "description"),
        "content": "content" in form,
        "enabled": "enabled" in form,
    }


async def read(client: Client, name: str, *, state: str = "", cursor: str | None = None, **more: Any) -> WebhookPage:
    """Ask the API for a webhook and what was sent there last."""
    path = f"/v1/webhooks/{name}"
    found = await client.tagged(path)
    page = await client.webhook_deliveries(name, status=state or None, limit=DELIVERIES_SHOWN, cursor=cursor)
    return WebhookPage(found.body, found.tag or "", page["deliveries"], page["next_cursor"], state, **more)


@router.get("/webhooks")
async def webhooks(request: Request, visitor: VisitorDependency) -> Response:
    """Show the webhooks, and a form for a new one."""
    return await _show_list(request, visitor)


async def _show_list(
    request: Request, visitor: Visitor, *, problem: str = "", typed: Mapping[str, Any] | None = None
) -> Response:
    frame = Frame.of(request, visitor, title="Webhooks", section="/webhooks")
    may = may_keep(visitor.me)
    found = (await visitor.client.whole("/v1/webhooks", "webhooks"))["webhooks"] if may else []
    shown = {**NEW_WEBHOOK, **(typed or {})}
    values = {"webhooks": found, "problem": problem, "typed": shown, "events": EVENTS, "may": may}
    return await show(request, LIST_TEMPLATE, frame, status=422 if problem else 200, **values)


@router.post("/webhooks")
async def add(request: Request, visitor: VisitorDependency, form: PostedForm) -> Response:
    """Make a webhook, and show its secret this once."""
    name, config = field_of(form, "name"), config_of(form)
    if not NAME.fullmatch(name):
        return await _show_list(
            request,
            visitor,
            problem="Its name has small letters, digits, _ and - alone.",
            typed={"name": name} | config,
        )
    try:
        made = await visitor.client.put_webhook(name, config, create=True)
    except ApiError as error:
        return await _show_list(request, visitor, problem=reason_of(error), typed={"name": name} | config)
    return await _show(request, visitor, await read(visitor.client, name, secret=made["secret"]))


@router.get("/webhooks/{name}")
async def webhook(
    request: Request,
    visitor: VisitorDependency,
    name: Name,
    state: Annotated[str, Query(pattern="^(pending|delivered|failed|)$")] = "",
    cursor: Annotated[str | None, Query()] = None,
) -> Response:
    """Show a webhook and what was sent there."""
    return await _show(request, visitor, await read(visitor.client, name, state=state, cursor=cursor))


async def _show(request: Request, visitor: Visitor, page: WebhookPage) -> Response:
    frame = Frame.of(request, visitor, title=f"Webhook {page.webhook['name']}", section="/webhooks")
    shown = {**page.webhook, **page.typed}
    values = {"shown": shown, "events": EVENTS, "states": STATES, "may": may_keep(visitor.me)}
    return await show(request, TEMPLATE, frame, status=422 if page.problem else 200, page=page, **values)


@router.post("/webhooks/{name}/change")
async def change(request: Request, visitor: VisitorDependency, name: Name, form: PostedForm) -> Response:
    """Save a webhook, if it is still as the form showed it; one that its failures disabled is enabled again."""
    config, tag = config_of(form), field_of(form, "tag")
    try:
        headers = {"If-Match": tag} if tag else None
        await visitor.client.put(f"/v1/webhooks/{name}", config, headers=headers)
    except ApiError as error:
        page = await read(visitor.client, name, problem=reason_of_save(error), typed=config)
        return await _show(request, visitor, page)
    return go(f"/webhooks/{name}", done="saved")


@router.post("/webhooks/{name}/rotate")
async def rotate(request: Request, visitor: VisitorDependency, name: Name, form: PostedForm) -> Response:
    """Give a webhook a new secret, once that was asked, and show it this once."""
    if not is_confirmed(form):
        sentences = (
            "The new secret is shown once, on the page that comes next.",
            "For a day both secrets sign, so that receivers can be told the new one.",
        )
        at = f"/webhooks/{name}"
        question = Confirmation(f"Give {name} a new secret?", "Give it", f"{at}/rotate", at, sentences)
        return await _ask(request, visitor, question)
    try:
        made = await visitor.client.post(f"/v1/webhooks/{name}/rotate")
    except ApiError as error:
        return await _show(request, visitor, await read(visitor.client, name, problem=reason_of(error)))
    return await _show(request, visitor, await read(visitor.client, name, secret=made["secret"]))


@router.post("/webhooks/{name}/test")
async def test(request: Request, visitor: VisitorDependency, name: Name, form: PostedForm) -> Response:
    """Have a test event sent, and show what was answered."""
    try:
        tested = await visitor.client.test_webhook(name)
    except ApiError as error:
        return await _show(request, visitor, await read(visitor.client, name, problem=reason_of(error)))
    return await _show(request, visitor, await read(visitor.client, name, tested=tested))


@router.post("/webhooks/{name}/redeliver")
async def redeliver(request: Request, visitor: VisitorDependency, name: Name, form: PostedForm) -> Response:
    """Have one delivery sent again, or all that were given up."""
    delivery_id = field_of(form, "delivery_id")
    try:
        await visitor.client.redeliver(name, delivery_id or None)
    except ApiError as error:
        return await _show(request, visitor, await read(visitor.client, name, problem=reason_of(error)))
    at = f"/webhooks/{name}"
    return go(f"{at}/deliveries/{delivery_id}" if delivery_id else at, done="redelivered")


@router.post("/webhooks/{name}/delete")
async def delete(request: Request, visitor: VisitorDependency, name: Name, form: PostedForm) -> Response:
    """Delete a webhook, once that was asked."""
    if not is_confirmed(form):
        sentences = ("Its secrets go, and its deliveries with what was answered.", "What is being sent now is sent.")
        question = Confirmation.of("delete", f"the webhook {name}", at=f"/webhooks/{name}", sentences=sentences)
        return await _ask(request, visitor, question)
    await visitor.client.delete(f"/v1/webhooks/{name}")
    return go("/webhooks", done="deleted")


async def _ask(request: Request, visitor: Visitor, question: Confirmation) -> Response:
    scope = "webhooks" if "webhooks" in visitor.me["scopes"] else "admin"
    return await ask(request, visitor, replace(question, scope=scope), section="/webhooks")
