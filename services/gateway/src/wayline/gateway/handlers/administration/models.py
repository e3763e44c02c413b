"""The models that jobs can be sent to: what each can do, what it costs, and a tenant's own additions."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Body, Path, Response
from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from wayline.contracts.errors import NotFound, Reject
from wayline.contracts.models import (
    MODEL_CHARS_MAX,
    MODEL_PATTERN,
    PROVIDER_CHARS_MAX,
    PROVIDER_PATTERN,
    DeleteModel,
    ListModels,
    ListProviders,
    ModelCard,
    ModelDeleted,
    ModelLeftAlone,
    ModelList,
    Provider,
    ProviderList,
    PutModel,
)
from wayline.gateway.conditions import IfUnchanged, entity_tag
from wayline.gateway.handlers.shared.changing import Changeable, tagged
from wayline.gateway.handlers.shared.deleting import was_there
from wayline.gateway.handlers.shared.dependencies import Admin, Gateway, GatewayDependency, Reader
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails, tags
from wayline.gateway.paging import PageCursor, Paged, PageLimit, page_in_order
from wayline.gateway.problem_answers import InvalidBody
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1", tags=["models"], route_class=StrictRoute)

EXAMPLE = {
    "provider": "chat",
    "model": "qwen3:8b",
    "tier": "standard",
    "context_window": 40_000,
    "tools": "native",
    "temperature": True,
    "prices": {"rates": {"input": "0", "output": "0"}, "source": "our own machine"},
}


class Providers(BaseModel):
    """What executors can call: a job goes to any of them, so they should all be configured alike."""

    providers: tuple[Provider, ...] = Field(description="Those that all have, at the same address.")
    executors: tuple[ProviderList, ...] = Field(description="What each of those that answered has.")
    left_alone: tuple[ModelLeftAlone, ...] = Field(
        default=(), description="The caller's models that some executor does not call now, each with its longest pause."
    )


def _strictly(value: Any) -> Any:
    """Refuse unknown fields at every depth: a mistyped part of a price would be a wrong cost."""
    try:
        return ModelCard.model_validate(value, extra="forbid")
    except ValidationError as error:
        raise InvalidBody(error) from None


ProviderPath: TypeAlias = Annotated[
    str, Path(pattern=PROVIDER_PATTERN, max_length=PROVIDER_CHARS_MAX, examples=["chat"])
]
ModelPath: TypeAlias = Annotated[
    str,
    Path(
        pattern=MODEL_PATTERN,
        max_length=MODEL_CHARS_MAX,
        examples=["qwen3:8b"],
        description="All that follows, slashes too.",
    ),
]
CardBody: TypeAlias = Annotated[ModelCard, BeforeValidator(_strictly), Body(examples=[EXAMPLE])]


class ModelPage(ModelList, Paged):
    """A page of the models that a tenant can use."""


@router.get("/models", responses=fails(400))
async def list_models(
    gateway: GatewayDependency, caller: Reader, limit: PageLimit = 100, cursor: PageCursor = None
) -> ModelPage:
    """Page through the models, bundled ones and the tenant's own, in each tier the preferred ones first.

    `usable`, `own` and `image_models` are whole on every page.
    """
    found = await gateway.bus.ask(ListModels(tenant=caller.tenant), ModelList)
    page = page_in_order(found.models, limit=limit, cursor=cursor, key=lambda card: card.name)
    rest = {name: getattr(found, name) for name in ("usable", "own", "image_models")}
    return ModelPage(models=page.items, next_cursor=page.next_cursor, **rest)


@router.get("/providers", responses=fails())
async def list_providers(gateway: GatewayDependency, caller: Reader) -> Providers:
    """Return the providers that executors are configured for: where each is, and whether a key is sent, but no key."""
    executors = await gateway.bus.ask_everyone(ListProviders(tenant=caller.tenant), ProviderList)
    if any(one.left_alone for one in executors):
        # An executor calls models of all tenants, and a name of a model may be another tenant's own.
        own = {card.name for card in (await gateway.bus.ask(ListModels(tenant=caller.tenant), ModelList)).models}
        executors = [_shown_to(own, one) for one in executors]
    executors.sort(key=lambda one: one.executor)
    shared = (one for one in executors[0].providers if all(one in other.providers for other in executors))
    longest = sorted((one for told in executors for one in told.left_alone), key=lambda one: one.retry_after_s)
    return Providers(
        providers=tuple(shared),
        executors=tuple(executors),
        left_alone=tuple({one.model: one for one in longest}.values()),
    )


def _shown_to(own: set[str], told: ProviderList) -> ProviderList:
    return told.model_copy(update={"left_alone": tuple(one for one in told.left_alone if one.model in own)})


@router.get("/models/{provider}/{model:path}", responses=tags(404))
async def get_model(
    provider: ProviderPath, model: ModelPath, gateway: GatewayDependency, caller: Reader, response: Response
) -> ModelCard:
    """Return one model: what it can do and what it costs; prices of null are unknown, not zero."""
    card = await _card(gateway, caller, f"{provider}/{model}")
    return tagged(response, card, _tag(card))


async def _card(gateway: Gateway, caller: Caller, name: str, *, fresh: bool = False) -> ModelCard:
    found = await gateway.bus.ask(ListModels(tenant=caller.tenant, fresh=fresh), ModelList)
    for card in found.models:
        if card.name == name:
            return card
    raise NotFound("model", name)


def _tag(card: ModelCard) -> str:
    # Rates whose day has come take the place of those before them: a form that was opened before then is refused once.
    return entity_tag(card.model_dump(mode="json"))


@router.put("/models/{provider}/{model:path}", responses=tags(400, 404, 409, 412, 413))
async def put_model(
    *,
    provider: ProviderPath,
    model: ModelPath,
    card: CardBody,
    gateway: GatewayDependency,
    caller: Admin,
    condition: IfUnchanged,
    response: Response,
) -> ModelCard:
    """Add a model of the tenant's own, or replace a bundled card for the tenant; new jobs see it at once."""
    if (card.provider, card.model) != (provider, model):
        raise Reject(f"the path names {provider}/{model}, the body {card.name}", code="invalid_request", status=422)
    async with MODEL.changing(gateway, caller, card.name, condition):
        saved = await gateway.bus.ask(PutModel(tenant=caller.tenant, card=card), ModelCard)
    return tagged(response, saved, _tag(saved))


@router.delete("/models/{provider}/{model:path}", responses=fails(404, 412))
async def delete_model(
    provider: ProviderPath, model: ModelPath, gateway: GatewayDependency, caller: Admin, condition: IfUnchanged
) -> ModelDeleted:
    """Remove a model card of the tenant's own; a bundled model of that name is visible again."""
    async with MODEL.changing(gateway, caller, f"{provider}/{model}", condition):
        deleted = await gateway.bus.ask(DeleteModel(tenant=caller.tenant, provider=provider, model=model), ModelDeleted)
    return was_there(deleted, "model of the tenant's own", f"{provider}/{model}")


async def _fresh_card(gateway: Gateway, caller: Caller, name: str) -> ModelCard:
    return await _card(gateway, caller, name, fresh=True)


MODEL = Changeable("model", _fresh_card, _tag)
