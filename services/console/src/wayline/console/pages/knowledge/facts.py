"""What is remembered: memories about users, and insights about subjects. Added, changed, released and forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, TypeAlias
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import PostedForm, Visitor, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages.confirm import Confirmation, ask, is_confirmed
from wayline.console.pages.form_values import WrongField, is_untouched, moment_of, names_of, number_of, whole_of
from wayline.console.pages.frame import Frame, go, show
from wayline.console.pages.knowledge.fact_fields import KINDS, NEW_FACT, STATES, Kind, new_fact_of, shown_fact
from wayline.console.pages.refusal import reason_of, reason_of_save
from wayline.console.render.addresses import query_of
from wayline.console.render.formats import one_line

router = APIRouter()
LIST_TEMPLATE = "knowledge/facts.html"
TEMPLATE = "knowledge/fact.html"
PAGE_SIZE = 50
VERSIONS_SHOWN = 20
OUTCOMES: Final = {"saved": "remembered", "merged": "known", "known": "known", "quarantined": "quarantined"}
"""What the page says afterwards, by what became of a fact."""

KindPath: TypeAlias = Annotated[Literal["memories", "insights"], Path()]
FactPath: TypeAlias = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


@dataclass(frozen=True, slots=True)
class Facts:
    """What a list shows."""

    kind: Kind
    facts: list[dict[str, Any]]
    next_cursor: str | None
    wanted: dict[str, str]
    typed: dict[str, str] = field(default_factory=lambda: dict(NEW_FACT))
    problem: str = ""

    @property
    def next_address(self) -> str | None:
        """Return the address of the next page; None: this is the last."""
        if self.next_cursor is None:
            return None
        kept = {name: value for name, value in self.wanted.items() if value}
        return f"{self.kind.address}?{query_of({**kept, 'cursor': self.next_cursor})}"


@dataclass(frozen=True, slots=True)
class FactPage:
    """What the page of one fact shows."""

    kind: Kind
    fact: dict[str, Any]
    tag: str
    versions: list[dict[str, Any]]
    problem: str = ""
    typed: dict[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"{self.kind.address}/{self.fact['fact_id']}"


async def read(
    client: Client,
    kind: Kind,
    wanted: dict[str, str],
    *,
    cursor: str | None = None,
    typed: dict[str, str] | None = None,
    problem: str = "",
) -> Facts:
    """Ask the API for one page of facts; a refused question is shown beside the form that asked it."""
    asked = {kind.parameters.get(name, name): value for name, value in wanted.items() if value}
    shown = dict(NEW_FACT) if typed is None else typed
    try:
        page = await client.get(kind.path, limit=PAGE_SIZE, cursor=cursor, **asked)
    except ApiError as error:
        return Facts(kind, [], None, wanted, shown, problem or reason_of(error))
    return Facts(kind, page["facts"], page["next_cursor"], wanted, shown, problem)


async def read_fact(
    client: Client, kind: Kind, fact_id: str, *, problem: str = "", typed: dict[str, str] | None = None
) -> FactPage:
    """Ask the API for a fact as it is, and what it was before."""
    path = f"{kind.path}/{fact_id}"
    found, history = await asyncio.gather(client.tagged(path), client.get(f"{path}/versions", limit=VERSIONS_SHOWN))
    return FactPage(kind, found.body, found.tag or "", history["facts"], problem, typed or {})


@router.get("/knowledge/{kind_name}")
async def facts(
    request: Request, visitor: VisitorDependency, kind_name: KindPath, cursor: Annotated[str | None, Query()] = None
) -> Response:
    """Show what is remembered."""
    kind = KINDS[kind_name]
    wanted = {name: request.query_params.get(name, "").strip()[:200] for name in kind.conditions}
    return await _show_list(request, visitor, await read(visitor.client, kind, wanted, cursor=cursor))


async def _show_list(request: Request, visitor: Visitor, page: Facts) -> Response:
    frame = Frame.of(request, visitor, title=page.kind.title, section="/knowledge")
    status = 422 if page.problem else 200
    return await show(request, LIST_TEMPLATE, frame, status=status, page=page, states=STATES)


@router.post("/knowledge/{kind_name}")
async def remember(request: Request, visitor: VisitorDependency, kind_name: KindPath, form: PostedForm) -> Response:
    """Remember a fact, in the name of the key that signed in."""
    kind, client = KINDS[kind_name], visitor.client
    typed = {name: field_of(form, name) for name in NEW_FACT}
    try:
        body = new_fact_of(kind, typed, zone=request.app.state.templates.zone)
        [outcome] = (await client.post(kind.path, body))["outcomes"]
        problem = "" if outcome["outcome"] in OUTCOMES else f"It was refused: {outcome['reason'] or outcome['code']}"
    except (WrongField, ApiError) as error:
        outcome, problem = {}, reason_of(error) if isinstance(error, ApiError) else str(error)
    if problem:
        wanted = dict.fromkeys(kind.conditions, "")
        return await _show_list(request, visitor, await read(client, kind, wanted, typed=typed, problem=problem))
    return go(f"{kind.address}/{outcome['fact_id']}", done=OUTCOMES[outcome["outcome"]])


@router.get("/knowledge/{kind_name}/{fact_id}")
async def fact(request: Request, visitor: VisitorDependency, kind_name: KindPath, fact_id: FactPath) -> Response:
    """Show a fact, where it is from, and what it was before."""
    return await _show(request, visitor, await read_fact(visitor.client, KINDS[kind_name], fact_id))


async def _show(request: Request, visitor: Visitor, page: FactPage) -> Response:
    frame = Frame.of(request, visitor, title=one_line(page.fact["text"], 60), section="/knowledge")
    shown = {**shown_fact(page.fact, request.app.state.templates.zone), **page.typed}
    return await show(request, TEMPLATE, frame, status=422 if page.problem else 200, page=page, shown=shown)


def change_of(found: Mapping[str, Any], sent: Mapping[str, str], *, zone: Any) -> dict[str, Any]:
    """Return what a form changes of a fact. Raises WrongField."""
    shown = shown_fact(found, zone)
    touched = {name for name, value in shown.items() if name in sent and not is_untouched(sent[name], value)}
    change: dict[str, Any] = {name: sent[name] for name in ("text", "category", "tier") if name in touched}
    if "importance" in touched:
        change["importance"] = whole_of(sent["importance"], what="Importance") or 0
    if "confidence" in touched:
        change["confidence"] = number_of(sent["confidence"], what="Confidence")
    if "keywords" in touched:
        change["keywords"] = names_of(sent["keywords"])
    if "expires_at" in touched:
        change["expires_at"] = moment_of(sent["expires_at"], zone, what="Expires")
    return change


@router.post("/knowledge/{kind_name}/{fact_id}/change")
async def change(
    request: Request, visitor: VisitorDependency, *, kind_name: KindPath, fact_id: FactPath, form: PostedForm
) -> Response:
    """Change a fact, if it is still as the form showed it: a new version supersedes it."""
    kind, client, zone = KINDS[kind_name], visitor.client, request.app.state.templates.zone
    path, sent = f"{kind.path}/{fact_id}", {name: field_of(form, name) for name in form}
    try:
        changed = change_of(await client.get(path), sent, zone=zone)
        if changed:
            reason, tag = sent.get("reason"), sent.get("tag")
            body = changed | ({"reason": reason} if reason else {})
            await client.patch(path, body, headers={"If-Match": tag} if tag else None)
    except (WrongField, ApiError) as error:
        problem = reason_of_save(error) if isinstance(error, ApiError) else str(error)
        typed = {name: value for name, value in sent.items() if name not in ("token", "tag")}
        return await _show(request, visitor, await read_fact(client, kind, fact_id, problem=problem, typed=typed))
    return go(f"{kind.address}/{fact_id}", done="saved")


@router.post("/knowledge/{kind_name}/{fact_id}/{decision}")
async def decide(
    request: Request,
    visitor: VisitorDependency,
    *,
    kind_name: KindPath,
    fact_id: FactPath,
    decision: Annotated[Literal["release", "reject"], Path()],
    form: PostedForm,
) -> Response:
    """Release a fact that waits for a person, or refuse it for good."""
    kind, reason = KINDS[kind_name], field_of(form, "reason")
    try:
        await visitor.client.post(f"{kind.path}/{fact_id}/{decision}", {"reason": reason or None})
    except ApiError as error:
        problem = reason_of(error)
        return await _show(request, visitor, await read_fact(visitor.client, kind, fact_id, problem=problem))
    if decision == "release":
        return go(f"{kind.address}/{fact_id}", done="released")
    return go(kind.address, done="rejected")


@router.post("/knowledge/{kind_name}/{fact_id}/delete/forget")
async def forget(
    request: Request, visitor: VisitorDependency, *, kind_name: KindPath, fact_id: FactPath, form: PostedForm
) -> Response:
    """Forget a fact with all of its versions, once that was asked."""
    kind = KINDS[kind_name]
    if not is_confirmed(form):
        found = await visitor.client.get(f"{kind.path}/{fact_id}")
        return await ask(request, visitor, _deletion(kind, found), section="/knowledge")
    await visitor.client.delete(f"{kind.path}/{quote(fact_id)}")
    return go(kind.address, done="forgotten")


def _deletion(kind: Kind, found: Mapping[str, Any]) -> Confirmation:
    address = f"{kind.address}/{found['fact_id']}"
    versions = f"{found['version']} versions" if found["version"] > 1 else "its one version"
    return Confirmation.of(
        "forget",
        kind.phrase,
        at=f"{address}/delete",
        back=address,
        sentences=(
            f"It goes with {versions}, and with where it was said and used.",
            "What jobs have said of it stays in their logs.",
        ),
        listed=(found["text"],),
    )
