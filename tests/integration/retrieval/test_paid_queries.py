"""A paid call is reported once: by the caller of its search, or by retrieval."""

from __future__ import annotations

from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest_asyncio

from wayline.retrieval.embeddings.embedding_payments import Price
from wayline.retrieval.embeddings.payments import OPEN_MAX_S, Payments, TenantAccount
from wayline.retrieval.postgres import open_store
from wayline.store import Store
from wayline.testkit import Database
from wayline.testkit.databases import PASSWORD, role_of

TOKENS = 1_000_000
PRICE = Decimal(2)
UNUSED: Any = None


@pytest_asyncio.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    store = await open_store(database.as_role(role_of("retrieval"), PASSWORD), pool_size=2, wait_s=0)
    yield store
    await store.close()


async def paid(store: Store, *, caller_pays: bool, tokens: int | None = TOKENS) -> TenantAccount:
    payments = Payments(store, UNUSED, "openai", "m", lambda model: Price(PRICE))
    account = payments.account("acme", holds=False, caller_pays=caller_pays)
    assert account is not None
    async with account.paying(["lease"]) as call:
        call.answered(tokens)
    return account


async def to_report(store: Store) -> int:
    async with store.system() as conn:
        rows = await conn.fetch(store.sql.embeddings_to_report, OPEN_MAX_S, 10)
    assert (await store.true_columns(store.sql.work_due, OPEN_MAX_S) == ["payments"]) == bool(rows)
    return len(rows)


async def kept(store: Store) -> int:
    return await store.fetchval("acme", "SELECT count(*) FROM embedding_calls")


async def test_nobody_reports_a_call_while_its_search_goes_on(store: Store):
    account = await paid(store, caller_pays=True)

    assert await to_report(store) == 0
    assert await account.hand_over() == PRICE
    assert await kept(store) == 0


async def test_a_call_that_no_caller_pays_for_is_reported_at_once(store: Store):
    await paid(store, caller_pays=False)

    assert await to_report(store) == 1


async def test_a_call_that_nobody_took_over_in_time_stays(store: Store):
    account = await paid(store, caller_pays=True)
    await store.execute("acme", "UPDATE embedding_calls SET report_from = now()")

    assert await to_report(store) == 1
    assert await account.hand_over() is None
    assert await kept(store) == 1


async def test_a_call_of_unknown_cost_is_reported_after_its_search(store: Store):
    account = await paid(store, caller_pays=True, tokens=None)

    assert await to_report(store) == 0
    assert await account.hand_over() is None
    assert await to_report(store) == 1
