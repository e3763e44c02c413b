"""A model: its card as a form, what it was used for, how long its calls took, and who names it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Path, Request
from fastapi.responses import HTMLResponse, Response

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import PostedForm, Visitor, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages import confirm
from wayline.console.pages.agents.agent_list import costs_by
from wayline.console.pages.frame import Frame, go, show
from wayline.console.pages.models.card_form import CardField, PricesForm, fields_of, read_card
from wayline.console.pages.models.model_list import DAYS, left_alone, users_of
from wayline.console.pages.models.rate_rows import RATES, RateRow, with_room
from wayline.console.render.schema_form import ApiSchemas, problems_by_field

router = APIRouter()
TEMPLATE = "models/model.html"
CALLS_READ: Final = 200
"""Newest calls of a model, from which its latency is said."""
Provider = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
Model = Annotated[str, Path(max_length=200)]


@dataclass(frozen=True, slots=True)
class Latency:
    """How long the newest calls of a model took."""

    calls: int
    failed: int
    p50_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class ModelPage:
    """What the page shows."""

    card: dict[str, Any]
    tag: str
    """Empty: it is new."""
    own: bool
    usable: bool
    fields: list[CardField]
    left_alone: dict[str, Any] | None = None
    cost: dict[str, Any] | None = None
    latency: Latency | None = None
    users: Sequence[str] = ()
    problem: str = ""
    problems: Mapping[str, str] = field(default_factory=dict)
    typed_prices: PricesForm | None = None
    knows_costs: bool = True
    days: int = DAYS

    @property
    def name(self) -> str:
        return f"{self.card['provider']}/{self.card['model']}"

    @property
    def address(self) -> str:
        return address_of(self.card["provider"], self.card["model"])

    @property
    def prices(self) -> PricesForm:
        """Return its prices as they were typed, or as they are saved."""
        return self.typed_prices or PricesForm.of(self.card.get("prices"))

    @property
    def rate_rows(self) -> list[RateRow]:
        return with_room(self.prices.rows)


def address_of(provider: str, model: str) -> str:
    """Return the address of a model's page; its name may have slashes."""
    return f"/models/{quote(provider, safe='')}/{quote(model)}"


