"""A tenant's own models, in its own rows of a real database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import date
from decimal import Decimal
from typing import Any, cast

import asyncpg
import pytest

from wayline.contracts.agents import AgentConfig, PutAgent
from wayline.contracts.errors import Reject
from wayline.contracts.models import ModelCard, Prices, Rates, TariffWhen
from wayline.llm.catalogue import bundled
from wayline.router.agents.agent_table import AgentTable
from wayline.router.agents.handlers import AgentHandlers
from wayline.router.agents.label_table import LabelTable
from wayline.router.app import migrations
from wayline.router.models.tenant_models import Catalogue
from wayline.router.tenants.known_tenants import KnownTenants
from wayline.store import Store, rls_gaps
from wayline.testkit import Database

from .conftest import PASSWORD, ROLE

QWEN = ModelCard(
    provider="chat",
    model="qwen3:8b",
    tier="standard",
    prices=Prices(rates=Rates(input=Decimal(0), output=Decimal(0)), source="our own machine"),
)
LISTED = Prices(rates=Rates(input=Decimal(1), output=Decimal(2)), source="a list")
NAMES = [card.name for card in bundled()]

Make = Callable[..., Catalogue]


@pytest.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    store = await Store.connect(
        database.as_role(ROLE, PASSWORD),
        schema="router",
        queries=migrations().parent / "queries.sql",
    )
    yield store
    await store.close()


@pytest.fixture
def catalogue(store: Store) -> Make:
    def make(**more: object) -> Catalogue:
        options = {"reachable": {}, "fresh_s": 60.0, "own_max": 10, "find_prices": lambda *_: None, **more}
        return Catalogue(store, **options)  # type: ignore[arg-type]

    return make


async def test_a_tenant_sees_bundled_and_own_models_only(catalogue: Make):
    models = catalogue(reachable={"chat": "http://127.0.0.1:11434/v1"})
    before = await models.all("acme")

    await models.put("acme", QWEN)

    after = await models.all("acme")
    assert [card.name for card in before.models] == NAMES
    assert QWEN in after.models
    assert (after.own, after.usable) == ((QWEN.name,), (QWEN.name, "offline/extractive"))
    assert (await models.all("globex")) == before


async def test_another_router_sees_a_change_once_its_view_expires(catalogue: Make):
    here, there, stale = catalogue(), catalogue(fresh_s=0), catalogue()
    await stale.all("acme")

    await here.put("acme", QWEN)

    assert QWEN in (await there.all("acme")).models
    assert QWEN not in (await stale.all("acme")).models


async def test_a_catalogue_read_during_a_change_is_not_cached(
    catalogue: Make, store: Store, monkeypatch: pytest.MonkeyPatch
):
    models, fetch = catalogue(), store.fetch
    read, changed = asyncio.Event(), asyncio.Event()

    async def slowly(*asked: object) -> object:
        rows = await fetch(*asked)  # type: ignore[arg-type]
        read.set()
        await changed.wait()
        return rows

    monkeypatch.setattr(store, "fetch", slowly)
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        group.create_task(models.all("acme"))
        await read.wait()
        await models.put("acme", QWEN)
        changed.set()

    assert QWEN in (await models.all("acme")).models


async def test_deleting_an_own_card_restores_the_bundled_one(catalogue: Make):
    models = catalogue()
    mine = ModelCard(provider="openai", model="gpt-6-sol", tier="reasoning", prices=LISTED)

    await models.put("acme", mine)
    replaced = (await models.all("acme")).models
    deleted = [await models.delete("acme", "openai", "gpt-6-sol") for _ in range(2)]

    assert [card.name for card in replaced] == NAMES
    assert mine in replaced
    assert deleted == [True, False]
    assert (await models.all("acme")).models == bundled()


@pytest.mark.parametrize(("priced_as", "asked"), [(None, ("chat", "llama")), ("groq/llama-4", ("groq", "llama-4"))])
async def test_a_card_without_prices_keeps_those_of_the_list(
    catalogue: Make, priced_as: str | None, asked: tuple[str, str]
):
    looked: list[tuple[str, str]] = []

    def find(provider: str, model: str) -> Prices:
        looked.append((provider, model))
        return LISTED

    models = catalogue(find_prices=find, fresh_s=0)
    card = ModelCard(provider="chat", model="llama", tier="flash", priced_as=priced_as)

    put = await models.put("acme", card)

    assert put.prices == LISTED
    assert put in (await models.all("acme")).models
    assert looked == [asked]


async def test_an_unlisted_price_is_unknown_and_a_wrong_reference_refused(catalogue: Make):
    models = catalogue()
    card = ModelCard(provider="chat", model="llama", tier="flash")

    assert (await models.put("acme", card)).prices is None
    with pytest.raises(Reject, match="the price list has no 'grok/llama'"):
        await models.put("acme", card.model_copy(update={"priced_as": "grok/llama"}))


async def test_a_card_has_the_prices_of_now(catalogue: Make):
    models, past = catalogue(), TariffWhen(since=date(2020, 1, 1), rates=LISTED.rates)
    mine = QWEN.model_copy(update={"prices": Prices(rates=Rates(input=Decimal(9), output=Decimal(9)), when=(past,))})

    await models.put("acme", mine)

    found = next(card for card in (await models.all("acme")).models if card.name == mine.name)
    assert found.prices == Prices(rates=LISTED.rates)


async def test_an_uncallable_provider_is_refused(catalogue: Make):
    card = ModelCard(provider="ollama", model="llama", tier="flash")

    with pytest.raises(Reject, match="no provider 'ollama'; there is anthropic, chat, offline, openai"):
        await catalogue().put("acme", card)
    assert (await catalogue(reachable={"ollama": ""}).put("acme", card)).name == "ollama/llama"


async def test_the_most_models_are_a_limit_for_new_ones_only(catalogue: Make):
    models = catalogue(own_max=1)
    await models.put("acme", QWEN)

    again = await models.put("acme", QWEN.model_copy(update={"tier": "premium"}))
    with pytest.raises(Reject, match="WAYLINE_ROUTER_MODELS_MAX") as refused:
        await models.put("acme", QWEN.model_copy(update={"model": "another"}))

    assert (again.tier, refused.value.status) == ("premium", 409)
    assert (await models.all("acme")).own == (QWEN.name,)


async def test_the_database_itself_keeps_tenants_models_apart(catalogue: Make, store: Store, database: Database):
    await catalogue().put("acme", QWEN)

    admin = await asyncpg.connect(database.dsn)
    gaps = await rls_gaps(admin)
    await admin.close()

    assert gaps == []
    assert await store.fetch("globex", "SELECT model FROM models") == []
    assert len(await store.fetch("acme", "SELECT model FROM models")) == 1


async def test_an_agent_may_name_a_model_another_router_just_saved(store: Store, catalogue: Make):
    one, other = catalogue(), catalogue()
    assert QWEN.name not in [card.name for card in (await one.all("default")).models]
    await other.put("default", QWEN)
    tenants = KnownTenants(store, fresh_s=5)

    asked = PutAgent(tenant="default", name="local", config=AgentConfig(model=QWEN.name))
    saved = await AgentHandlers(
        AgentTable(store), LabelTable(store), tenants=tenants, catalogue=one, attachments=cast("Any", None)
    ).on_put(asked)

    assert saved.config.model == QWEN.name
