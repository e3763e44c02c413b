"""`kill -9` of a gateway around a paid call over `/mcp`: the tool acts once, and the books hold what it charged."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from wayline.chassis import Failpoint
from wayline.contracts.budgets import Budget, BudgetConfig, BudgetList, ListBudgets, PutBudget
from wayline.contracts.errors import Retry
from wayline.contracts.tools import ListTools, ToolList
from wayline.embedded.ports import free_port
from wayline.testkit import until

from .conftest import MakePlatform
from .kill_points import kill_points
from .platform import ONCE, TENANT, FaultPlatform

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

PROTOCOL = "2026-07-28"
PRICE = Decimal("0.01")
"""What the effects server says that a payment charged."""
MOST = Decimal("0.02")
"""What a payment is declared to charge at most."""
NOTHING = Decimal(0)
POINTS = {
    # Its money is held, and the registry was not asked.
    Failpoint.GATEWAY_HOLD_AFTER: 0,
    # It has acted, and no budget has counted it.
    Failpoint.GATEWAY_COUNT_BEFORE: 1,
    # The budgets have, and the ledger has only what it may have cost.
    Failpoint.GATEWAY_COUNT_AFTER: 1,
}
"""How often the tool has acted when its gateway is killed there."""


@dataclass
class Till:
    """The platform, what the month's budget says, and a client of `/mcp`."""

    platform: FaultPlatform
    port: int

    async def pay(self, key: str) -> dict[str, Any]:
        """Pay under a key, as an MCP client that keeps nothing between two calls."""
        about = {
            "io.modelcontextprotocol/protocolVersion": PROTOCOL,
            "io.modelcontextprotocol/clientInfo": {"name": "till", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
            "wayline/key": key,
        }
        headers = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": PROTOCOL,
            "Mcp-Method": "tools/call",
            "Mcp-Name": ONCE,
        }
        params = {"name": ONCE, "arguments": {}, "_meta": about}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        async with httpx2.AsyncClient(timeout=60) as http:
            answer = await http.post(f"http://127.0.0.1:{self.port}/mcp", json=body, headers=headers)
        return answer.json()["result"]

    async def killed_while_paying(self, point: Failpoint, key: str) -> None:
        """Pay under a key, at a gateway that dies there."""
        await self.platform.fleet.stop("gateway")
        await self.platform.fleet.ensure("router", "tool_registry", "tracing")
        doomed = await self.platform.fleet.start("gateway", point)
        # A charge is counted beside its answer, which may still arrive.
        with suppress(httpx2.TransportError):
            await self.pay(key)
        await self.platform.until_dead(doomed)
        await self.platform.fleet.start("gateway")

    async def month(self) -> Budget:
        [month] = (await self.platform.bus.ask(ListBudgets(tenant=TENANT), BudgetList)).budgets
        return month

    async def until_month_moved(self, before: Budget, *, spent: Decimal, unsettled: Decimal) -> None:
        """Wait until the budget has counted so much more, and holds nothing."""

        async def moved() -> bool:
            now = await self.month()
            grown = now.spent_usd - before.spent_usd, now.unsettled_usd - before.unsettled_usd
            return (*grown, now.reserved_usd) == (spent, unsettled, NOTHING)

        await until(moved, why=f"the budget has counted {spent} and {unsettled} unsettled")

    async def until_ledger_has(self, rows: int, **figures: Decimal | bool | None) -> None:
        """Wait until the newest row of the ledger, of so many, says this."""

        async def has() -> bool:
            found = await self.platform.sql("SELECT * FROM tracing.ledger WHERE tool = $1 ORDER BY at", ONCE)
            return len(found) == rows and {name: found[-1][name] for name in figures} == figures

        await until(has, why=f"the ledger has {rows} payments, the last one with {figures}")

    async def rows(self) -> int:
        """Return how many payments the ledger has."""
        return (await self.platform.sql("SELECT count(*) AS n FROM tracing.ledger WHERE tool = $1", ONCE))[0]["n"]

    @property
    def acted(self) -> int:
        return self.platform.effects.count("pay_once")

    async def let_a_day_pass(self) -> None:
        """Make every held charge a day older, and start the router anew: it looks for lost ones at its start."""
        await self.platform.sql("UPDATE router.reservations SET reserved_at = reserved_at - interval '25 hours'")
        await self.platform.fleet.stop("router")
        await self.platform.fleet.start("router")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def till(make_platform: MakePlatform) -> AsyncIterator[Till]:
    platform = await make_platform("gateway", "tracing")
    port = free_port()
    charge = {"pay_once": {"charge": {"usd": str(MOST)}}}
    platform.fleet.set("gateway", WAYLINE_HTTP_PORT=str(port))
    platform.fleet.set("tool_registry", WAYLINE_TOOL_REGISTRY_SERVERS=[platform.effects.settings(tools=charge)])
    await platform.fleet.ensure("router", "tool_registry", "tracing")
    budget = PutBudget(tenant=TENANT, name="month", config=BudgetConfig(limit_usd=Decimal(5)))
    await platform.bus.ask(budget, Budget)

    async def listed() -> bool:
        try:
            found = await platform.bus.ask(ListTools(tenant=TENANT, patterns=(ONCE,)), ToolList)
        except Retry:
            return False
        return bool(found.tools)

    await until(listed, within=60, why="the tool is listed")
    yield Till(platform, port)


@pytest.mark.parametrize("point", kill_points(((one,) for one in POINTS), {Failpoint.GATEWAY_COUNT_BEFORE}))
async def test_the_same_key_again_pays_once(till: Till, point: Failpoint):
    before, acted, rows, key = await till.month(), till.acted, await till.rows(), f"again {point}"

    await till.killed_while_paying(point, key)
    acted_when_killed, told = till.acted - acted, await till.rows() - rows
    paid = [await till.pay(key), await till.pay(key)]

    assert (acted_when_killed, told) == (POINTS[point], 1)
    assert [one["_meta"]["wayline/cost_usd"] for one in paid] == ["0.010000000"] * 2
    await till.until_month_moved(before, spent=PRICE, unsettled=NOTHING)
    await till.until_ledger_has(rows + 1, cost_usd=PRICE, settled=True, upper_usd=None)
    assert till.acted == acted + 1
    assert till.platform.effects.repeated("pay_once") == {}


@pytest.mark.parametrize("point", kill_points(((one,) for one in POINTS), {Failpoint.GATEWAY_HOLD_AFTER}))
async def test_a_charge_that_no_client_asks_for_again_is_settled(till: Till, point: Failpoint):
    before, rows, key = await till.month(), await till.rows(), f"never {point}"
    counted = point is Failpoint.GATEWAY_COUNT_AFTER

    await till.killed_while_paying(point, key)
    await till.until_ledger_has(rows + 1, cost_usd=None, lower_usd=NOTHING, upper_usd=MOST)
    held = await till.month()
    await till.let_a_day_pass()

    assert held.reserved_usd - before.reserved_usd == (NOTHING if counted else MOST)
    spent, unsettled = (PRICE, NOTHING) if counted else (NOTHING, MOST)
    await till.until_month_moved(before, spent=spent, unsettled=unsettled)
    # Who asks for it later is given the result, and what the budget has counted already is enough for it.
    late = await till.pay(key)
    assert late["_meta"]["wayline/cost_usd"] == "0.010000000"
    await till.until_ledger_has(rows + 1, cost_usd=PRICE, settled=True, upper_usd=None)
    await till.until_month_moved(before, spent=spent, unsettled=unsettled)
    assert till.platform.effects.repeated("pay_once") == {}
