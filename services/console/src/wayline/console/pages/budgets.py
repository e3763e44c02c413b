"""Budgets: one as a form, with what is spent, held and left of it, and the alerts that it has raised."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Final, TypeAlias
from urllib.parse import quote

from fastapi import APIRouter, Path, Request
from fastapi.responses import HTMLResponse, Response

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import PostedForm, Visitor, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages.confirm import Confirmation, ask, fields_of, is_confirmed
from wayline.console.pages.frame import Frame, go, show
from wayline.console.pages.refusal import OVERTAKEN, reason_of_save

router = APIRouter()
TEMPLATE = "budget.html"
WINDOWS: Final = (
    ("hour", "an hour"),
    ("day", "a day"),
    ("week", "a week"),
    ("month", "a month"),
    ("total", "in all"),
    ("job", "each job anew"),
)
Name: TypeAlias = Annotated[str, Path(min_length=1, max_length=64)]


class NotANumber(ValueError):
    """A field that is no number."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A budget that is being written, as its form has it."""

    name: str = ""
    limit_usd: str = ""
    window: str = "month"
    timezone: str = "UTC"
    agent: str = ""
    user_id: str = ""
    hard: bool = True
    alerts: str = "80"
    """Shares of the limit in percent, with spaces between them."""

    @classmethod
    def of(cls, budget: dict[str, Any]) -> Draft:
        """Return the draft that changes a budget."""
        alerts = " ".join(f"{(Decimal(share) * 100).normalize():f}" for share in budget["alerts"])
        kept = ("name", "limit_usd", "window", "timezone", "hard")
        who = {name: budget[name] or "" for name in ("agent", "user_id")}
        given: dict[str, Any] = {name: budget[name] for name in kept} | who
        return cls(**given, alerts=alerts)

    def body(self) -> dict[str, Any]:
        """Return the budget that is saved. Raises NotANumber."""
        try:
            alerts = [f"{Decimal(share.rstrip('%')) / 100:f}" for share in self.alerts.replace(",", " ").split()]
        except InvalidOperation:
            raise NotANumber("alerts: write percents with spaces between them, such as 50 80 100") from None
        who = {name: value for name, value in (("agent", self.agent), ("user_id", self.user_id)) if value}
        given = {"limit_usd": self.limit_usd.lstrip("$"), "window": self.window, "timezone": self.timezone}
        return {**given, **who, "hard": self.hard, "alerts": alerts}


@dataclass(frozen=True, slots=True)
class BudgetPage:
    """What the form shows."""

    draft: Draft
    agents: list[str]
    budget: dict[str, Any] | None = None
    """As it stands; None: it is new."""
    tag: str = ""
    """Of the budget as the form began with it: another one is not overwritten."""
    problem: str = ""


async def read(client: Client, name: str | None, *, draft: Draft | None = None, problem: str = "") -> BudgetPage:
    """Ask the API for a budget and the agents that one can be for."""
    agents = [agent["name"] for agent in (await client.whole("/v1/agents", "agents"))["agents"]]
    if name is None:
        return BudgetPage(draft or Draft(), agents, problem=problem)
    found = await client.tagged(f"/v1/budgets/{quote(name, safe='')}")
    return BudgetPage(draft or Draft.of(found.body), agents, found.body, found.tag or "", problem)


def _frame(request: Request, visitor: Visitor, title: str) -> Frame:
    return Frame.of(request, visitor, title=title, section="/costs")


@router.get("/new-budget")
async def write_budget(request: Request, visitor: VisitorDependency) -> HTMLResponse:
    """Show the form of a new budget."""
    page = await read(visitor.client, None)
    return await show(request, TEMPLATE, _frame(request, visitor, "New budget"), page=page, windows=WINDOWS)


@router.get("/budgets/{name}")
async def budget(request: Request, visitor: VisitorDependency, name: Name) -> HTMLResponse:
    """Show a budget."""
    page = await read(visitor.client, name)
    return await show(request, TEMPLATE, _frame(request, visitor, name), page=page, windows=WINDOWS)


@router.post("/new-budget")
async def create_budget(request: Request, visitor: VisitorDependency, form: PostedForm) -> Response:
    """Save a new budget; one of its name that is there stays as it is."""
    return await _save(request, visitor, _draft_of(form), name=None, tag="")


@router.post("/budgets/{name}")
async def change_budget(request: Request, visitor: VisitorDependency, form: PostedForm, name: Name) -> Response:
    """Save a budget as the form has it."""
    return await _save(request, visitor, replace(_draft_of(form), name=name), name=name, tag=field_of(form, "tag"))


@router.post("/budgets/{name}/delete")
async def delete_budget(request: Request, visitor: VisitorDependency, form: PostedForm, name: Name) -> Response:
    """Delete a budget, after asking."""
    at = f"/budgets/{quote(name, safe='')}"
    if is_confirmed(form):
        await visitor.client.delete(f"/v1{at}", headers={"If-Match": field_of(form, "tag") or "*"})
        return go("/costs", done="deleted")
    question = Confirmation.of(
        "delete",
        f"the budget {name!r}",
        at=at,
        sentences=("Nothing is bounded by it any more, and jobs that waited for it go on.",),
        fields=fields_of(form),
        scope="admin",
    )
    return await ask(request, visitor, question, section="/costs")


def _draft_of(form: Any) -> Draft:
    given: dict[str, Any] = {name: field_of(form, name) for name in Draft.__dataclass_fields__ if name != "hard"}
    return Draft(**given, hard="hard" in form)


async def _save(request: Request, visitor: Visitor, draft: Draft, *, name: str | None, tag: str) -> Response:
    headers = {"If-None-Match": "*"} if name is None else {"If-Match": tag} if tag else None
    try:
        await visitor.client.put(f"/v1/budgets/{quote(draft.name, safe='')}", draft.body(), headers=headers)
    except (NotANumber, ApiError) as error:
        problem = reason_of_save(error) if isinstance(error, ApiError) else str(error)
        if problem == OVERTAKEN and name is None:
            problem = f"There is a budget {draft.name} already: open it to change it."
        page = await read(visitor.client, name, draft=draft, problem=problem)
        frame = _frame(request, visitor, name or "New budget")
        return await show(request, TEMPLATE, frame, status=422, page=page, windows=WINDOWS)
    return go(f"/budgets/{quote(draft.name, safe='')}", done="saved")