def latency_of(spans: Sequence[Mapping[str, Any]]) -> Latency | None:
    """Return how long calls took, half of them and 95 of 100; None: none has ended."""
    took = sorted(span["duration_ms"] for span in spans if span["duration_ms"] is not None)
    if not took:
        return None
    failed = sum(span["status"] == "error" for span in spans)
    return Latency(len(took), failed, took[(len(took) - 1) // 2], took[min(len(took) * 95 // 100, len(took) - 1)])


async def read(request: Request, client: Client, provider: str, model: str, *, now: datetime) -> ModelPage:
    """Ask the API for a model and for what was done with it."""
    name, since = f"{provider}/{model}", (now - timedelta(days=DAYS)).isoformat()
    found = await client.tagged(f"/v1{address_of(provider, model)}")
    schemas: ApiSchemas = await request.app.state.schemas.read(client)
    listed, providers, agents, costs, spans = await asyncio.gather(
        client.get("/v1/models", limit=1),
        left_alone(client),
        client.whole("/v1/agents", "agents"),
        costs_by(client, "model", since=since, model=name),
        _calls(client, model, since),
    )
    return ModelPage(
        card=found.body,
        tag=found.tag or "",
        own=name in listed["own"],
        usable=name in listed["usable"],
        fields=fields_of(schemas, found.body, {}),
        left_alone=providers.get(name),
        cost=next(iter((costs or {}).values()), None),
        knows_costs=costs is not None,
        latency=latency_of(spans),
        users=users_of(agents["agents"]).get(name, []),
    )


async def _calls(client: Client, model: str, since: str) -> list[dict[str, Any]]:
    """Return the newest calls of a model; none where too many searches wait."""
    try:
        return (await client.get("/v1/traces", model=model[:128], since=since, limit=CALLS_READ))["spans"]
    except ApiError as error:
        if error.status is None:
            raise
        return []


async def _answer(request: Request, visitor: Visitor, page: ModelPage) -> HTMLResponse:
    title = page.name if page.tag else "New model"
    frame = Frame.of(request, visitor, title=title, section="/models")
    return await show(request, TEMPLATE, frame, status=422 if page.problem else 200, page=page, rates=RATES)


@router.get("/new-model")
async def new_model(request: Request, visitor: VisitorDependency) -> HTMLResponse:
    """Show the form of a new card."""
    schemas = await request.app.state.schemas.read(visitor.client)
    card = {"provider": "", "model": "", "prices": None}
    return await _answer(request, visitor, ModelPage(card, "", True, False, fields_of(schemas, {}, {})))


@router.get("/models/{provider}/{model:path}")
async def model(request: Request, visitor: VisitorDependency, provider: Provider, model: Model) -> HTMLResponse:
    """Show a model."""
    now = Frame.of(request, visitor, title="", section="").now
    return await _answer(request, visitor, await read(request, visitor.client, provider, model, now=now))


@router.post("/save-model")
async def save(request: Request, visitor: VisitorDependency, form: PostedForm) -> Response:
    """Save a card of the tenant's own where it is as the form read it; asked for rows, show it with more of them."""
    client = visitor.client
    schemas = await request.app.state.schemas.read(client)
    provider, model, tag = (field_of(form, name) for name in ("provider", "model", "tag"))

    def get(name: str) -> str | None:
        value = form.get(name)
        return value.strip() if isinstance(value, str) else None

    card, problems = read_card(get, fields_of(schemas, {}, {}), provider=provider, model=model)
    is_draft = "rows" in form
    problem = "" if is_draft else "; ".join(f"{name}: {message}" for name, message in problems.items())
    if not problems and not is_draft:
        try:
            headers = {"If-Match": tag} if tag else {"If-None-Match": "*"}
            await client.put(f"/v1{address_of(provider or '-', model or '-')}", card, headers=headers)
            return go(address_of(provider, model), done="saved")
        except ApiError as error:
            if error.status is None or error.status >= 500:
                raise
            problem, problems = str(error), problems_by_field(str(error))
            if error.status == 412:
                problem = _overtaken(provider, model, is_new=not tag)
    if tag:
        now = Frame.of(request, visitor, title="", section="").now
        page = replace(await read(request, client, provider, model, now=now), card=card)
    else:
        page = ModelPage(card, "", own=True, usable=False, fields=[])
    fields = fields_of(schemas, card, problems, get)
    page = replace(page, fields=fields, problem=problem, problems=problems)
    return await _answer(request, visitor, replace(page, typed_prices=PricesForm.typed(get, problems)))


def _overtaken(provider: str, model: str, *, is_new: bool) -> str:
    if is_new:
        return f"There is a model {provider}/{model} already: open it to change its card."
    return "The card was changed after this form was opened. This form has yours: save again to put it over the other."


@router.post("/delete-model")
async def delete(request: Request, visitor: VisitorDependency, form: PostedForm) -> Response:
    """Ask, and take a card of the tenant's own back."""
    provider, model = field_of(form, "provider"), field_of(form, "model")
    if not confirm.is_confirmed(form):
        question = confirm.Confirmation(
            title=f"Remove your card of {provider}/{model}?",
            button="Remove it",
            action="/delete-model",
            back=address_of(provider, model),
            sentences=("A bundled card of the same name counts again; without one its jobs are refused.",),
            fields=confirm.fields_of(form),
            scope="admin",
        )
        return await confirm.ask(request, visitor, question, section="/models")
    await visitor.client.delete(f"/v1{address_of(provider, model)}", headers={"If-Match": field_of(form, "tag") or "*"})
    return go("/models", done="deleted")
