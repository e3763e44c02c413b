"""The models a tenant can use: the bundled ones, overlaid by its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from wayline.chassis.concurrency.single_flight import SingleFlight
from wayline.contracts.errors import Reject
from wayline.contracts.models import ModelCard, ModelList, Prices
from wayline.contracts.nearest import nearest_names
from wayline.llm.catalogue import PROVIDERS, bundled, image_models, overlay, usable
from wayline.llm.prices import prices_at
from wayline.store import Store

NEAREST_MAX = 5
"""Models that a refusal names."""
TENANTS_MAX = 1_024
"""Catalogues kept in memory; one more, and they are all read again."""

FindPrices = Callable[[str, str], Prices | None]


def listed(provider: str, model: str) -> Prices | None:
    """Return what the public price list says; imported only when a tenant adds a model without a price."""
    from wayline.llm.price_list import find_prices

    return find_prices(provider, model)


@dataclass(frozen=True, slots=True)
class _View:
    """A tenant's catalogue as it is believed to be."""

    until: float
    models: ModelList
    usable: tuple[ModelCard, ...]


class Catalogue:
    """Every tenant's models, believed for a few seconds, like the tenants themselves."""

    def __init__(
        self,
        store: Store,
        *,
        reachable: Mapping[str, str],
        fresh_s: float,
        own_max: int,
        find_prices: FindPrices = listed,
    ) -> None:
        self._store = store
        self._reachable = reachable
        self._fresh_s = fresh_s
        self._own_max = own_max
        self._find_prices = find_prices
        self._views: dict[str, _View] = {}
        self._changes = 0
        self._reads = SingleFlight[tuple[str, int], _View]()

    async def all(self, tenant: str) -> ModelList:
        """Return all of a tenant's models with the prices of now; of two in a tier the first is the one it means."""
        return (await self._view(tenant)).models

    async def all_now(self, tenant: str) -> ModelList:
        """Return the same as the table has it now: another router may have saved a model a moment ago."""
        self._changed(tenant)
        return await self.all(tenant)

    async def usable(self, tenant: str) -> tuple[ModelCard, ...]:
        """Return those of them that can be called: the offline model alone where no provider is configured."""
        return (await self._view(tenant)).usable

    async def require_usable(self, tenant: str, name: str) -> None:
        """Pass for a model that can be called for a tenant now. Raises Reject."""
        if name in (await self.all(tenant)).usable or name in (usable := (await self.all_now(tenant)).usable):
            return
        nearest = nearest_names(name, usable, most=NEAREST_MAX, cutoff=0)
        raise Reject(
            f"default_model is {name!r}, which this tenant cannot use: take one that GET /v1/models names in `usable`"
            f"{', such as ' if nearest else ''}{', '.join(nearest)}",
            code="unusable_model",
            status=422,
        )

    async def put(self, tenant: str, card: ModelCard) -> ModelCard:
        """Keep a tenant's card; one without prices gets those that the price list has, where it has any.

        Raises Reject for a provider or a name in the price list that nobody knows, and for one model too many.
        """
        if card.provider not in {*PROVIDERS, *self._reachable}:
            known = ", ".join(sorted({*PROVIDERS, *self._reachable}))
            raise Reject(
                f"no provider {card.provider!r}; there is {known}. Every OpenAI-compatible server is `chat`",
                code="unknown_provider",
                status=422,
            )
        if card.prices is None:
            card = card.model_copy(update={"prices": await self._look_up(card)})
        sql, encoded = self._store.sql.put_model, card.model_dump(mode="json")
        if not await self._store.fetchval(tenant, sql, tenant, card.provider, card.model, encoded, self._own_max):
            raise Reject(
                f"{self._own_max} models of one's own are the most: delete one first, or raise "
                "WAYLINE_ROUTER_MODELS_MAX",
                code="too_many_models",
                status=409,
            )
        self._changed(tenant)
        return card

    async def delete(self, tenant: str, provider: str, model: str) -> bool:
        """Take a tenant's own card back."""
        status = await self._store.execute(tenant, self._store.sql.delete_model, tenant, provider, model)
        self._changed(tenant)
        return not status.endswith(" 0")

    async def _view(self, tenant: str) -> _View:
        view = self._views.get(tenant)
        if view is None or view.until <= time.monotonic():
            # A question that comes after a change does not share the answer to one from before it.
            return await self._reads.fetch((tenant, self._changes), lambda: self._read(tenant))
        return view

    async def _read(self, tenant: str) -> _View:
        changes = self._changes
        rows = await self._store.fetch(tenant, self._store.sql.list_models, tenant)
        view = self._agent_averages([ModelCard.model_validate(row["card"]) for row in rows])
        # What was read while a card changed may be older than the change: not to be believed for longer.
        if changes == self._changes:
            if len(self._views) >= TENANTS_MAX:
                self._views.clear()
            self._views[tenant] = view
        return view

    def _changed(self, tenant: str) -> None:
        self._changes += 1
        self._views.pop(tenant, None)

    def _agent_averages(self, own: Sequence[ModelCard]) -> _View:
        now = datetime.now(UTC)
        cards = tuple(_priced_at(card, now) for card in overlay(bundled(), own))
        can_be_called = usable(cards, self._reachable)
        models = ModelList(
            models=cards,
            usable=tuple(card.name for card in can_be_called),
            own=tuple(card.name for card in own),
            image_models=image_models(),
        )
        return _View(time.monotonic() + self._fresh_s, models, can_be_called)

    async def _look_up(self, card: ModelCard) -> Prices | None:
        provider, _, model = (card.priced_as or card.name).partition("/")
        # In a thread: the first look loads the whole list.
        found = await asyncio.to_thread(self._find_prices, provider, model)
        if found is None and card.priced_as:
            raise Reject(
                f"the price list has no {card.priced_as!r}: correct `priced_as`, give `prices`, or leave both out and "
                "the price is unknown",
                code="unknown_price",
                status=422,
            )
        return found


def _priced_at(card: ModelCard, now: datetime) -> ModelCard:
    if card.prices is None or not card.prices.when:
        return card
    return card.model_copy(update={"prices": prices_at(card.prices, now)})
