"""Models: what each can do and costs, whether it is called now, what it was used for, and which would take an input."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import PostedForm, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages.agents.agent_list import costs_by
from wayline.console.pages.frame import Frame, show
from wayline.console.pages.refusal import reason_of

router = APIRouter()
TEMPLATE = "models/list.html"
DAYS: Final = 7
SLOTS: Final = ("fast", "primary", "escalation", "reasoning")
ABILITIES: Final = (("images", "images"), ("files", "files"), ("structured_output", "schemas"))


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One model of the list."""

    card: dict[str, Any]
    usable: bool
    own: bool
    left_alone: dict[str, Any] | None
    """Why no executor calls it now; None: they do."""
    cost: dict[str, Any] | None
    """What was spent on it; None: nothing, or nobody knows."""
    users: list[str]
    """Agents that name it."""

    @property
    def name(self) -> str:
        return f"{self.card['provider']}/{self.card['model']}"

    @property
    def abilities(self) -> list[str]:
        """Return what it can do, in words."""
        found = [title for name, title in ABILITIES if self.card[name]]
        tools = [] if self.card["tools"] == "native" else ["tools as text"]
        thinks = [] if self.card["reasoning"] == "none" else [f"thinks ({self.card['reasoning']})"]
        return [*found, *tools, *thinks]


@dataclass(frozen=True, slots=True)
class Preview:
    """Which model would take an input."""

    agent: str = ""
    input: str = ""
    planned: dict[str, Any] | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ModelCatalogue:
    """What the list shows."""

    rows: list[ModelRow]
    image_models: list[dict[str, Any]]
    agents: list[str]
    knows_costs: bool
    usable_only: bool = True
    preview: Preview = field(default_factory=Preview)
    days: int = DAYS

    @property
    def shown(self) -> list[ModelRow]:
        """Return the models of providers that are configured, or all."""
        return [row for row in self.rows if row.usable or row.own] if self.usable_only else self.rows


def users_of(agents: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the agents that name each model, as their own or in a slot."""
    found: dict[str, list[str]] = {}
    for agent in agents:
        config = agent["config"]
        named = [config["model"], *(config["routing"][slot] for slot in SLOTS), *config["routing"]["fallbacks"]]
        for name in dict.fromkeys(one for one in named if one):
            found.setdefault(name, []).append(agent["name"])
    return found


async def read(client: Client, *, now: datetime, usable_only: bool = True) -> ModelCatalogue:
    """Ask the API for the models, their providers, their costs, and who names them."""
    since = (now - timedelta(days=DAYS)).isoformat()
    found, providers, agents, costs = await asyncio.gather(
        client.whole("/v1/models", "models"),
        left_alone(client),
        client.whole("/v1/agents", "agents"),
        costs_by(client, "model", since=since),
    )
    usable, own, users = frozenset(found["usable"]), frozenset(found["own"]), users_of(agents["agents"])
    rows = [
        ModelRow(
            card=card,
            usable=name in usable,
            own=name in own,
            left_alone=providers.get(name),
            cost=(costs or {}).get(name) or (costs or {}).get(card["model"]),
            users=users.get(name, []),
        )
        for card in found["models"]
        for name in [f"{card['provider']}/{card['model']}"]
    ]
    names = [agent["name"] for agent in agents["agents"]]
    return ModelCatalogue(rows, found["image_models"], names, costs is not None, usable_only)


async def left_alone(client: Client) -> dict[str, dict[str, Any]]:
    """Return the models that no executor calls now, by name; none where executors do not answer."""
    try:
        told = await client.get("/v1/providers")
    except ApiError as error:
        if error.status is None:
            raise
        return {}
    return {one["model"]: one for one in told["left_alone"]}


@router.get("/models")
async def models(
    request: Request, visitor: VisitorDependency, all_models: Annotated[bool, Query(alias="all")] = False
) -> HTMLResponse:
    """Show the models."""
    frame = Frame.of(request, visitor, title="Models", section="/models")
    page = await read(visitor.client, now=frame.now, usable_only=not all_models)
    return await show(request, TEMPLATE, frame, page=page)


@router.post("/models")
async def preview(request: Request, visitor: VisitorDependency, form: PostedForm) -> HTMLResponse:
    """Show which model would take an input, and why; nothing runs."""
    frame = Frame.of(request, visitor, title="Models", section="/models")
    asked = Preview(field_of(form, "agent"), field_of(form, "input"))
    try:
        body = {"agent": asked.agent, "input": asked.input, "options": {"dry_run": True}}
        asked = replace(asked, planned=await visitor.client.post("/v1/jobs", body))
    except ApiError as error:
        asked = replace(asked, problem=reason_of(error))
    page = replace(await read(visitor.client, now=frame.now), preview=asked)
    return await show(request, TEMPLATE, frame, status=422 if asked.problem else 200, page=page)
