"""How far a key may raise what a job may spend."""

from __future__ import annotations

from decimal import Decimal

from wayline.chassis import Bus
from wayline.contracts.budgets import Budget, BudgetList, ListBudgets
from wayline.gateway.adapters.keys import create_key
from wayline.testkit import Platform

from .conftest import start_gateway
from .others import Others
from .story import Story


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


async def test_only_an_admin_raises_a_job_beyond_its_limits(platform: Platform, bus: Bus, others: Others):
    each = Budget(name="each", limit_usd=Decimal("0.30"), window="job", agent="assistant")
    another = Budget(name="another", limit_usd=Decimal("0.01"), window="job", agent="another")
    await others.answer(ListBudgets, lambda _: BudgetList(budgets=(each, another), job_budget_usd=Decimal("0.10")))
    store = await platform.store("gateway")
    writer = bearer(await create_key(store, "default", "writer", scopes=("read", "write")))
    admin = bearer(await create_key(store, "default", "admin", scopes=("read", "write", "admin")))
    await store.close()
    gateway = await start_gateway(platform)
    await Story(bus, "default", "running").begin()

    answers = [
        await gateway.client.post("/v1/jobs/running/budget", json={"budget_usd": usd}, headers=key)
        for usd, key in (("0.30", writer), ("0.31", writer), ("0.31", admin))
    ]

    assert [answer.status_code for answer in answers] == [202, 403, 202]
    assert "scope 'admin'" in answers[1].json()["detail"]
