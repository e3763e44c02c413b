"""Charges of tools that were called outside of any job, and what becomes of those that nobody counts."""

from datetime import timedelta
from decimal import Decimal

import pytest

from wayline.contracts.budgets import ChargeBudgets, HoldCharge
from wayline.router.money.lost_charges import LOST_AFTER_S

from .conftest import NOON, TENANT, Clock, Office

USD = Decimal
LATER = NOON + timedelta(seconds=LOST_AFTER_S + 1)
INDEXED_COLUMNS = """
    SELECT attname FROM pg_index
    JOIN pg_depend ON objid = indexrelid AND refobjid = indrelid
    JOIN pg_attribute ON attrelid = indrelid AND attnum = refobjsubid
    WHERE indrelid = 'reservations'::regclass
"""


async def hold(office: Office, charge_id: str, usd: str) -> bool:
    held = await office.money.on_hold_charge(HoldCharge(tenant=TENANT, charge_id=charge_id, usd=USD(usd)))
    return held.granted


async def settle_lost(office: Office) -> int:
    return await office.budgets.settle_lost(after_s=LOST_AFTER_S, at_most=10)


async def open_charges(office: Office) -> list[str]:
    """Return the charges in the index of those that may be lost."""
    sql = "SELECT job_id FROM reservations WHERE NOT is_settled_charge AND starts_with(job_id, 'tool/')"
    async with office.store.system() as conn:
        return [row["job_id"] for row in await conn.fetch(sql)]


async def test_a_charge_that_nobody_counts_becomes_unsettled_in_time(office: Office, clock: Clock):
    await office.put("cap", "1.00")
    await office.admit("j1")
    await office.extend("j1", "0.05")
    assert await hold(office, "tool/lost", "0.02")
    assert await hold(office, "embedding/slow", "0.03")

    clock.at = LATER - timedelta(seconds=2)
    assert await settle_lost(office) == 0
    clock.at = LATER
    assert [await settle_lost(office), await settle_lost(office)] == [1, 0]
    assert await open_charges(office) == []

    cap = await office.budget("cap")
    # What jobs and embeddings hold is counted by others.
    assert (cap.unsettled_usd, cap.reserved_usd, cap.spent_usd) == (USD("0.02"), USD("0.08"), 0)
    late = ChargeBudgets(tenant=TENANT, charge_id="tool/lost", cost_usd=USD("0.01"))
    assert not (await office.money.on_charge(late)).settled


async def test_a_settlement_changes_no_column_of_an_index_for_a_job(office: Office):
    """An update within its page writes no index, and each job makes one: with its state in an index there is none."""
    async with office.store.system() as conn:
        changes = {"state", "settled_usd", "unsettled_usd", "settled_at", "reserved_usd"}
        indexed = await conn.fetch(INDEXED_COLUMNS)

    assert {row["attname"] for row in indexed} & changes == set()


async def test_a_charge_that_was_refused_may_be_asked_for_again(office: Office, clock: Clock):
    await office.put("cap", "0.01")
    assert not await hold(office, "tool/order", "0.02")
    clock.at = LATER

    assert await settle_lost(office) == 0
    assert not await hold(office, "tool/order", "0.02")
    await office.put("cap", "0.05")
    assert await hold(office, "tool/order", "0.02")


async def test_a_lost_charge_that_cannot_be_settled_holds_up_no_other(
    office: Office, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    await office.put("cap", "1.00")
    for charge_id, usd in (("tool/bad", "0.02"), ("tool/good", "0.03")):
        assert await hold(office, charge_id, usd)
    settle = office.budgets.settle

    async def unless_bad(tenant: str, job_id: str, *usd: Decimal | None) -> bool:
        if job_id == "tool/bad":
            raise ZeroDivisionError("a defect")
        return await settle(tenant, job_id, *usd)  # type: ignore[arg-type]

    monkeypatch.setattr(office.budgets, "settle", unless_bad)
    clock.at = LATER
    await settle_lost(office)

    cap = await office.budget("cap")
    assert (cap.unsettled_usd, cap.reserved_usd) == (USD("0.03"), USD("0.02"))
