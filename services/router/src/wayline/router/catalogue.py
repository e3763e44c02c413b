"""The models a tenant can use: the bundled ones, overlaid by its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from wayline.contracts.errors import Reject
from wayline.contracts.models import ModelCard, ModelList, Prices
from wayline.llm.catalogue import PROVIDERS, bundled, overlay, usable
from wayline.llm.prices import prices_at
from wayline.store import Store

TENANTS_MAX = 1_024
"""Catalogues kept in memory; one more, and they are all read again."""

FindPrices = Callable[[str, str], Prices | None]


def listed(provider: str, model: str) -> Prices | None:
    """What the public price list says; imported only when a tenant adds a model without a price."""
    from wayline.llm.price_list import find_prices

    return find_prices(provider, model)


@dataclass(frozen=True, slots=True)
class _Kept:
    until: float
    own: tuple[ModelCard, ...]


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
        self._kept: dict[str, _Kept] = {}

    async def cards(self, tenant: str) -> tuple[ModelCard, ...]:
        """All of a tenant's models with the prices of now; of two in a tier the first is the one it means."""
        now = datetime.now(UTC)
        return tuple(_priced_at(card, now) for card in overlay(bundled(), await self._own(tenant)))

    async def usable(self, tenant: str) -> tuple[ModelCard, ...]:
        """Those of them that can be called: the offline model alone where no provider is configured."""
        return usable(await self.cards(tenant), self._reachable)

    async def all(self, tenant: str) -> ModelList:
        """The same, said to others."""
        cards, own = await self.cards(tenant), await self._own(tenant)
        return ModelList(
            models=cards,
            usable=tuple(card.name for card in usable(cards, self._reachable)),
            own=tuple(card.name for card in own),
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
        sql, said = self._store.sql.put_model, card.model_dump(mode="json")
        if not await self._store.fetchval(tenant, sql, tenant, card.provider, card.model, said, self._own_max):
            raise Reject(
                f"{self._own_max} models of one's own are the most: delete one first, or raise "
                "WAYLINE_ROUTER_MODELS_MAX",
                code="too_many_models",
                status=409,
            )
        self._kept.pop(tenant, None)
        return card

    async def delete(self, tenant: str, provider: str, model: str) -> bool:
        """Take a tenant's own card back."""
        status = await self._store.execute(tenant, self._store.sql.delete_model, tenant, provider, model)
        self._kept.pop(tenant, None)
        return not status.endswith(" 0")

    async def _own(self, tenant: str) -> tuple[ModelCard, ...]:
        kept = self._kept.get(tenant)
        if kept is None or kept.until <= time.monotonic():
            rows = await self._store.fetch(tenant, self._store.sql.list_models, tenant)
            if len(self._kept) >= TENANTS_MAX:
                self._kept.clear()
            own = tuple(ModelCard.model_validate(row["card"]) for row in rows)
            kept = self._kept[tenant] = _Kept(time.monotonic() + self._fresh_s, own)
        return kept.own

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
