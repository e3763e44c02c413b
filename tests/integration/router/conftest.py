"""The router's tables on a real database, and routers that share them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from wayline.contracts.agents import AgentConfig
from wayline.contracts.budgets import (
    Budget,
    BudgetConfig,
    ExtendBudget,
    Extended,
    ListBudgets,
    PutBudget,
    ReleaseBudget,
)
from wayline.router.admission.admission_table import AdmissionTable
from wayline.router.admission.conditions import AdmissionRequest, Admitted
from wayline.router.agents.agent_table import AgentTable
from wayline.router.agents.label_table import LabelTable
from wayline.router.app import open_store
from wayline.router.money.budget_table import BudgetTable
from wayline.router.money.handlers import MoneyHandlers
from wayline.router.tenants.known_tenants import KnownTenants
from wayline.store import Store
from wayline.testkit import Database
from wayline.testkit.databases import PASSWORD, role_of

ROLE = role_of("router")
TENANT = "default"
NOON = datetime(2026, 5, 6, 12, tzinfo=UTC)


@dataclass
class Clock:
    """The moment that every statement of a test is made at."""

    at: datetime = NOON

    def __call__(self) -> datetime:
        return self.at


@dataclass
class Office:
    """One router's view of the tables, with a pool of its own."""

    store: Store
    clock: Clock
    statements: list[str] = field(default_factory=list)
    """The statements it has made, by their first word."""

    def __post_init__(self) -> None:
        self.agents = AgentTable(self.store)
        self.labels = LabelTable(self.store)
        self.admissions = AdmissionTable(self.store, job_budget_usd=Decimal("0.10"))
        self.known_tenants = KnownTenants(self.store, fresh_s=5)
        self.budgets = BudgetTable(self.store, job_budget_usd=Decimal("0.10"), moment=self.clock)
        self.money = MoneyHandlers(self.budgets, tenants=self.known_tenants, changed=lambda: None)
        fetch = self.store.fetch

        async def counted(tenant: str, sql: str, *args: Any) -> Any:
            self.statements.append(sql)
            return await fetch(tenant, sql, *args)

        self.store.fetch = counted  # type: ignore[method-assign]

    async def admit(
        self, job_id: str, *, agent: str = "assistant", user: str | None = None, cap: str | None = None
    ) -> Admitted:
        request = AdmissionRequest(job_id, agent, user, None if cap is None else Decimal(cap))
        admitted = await self.admissions.admit(TENANT, request)
        assert isinstance(admitted, Admitted)
        # Admission is of now; what a test is about may be another day.
        await self.store.execute(
            TENANT, "UPDATE reservations SET reserved_at = $1 WHERE job_id = $2", self.clock.at, job_id
        )
        return admitted

    async def extend(self, job_id: str, total: str | None, *, cap: str | None = None, waits: bool = True) -> Extended:
        return await self.money.on_extend(
            ExtendBudget(
                tenant=TENANT,
                job_id=job_id,
                attempt_id=f"{TENANT}/{job_id}/1/m1",
                total_usd=None if total is None else Decimal(total),
                cap_usd=None if cap is None else Decimal(cap),
                waits=waits,
            )
        )

    async def settle(self, job_id: str, cost: str | None, *, unsettled: str = "0") -> bool:
        return await self.budgets.settle(TENANT, job_id, None if cost is None else Decimal(cost), Decimal(unsettled))

    async def release(self, job_id: str, spent: str) -> Decimal:
        asked = ReleaseBudget(tenant=TENANT, job_id=job_id, spent_usd=Decimal(spent))
        return (await self.money.on_release(asked)).released_usd

    async def put(self, name: str, limit: str, **config: Any) -> Budget:
        wanted = BudgetConfig(limit_usd=Decimal(limit), **config)
        return await self.money.on_put(PutBudget(tenant=TENANT, name=name, config=wanted))

    async def budget(self, name: str) -> Budget:
        [found] = (await self.money.on_list(ListBudgets(tenant=TENANT, name=name))).budgets
        return found


Offices = Callable[[], Awaitable[Office]]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def offices(database: Database, clock: Clock) -> AsyncIterator[Offices]:
    """Open routers' views of one set of tables, as many as a test likes."""
    opened: list[Office] = []

    async def another() -> Office:
        store = await open_store(database.as_role(ROLE, PASSWORD))
        office = Office(store, clock)
        if not opened:
            await office.agents.seed({"assistant": AgentConfig(), "critic": AgentConfig()})
        opened.append(office)
        return office

    yield another
    for office in opened:
        await office.store.close()


@pytest.fixture
async def office(offices: Offices) -> Office:
    return await offices()
