"""One statement tells whether deliveries are due that another process has stored, and whether there is a webhook."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio

from wayline.notifier.app import open_store
from wayline.store import Store
from wayline.testkit import Database
from wayline.testkit.databases import PASSWORD, role_of

NOON = datetime(2026, 5, 6, 12, tzinfo=UTC)
WEBHOOK = """
INSERT INTO webhooks (tenant, name, uid, config, key_id, sealed, enabled, created_at, updated_at)
VALUES ('acme', 'crm', 'u1', '{}', 'k1', '', true, now(), now())
"""
DELIVERY = """
INSERT INTO deliveries (tenant, id, uid, type, body, state, due_at, occurred_at, created_at)
VALUES ('acme', 'd1', 'u1', 'job.completed', '{}', $1, $2, now(), now())
"""


@pytest_asyncio.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    store = await open_store(database.as_role(role_of("notifier"), PASSWORD))
    yield store
    await store.close()


async def test_an_installation_without_webhooks_has_no_work(store: Store):
    assert await store.true_columns(store.sql.work_due, NOON) == []


@pytest.mark.parametrize(
    ("state", "due_at", "expected"),
    [
        ("pending", NOON, ["deliveries", "webhooks"]),
        ("pending", NOON + timedelta(seconds=1), ["webhooks"]),
        ("delivered", NOON, ["webhooks"]),
        ("failed", NOON, ["webhooks"]),
    ],
)
async def test_only_pending_deliveries_that_are_due_are_work(
    store: Store, state: str, due_at: datetime, expected: list[str]
):
    await store.execute("acme", WEBHOOK)
    await store.execute("acme", DELIVERY, state, due_at)

    assert await store.true_columns(store.sql.work_due, NOON) == expected
