"""Forgetting a user or a subject everywhere: what goes, and the receipt."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, TypeAlias

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import PostedForm, Visitor, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages.confirm import Confirmation, ask, is_confirmed
from wayline.console.pages.frame import Frame, go, show, show_region
from wayline.console.pages.job_log import forget_logs
from wayline.console.pages.refusal import reason_of
from wayline.console.render.formats import many

router = APIRouter()
TEMPLATE = "knowledge/forget.html"
RECEIPT_TEMPLATE = "knowledge/receipt.html"
COUNTED_MAX = 200
"""Of sessions and memories, to say what goes; the receipt counts all of them."""
GONE: Final = (
    "Their jobs go with logs, answers, traces, feedback and large fields; jobs that run are cancelled first.",
    "What is remembered of them goes, with the documents that were sent in their name.",
    "Their sessions, schedules, logins and deliveries of webhooks go.",
    "What was spent stays in the ledger and in budgets, without a name.",
    "It goes on whatever is restarted, and nothing brings it back.",
)

ForgetId: TypeAlias = Annotated[str, Path(pattern=r"^forget_[A-Za-z0-9_-]{1,64}$")]


@dataclass(frozen=True, slots=True)
class Named:
    """Whom or what a form names."""

    user: str = ""
    type: str = ""
    subject: str = ""

    @property
    def body(self) -> dict[str, Any]:
        """Return the request that has it forgotten."""
        if self.user:
            return {"user_id": self.user}
        return {"subject": {"type": self.type, "id": self.subject}}

    @property
    def title(self) -> str:
        return f"the user {self.user}" if self.user else f"{self.type}/{self.subject}"


@dataclass(frozen=True, slots=True)
class Receipt:
    """How far a request is, and what it erased."""

    forgetting: dict[str, Any]
    rows: list[tuple[str, str, int, int]] = field(default_factory=list)
    """Store, kind, erased, kept."""

    @property
    def is_done(self) -> bool:
        return self.forgetting["step"] == "done"


def receipt_of(forgetting: dict[str, Any]) -> Receipt:
    """Return a receipt as the rows of a table."""
    rows = [
        (store["store"], kind, store["counts"].get(kind, 0), store["kept"].get(kind, 0))
        for store in forgetting["receipt"]
        for kind in sorted({*store["counts"], *store["kept"]})
    ]
    return Receipt(forgetting, rows)


def may_forget(me: dict[str, Any], user: str) -> bool:
    """Return whether a key may forget: an administrator's, or that of the user who is forgotten."""
    return "admin" in me["scopes"] or ("write" in me["scopes"] and bool(user) and me["user_id"] == user)


@router.get("/knowledge/forget")
async def form(
    request: Request,
    visitor: VisitorDependency,
    user: Annotated[str, Query(max_length=128)] = "",
    kind: Annotated[str, Query(alias="type", max_length=32)] = "",
    subject: Annotated[str, Query(max_length=128)] = "",
) -> Response:
    """Show the form that names who is forgotten."""
    own = visitor.me["user_id"] or ""
    return await _show(request, visitor, Named(user or own, kind, subject))


async def _show(request: Request, visitor: Visitor, named: Named, *, problem: str = "") -> Response:
    frame = Frame.of(request, visitor, title="Forget", section="/knowledge")
    may = may_forget(visitor.me, named.user) or bool(visitor.me["user_id"])
    return await show(
        request, TEMPLATE, frame, status=422 if problem else 200, named=named, problem=problem, gone=GONE, may=may
    )


async def counted(client: Client, named: Named) -> tuple[str, ...]:
    """Return what is there now, as far as a list tells: people see the size of what they ask for."""
    if not named.user:
        found = await client.get("/v1/insights", subject_type=named.type, subject_id=named.subject, limit=COUNTED_MAX)
        return (_so_many(len(found["facts"]), "insight"),)
    jobs, sessions, memories = await asyncio.gather(
        client.get("/v1/jobs", user_id=named.user, limit=1, facets=True),
        client.get("/v1/sessions", user_id=named.user, limit=COUNTED_MAX),
        client.get("/v1/memories", user_id=named.user, limit=COUNTED_MAX),
    )
    return (
        many(jobs["facets"]["jobs"], "job"),
        _so_many(len(sessions["sessions"]), "session"),
        _so_many(len(memories["facts"]), "memory", "memories"),
    )


def _so_many(listed: int, one: str, several: str = "") -> str:
    return f"{many(listed, one, several)}{' or more' if listed >= COUNTED_MAX else ''}"


@router.post("/knowledge/forget")
async def forget(request: Request, visitor: VisitorDependency, sent: PostedForm) -> Response:
    """Say what goes; once that is confirmed, have it forgotten and lead to the receipt."""
    by_user = field_of(sent, "what") != "subject"
    named = (
        Named(user=field_of(sent, "user")) if by_user else Named("", field_of(sent, "type"), field_of(sent, "subject"))
    )
    if not (named.user or (named.type and named.subject)):
        return await _show(request, visitor, named, problem="Name a user, or a subject by its type and its id.")
    try:
        if not is_confirmed(sent):
            return await ask(request, visitor, await _question(visitor, named), section="/knowledge")
        begun = await visitor.client.post("/v1/forget", named.body)
        forget_logs()
    except ApiError as error:
        return await _show(request, visitor, named, problem=reason_of(error))
    return go(f"/knowledge/forget/{begun['forget_id']}")


async def _question(visitor: Visitor, named: Named) -> Confirmation:
    fields = [(name, getattr(named, name)) for name in ("user", "type", "subject")]
    gone = GONE if named.user else ("What is remembered of it goes, its links and its name too.", GONE[-1])
    return Confirmation(
        f"Forget {named.title}?",
        "Forget for good",
        "/knowledge/forget",
        "/knowledge/forget",
        gone,
        await counted(visitor.client, named),
        (("what", "user" if named.user else "subject"), *fields),
        scope="write" if may_forget(visitor.me, named.user) else "admin",
    )


@router.get("/knowledge/receipt")
async def find_receipt(
    forget_id: Annotated[str, Query(alias="id", pattern=r"^\s*forget_[A-Za-z0-9_-]{1,64}\s*$")],
) -> Response:
    """Lead to a receipt whose id was typed."""
    return go(f"/knowledge/forget/{forget_id.strip()}")


@router.get("/knowledge/forget/{forget_id}")
async def receipt(request: Request, visitor: VisitorDependency, forget_id: ForgetId) -> Response:
    """Show how far a request is, and its receipt."""
    frame = Frame.of(request, visitor, title="Receipt", section="/knowledge")
    found = receipt_of(await visitor.client.get(f"/v1/forget/{forget_id}"))
    return await show(request, RECEIPT_TEMPLATE, frame, page=found)


@router.get("/knowledge/forget/{forget_id}/region")
async def region(request: Request, visitor: VisitorDependency, forget_id: ForgetId) -> Response:
    """Answer with how far it is now."""
    frame = Frame.of(request, visitor, title="Receipt", section="/knowledge")
    found = receipt_of(await visitor.client.get(f"/v1/forget/{forget_id}"))
    return await show_region(request, RECEIPT_TEMPLATE, "progress", frame, page=found)
