"""What may be spent is decided in Postgres: whole or not at all, once, and never more than the limit."""

import asyncio
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import asyncpg
import pytest

from wayline.contracts.agents import AgentConfig
from wayline.contracts.budgets import DeleteBudget, ListBudgets
from wayline.contracts.errors import NotFound, Reject
from wayline.testkit import Database
from wayline.testkit.walks import cases

from .conftest import NOON, PASSWORD, ROLE, TENANT, Clock, Office, Offices

USD = Decimal


async def test_under_a_dollar_four_routers_grant_33_of_60_holds(offices: Offices):
    routers = [await offices() for _ in range(4)]
    await routers[0].put("cap", "1.00")
    await asyncio.gather(*(routers[n % 4].admit(f"j{n}") for n in range(60)))

    answers = await asyncio.gather(*(routers[n % 4].extend(f"j{n}", "0.03") for n in range(60)))

    assert sum(one.granted for one in answers) == 33
    assert {one.limited_by for one in answers if not one.granted} == {"cap"}
    cap = await routers[0].budget("cap")
    assert (cap.reserved_usd, cap.left_usd, cap.waiting_jobs) == (USD("0.99"), USD("0.01"), 27)


async def test_single_holds_on_many_connections_are_decided_serially(office: Office, database: Database):
    await office.put("cap", "1.00")
    await asyncio.gather(*(office.admit(f"j{n}") for n in range(60)))
    hold = "SELECT granted FROM hold_money('default', ARRAY[$1], '{0.03}', '{null}', '{0}', '{true}', $2)"

    async def ask(jobs: range) -> int:
        conn = await asyncpg.connect(database.as_role(ROLE, PASSWORD))
        try:
            await conn.execute("SET search_path TO router; SELECT set_config('wayline.tenant', 'default', false)")
            return sum([await conn.fetchval(hold, f"j{n}", NOON) for n in jobs])
        finally:
            await conn.close()

    granted = await asyncio.gather(*(ask(range(n, 60, 20)) for n in range(20)))

    assert sum(granted) == 33
    assert (await office.budget("cap")).reserved_usd == USD("0.99")


async def test_a_burst_is_one_statement_that_grants_what_fits(office: Office):
    await office.put("cap", "1.00")
    await asyncio.gather(*(office.admit(f"j{n}") for n in range(60)))
    office.statements.clear()

    answers = await asyncio.gather(*(office.extend(f"j{n}", "0.03") for n in range(60)))

    assert sum(one.granted for one in answers) == 33
    assert len(office.statements) == 1


async def test_concurrent_hold_settle_and_release_never_deadlock(offices: Offices):
    routers = [await offices() for _ in range(4)]
    await routers[0].put("tenant", "5.00")
    await routers[0].put("alice", "2.00", user_id="alice")
    await routers[0].put("critic", "2.00", agent="critic", hard=False)
    jobs = [f"j{n}" for n in range(40)]

    async def live(n: int, job: str) -> None:
        here, there = routers[n % 4], routers[(n + 1) % 4]
        await here.admit(job, agent="critic" if n % 3 else "assistant", user="alice" if n % 2 else None)
        await asyncio.gather(here.extend(job, "0.02"), there.extend(job, "0.04"), here.extend(job, "0.03"))
        await asyncio.gather(there.release(job, "0.02"), here.extend(job, "0.05"))
        # A budget that appears in the middle of it all counts everything exactly once, too.
        appear = [routers[n % 3].put(f"late{n}", "9")] if n % 8 == 0 else []
        await asyncio.gather(here.settle(job, "0.02"), there.settle(job, "0.02"), *appear)

    async with asyncio.timeout(60):
        await asyncio.gather(*(live(n, job) for n, job in enumerate(jobs)))

    tenant, alice, critic = [await routers[0].budget(name) for name in ("tenant", "alice", "critic")]
    assert (tenant.spent_usd, alice.spent_usd, critic.spent_usd) == (USD("0.80"), USD("0.40"), USD("0.52"))
    assert tenant.reserved_usd == alice.reserved_usd == critic.reserved_usd == 0
    for n in range(0, 40, 8):
        late = await routers[0].budget(f"late{n}")
        assert (late.spent_usd, late.reserved_usd) == (USD("0.80"), 0)


async def test_the_tighter_of_job_and_tenant_budget_holds(office: Office):
    await office.put("tenant", "0.05")
    await office.admit("small", cap="0.02")
    await office.admit("large", cap="0.50")

    over_own = await office.extend("small", "0.03")
    over_tenant = await office.extend("large", "0.06")

    assert (over_own.granted, over_own.limited_by, over_own.left_usd) == (False, "job", USD("0.02"))
    assert (over_tenant.granted, over_tenant.limited_by, over_tenant.left_usd) == (False, "tenant", USD("0.05"))
    assert (await office.extend("large", "0.04")).granted
    assert (await office.extend("small", "0.02")).limited_by == "tenant"


async def test_without_a_word_from_anybody_a_job_may_spend_ten_cents(office: Office):
    admitted = await office.admit("j1")

    assert (admitted.cap_usd, admitted.left_usd, admitted.priced_only) == (USD("0.10"), None, False)
    assert (await office.extend("j1", "0.10")).granted
    assert (await office.extend("j1", "0.11")).limited_by == "job"


async def test_of_all_limits_of_a_job_the_least_holds(office: Office):
    assert (await office.admit("j0", cap="0.50")).cap_usd == USD("0.50"), "more than the default, which nobody has set"
    await office.put("each", "0.30", window="job")

    assert (await office.admit("j1")).cap_usd == USD("0.30")
    assert (await office.admit("j2", cap="500")).cap_usd == USD("0.30")
    assert (await office.admit("j3", cap="0.02")).cap_usd == USD("0.02")
    assert (await office.extend("j1", "0.31")).limited_by == "job"
    assert (await office.extend("j2", "0.31")).limited_by == "job"

    await office.agents.put(TENANT, "cheap", AgentConfig(max_cost_usd=USD("0.01")))
    assert (await office.admit("j4", agent="cheap", cap="0.20")).cap_usd == USD("0.01")
    assert (await office.extend("j4", "0.02")).limited_by == "job"


async def test_the_jobs_log_is_the_truth_about_its_own_budget(office: Office):
    await office.admit("j1", cap="0.02")

    assert (await office.extend("j1", "0.03", cap="0.05")).granted
    assert (await office.extend("j1", "0.06")).limited_by == "job"
    await office.budgets.raise_cap(TENANT, "j1", USD("0.06"))
    assert (await office.extend("j1", "0.06")).granted


async def test_only_jobs_in_scope_count(office: Office):
    await office.put("alice", "0.05", user_id="alice")
    await office.put("critic", "0.05", agent="critic")
    await office.admit("a", user="alice")
    await office.admit("b", user="bob", agent="critic")
    await office.admit("c", user="bob")

    assert (await office.extend("a", "0.06")).limited_by == "alice"
    assert (await office.extend("b", "0.06")).limited_by == "critic"
    assert (await office.extend("c", "0.06")).granted
    assert (await office.budget("alice")).reserved_usd == 0


async def test_a_soft_budget_counts_and_alerts_and_refuses_nothing(office: Office):
    await office.put("soft", "0.05", hard=False)
    await office.admit("j1")

    assert (await office.extend("j1", "0.09")).granted
    soft = await office.budget("soft")
    assert (soft.reserved_usd, soft.left_usd, len(soft.raised)) == (USD("0.09"), 0, 1)


async def test_asking_settling_and_releasing_again_change_nothing(office: Office):
    await office.put("cap", "1.00")
    await office.admit("j1")
    for _ in range(3):
        assert (await office.extend("j1", "0.08")).held_usd == USD("0.08")
    assert (await office.extend("j1", "0.05")).held_usd == USD("0.08")
    assert [await office.release("j1", "0.05") for _ in range(2)] == [USD("0.03"), 0]
    assert (await office.budget("cap")).reserved_usd == USD("0.05")

    assert [await office.settle("j1", "0.04") for _ in range(2)] == [True, False]

    cap = await office.budget("cap")
    assert (cap.spent_usd, cap.reserved_usd, cap.left_usd) == (USD("0.04"), 0, USD("0.96"))
    assert await office.store.fetchval(TENANT, "SELECT count(*) FROM budget_holds") == 0
    late = await office.extend("j1", "0.09")
    assert (late.granted, late.limited_by) == (False, "ended")
    assert await office.admit("j1")
    assert (await office.budget("cap")).reserved_usd == 0


async def test_a_job_that_was_never_admitted_holds_nothing(office: Office):
    with pytest.raises(NotFound, match="nobody"):
        await office.extend("nobody", "0.01")


async def test_an_unknown_cost_stays_visible_and_keeps_what_was_held(office: Office):
    await office.put("cap", "1.00")
    await office.admit("j1")
    await office.extend("j1", "0.04")
    await office.settle("j1", None, unsettled="0.01")

    cap = await office.budget("cap")
    assert (cap.spent_usd, cap.reserved_usd, cap.unsettled_usd, cap.unsettled_jobs) == (0, 0, USD("0.05"), 1)
    assert cap.left_usd == USD("0.95")


async def test_the_upper_bound_of_unsettled_calls_is_not_spent_again(office: Office):
    await office.put("cap", "1.00")
    await office.admit("j1")
    await office.extend("j1", "0.06")
    await office.settle("j1", "0.02", unsettled="0.03")

    cap = await office.budget("cap")
    assert (cap.spent_usd, cap.unsettled_usd, cap.unsettled_jobs, cap.left_usd) == (
        USD("0.02"), USD("0.03"), 0, USD("0.95"),
    )  # fmt: skip


async def test_an_unknown_price_is_refused_by_hard_budgets_only(office: Office):
    await office.admit("free")
    await office.admit("own", cap="1")
    await office.put("soft", "1.00", hard=False)
    assert (await office.extend("free", None)).granted
    assert (await office.extend("own", None)).limited_by == "job"

    await office.put("hard", "1.00")

    assert (await office.extend("free", None)).limited_by == "hard"


async def test_unheld_spending_is_counted_at_settlement(office: Office):
    await office.admit("j1")
    await office.put("cap", "1.00")
    await office.settle("j1", "0.07")

    assert (await office.budget("cap")).spent_usd == USD("0.07")


async def test_a_new_budget_counts_what_its_window_has_seen(office: Office, clock: Clock):
    clock.at = NOON - timedelta(days=40)
    await office.admit("old")
    await office.settle("old", "0.09")
    clock.at = NOON
    for job, cost in (("a", "0.01"), ("b", None)):
        await office.admit(job)
        await office.extend(job, "0.02")
        await office.settle(job, cost)
    await office.admit("c")
    await office.extend("c", "0.03")

    month, ever = await office.put("month", "1.00"), await office.put("ever", "1.00", window="total")

    assert (month.spent_usd, month.reserved_usd, month.unsettled_usd) == (USD("0.01"), USD("0.03"), USD("0.02"))
    assert (ever.spent_usd, ever.reserved_usd, ever.unsettled_jobs) == (USD("0.10"), USD("0.03"), 1)
    await office.settle("c", "0.02")
    assert (await office.budget("month")).spent_usd == USD("0.03")


async def test_a_new_limit_keeps_the_counters_a_new_scope_recounts(office: Office):
    await office.put("cap", "0.05")
    await office.admit("a", user="alice")
    await office.admit("b", user="bob")
    await office.extend("a", "0.02")
    await office.extend("b", "0.03")

    assert (await office.put("cap", "0.50")).reserved_usd == USD("0.05")
    assert (await office.put("cap", "0.50", user_id="alice")).reserved_usd == USD("0.02")
    await office.settle("a", "0.01")
    await office.settle("b", "0.01")
    assert (await office.budget("cap")).spent_usd == USD("0.01")


@pytest.mark.parametrize(
    ("window", "zone", "at", "starts_at", "ends_at"),
    cases(
        [
            ("day", "Europe/Berlin", "2026-03-29T12:00Z", "2026-03-28T23:00Z", "2026-03-29T22:00Z"),
            ("day", "Europe/Berlin", "2026-10-25T12:00Z", "2026-10-24T22:00Z", "2026-10-25T23:00Z"),
            ("hour", "Europe/Berlin", "2026-10-25T00:30Z", "2026-10-25T00:00Z", "2026-10-25T01:00Z"),
            ("hour", "Europe/Berlin", "2026-10-25T01:30Z", "2026-10-25T01:00Z", "2026-10-25T02:00Z"),
            ("hour", "Asia/Kolkata", "2026-05-06T12:00Z", "2026-05-06T11:30Z", "2026-05-06T12:30Z"),
            ("week", "America/New_York", "2026-03-08T12:00Z", "2026-03-02T05:00Z", "2026-03-09T04:00Z"),
            ("month", "America/New_York", "2026-11-30T12:00Z", "2026-11-01T04:00Z", "2026-12-01T05:00Z"),
            # Midnight does not exist there on this day.
            ("day", "Africa/Cairo", "2026-04-24T12:00Z", "2026-04-23T22:00Z", "2026-04-24T21:00Z"),
            # Midnight comes twice there on this day.
            ("day", "America/Havana", "2026-11-01T04:30Z", "2026-11-01T04:00Z", "2026-11-02T05:00Z"),
            ("day", "America/Havana", "2026-11-01T05:30Z", "2026-11-01T04:00Z", "2026-11-02T05:00Z"),
            ("day", "America/Havana", "2026-10-31T12:00Z", "2026-10-31T04:00Z", "2026-11-01T04:00Z"),
            ("total", "UTC", "2026-05-06T12:00Z", None, None),
        ]
    ),
)
async def test_a_window_begins_and_ends_by_the_clocks_of_its_zone(
    office: Office, clock: Clock, *, window: str, zone: str, at: str, starts_at: str | None, ends_at: str | None
):
    clock.at = datetime.fromisoformat(at)

    budget = await office.put("cap", "1", window=window, timezone=zone)

    moments = [None if moment is None else datetime.fromisoformat(moment) for moment in (starts_at, ends_at)]
    assert [budget.starts_at, budget.ends_at] == moments


async def test_money_belongs_to_the_window_in_which_it_was_reserved(office: Office, clock: Clock):
    await office.put("day", "0.10", window="day", timezone="Europe/Berlin")
    clock.at = datetime(2026, 3, 29, 21, 59, tzinfo=UTC)
    await office.admit("j1", cap="1")
    await office.extend("j1", "0.08")
    refused = await office.extend("j1", "0.15")
    assert (refused.limited_by, refused.resets_at) == ("day", datetime(2026, 3, 29, 22, tzinfo=UTC))

    clock.at = datetime(2026, 3, 29, 22, 0, tzinfo=UTC)
    assert (await office.budget("day")).reserved_usd == 0
    assert (await office.extend("j1", "0.15")).granted
    assert (await office.budget("day")).reserved_usd == USD("0.07")
    await office.settle("j1", "0.11")

    assert (await office.budget("day")).spent_usd == USD("0.03")
    clock.at = datetime(2026, 3, 29, 21, 0, tzinfo=UTC)
    assert (await office.budget("day")).spent_usd == USD("0.08")


async def test_what_is_released_later_goes_back_to_where_it_was_reserved(office: Office, clock: Clock):
    await office.put("day", "0.10", window="day")
    await office.admit("j1", cap="1")
    await office.extend("j1", "0.08")
    clock.at = NOON + timedelta(days=1)
    await office.extend("j1", "0.10")
    assert await office.release("j1", "0.05") == USD("0.05")

    assert (await office.budget("day")).reserved_usd == 0
    clock.at = NOON
    assert (await office.budget("day")).reserved_usd == USD("0.05")


async def test_an_alert_is_raised_once_a_window_and_limit(office: Office, clock: Clock):
    await office.put("cap", "0.10", window="day", alerts=(USD("0.5"), USD("0.8")))
    await office.admit("j1", cap="1")
    assert (await office.budget("cap")).raised == ()
    await office.extend("j1", "0.05")
    assert [alert.threshold for alert in (await office.budget("cap")).raised] == [USD("0.5")]
    await office.extend("j1", "0.09")
    await office.settle("j1", "0.09")
    raised = (await office.budget("cap")).raised
    assert [(alert.threshold, alert.used_usd) for alert in raised] == [
        (USD("0.5"), USD("0.05")),
        (USD("0.8"), USD("0.09")),
    ]

    assert (await office.put("cap", "1.00", window="day", alerts=(USD("0.5"), USD("0.8")))).raised == ()
    clock.at = NOON + timedelta(days=1)
    assert (await office.budget("cap")).raised == ()


async def test_a_refused_job_that_goes_on_is_not_woken(office: Office, clock: Clock):
    await office.put("cap", "0.02")
    await office.admit("waits")
    await office.admit("goes-on")

    refused = await office.extend("goes-on", "0.03", waits=False)
    await office.extend("waits", "0.03")

    assert (refused.granted, refused.limited_by, refused.held_usd) == (False, "cap", 0)
    assert (await office.budget("cap")).waiting_jobs == 1
    await office.extend("waits", "0.03", waits=False)
    assert (await office.budget("cap")).waiting_jobs == 0


async def test_a_job_refused_again_during_its_wake_up_waits_on(office: Office, clock: Clock):
    sql = office.store.sql
    await office.put("cap", "0.01")
    await office.admit("j1")
    await office.extend("j1", "0.02")
    await office.put("cap", "0.02")
    async with office.store.system() as conn:
        [seen] = await conn.fetch(sql.wakeable, clock.at, 10)
    clock.at = NOON + timedelta(seconds=1)
    await office.put("cap", "0.01")
    await office.extend("j1", "0.02")

    await office.store.execute(TENANT, sql.woken, TENANT, "j1", seen["waits_since"])

    assert (await office.budget("cap")).waiting_jobs == 1


async def test_an_unknown_time_zone_is_refused(office: Office):
    for zone in ("Europe/Atlantis", "XYZ3"):
        with pytest.raises(Reject, match="Europe/Berlin"):
            await office.put("cap", "1", timezone=zone)
    assert (await office.money.on_list(ListBudgets(tenant=TENANT))).budgets == ()


async def test_a_deleted_budget_limits_nothing(office: Office):
    await office.put("cap", "0.01")
    await office.admit("j1")
    assert not (await office.extend("j1", "0.02")).granted

    deleted = [await office.money.on_delete(DeleteBudget(tenant=TENANT, name="cap")) for _ in range(2)]

    assert [one.deleted for one in deleted] == [True, False]
    assert (await office.extend("j1", "0.02")).granted
    assert await office.settle("j1", "0.02")


async def test_no_tenant_sees_or_changes_anothers_money(office: Office, database: Database):
    await office.put("cap", "1.00")
    await office.admit("j1")
    await office.extend("j1", "0.02")

    conn = await asyncpg.connect(database.as_role(ROLE, PASSWORD))
    try:
        await conn.execute("SET search_path TO router; SELECT set_config('wayline.tenant', 'globex', false)")
        for table in ("budgets", "budget_windows", "budget_holds", "budget_alerts", "reservations"):
            assert await conn.fetchval(f"SELECT count(*) FROM {table}") == 0, table
        held = await conn.fetch("SELECT * FROM hold_money('default', '{j1}', '{1}', '{9}', '{0}', '{true}', now())")
        settled = await conn.fetch("SELECT settle_money('default', '{j1}', '{1}', '{0}', now())")
        assert (held, settled) == ([], [])
        assert await conn.fetchval("SELECT release_money('default', 'j1', 0, 0)") == 0
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await conn.fetch("SELECT put_budget('default', 'mine', 1, 'day', 'UTC', NULL, NULL, true, '{}', now())")
    finally:
        await conn.close()
    assert (await office.budget("cap")).reserved_usd == USD("0.02")


async def test_budgets_nearest_to_their_limit_are_shown_some_of_each_tenant(office: Office):
    office.clock.at = datetime.now(UTC)
    for n, spent in enumerate(("0.90", "0.80", "0.10")):
        await office.put(f"own-{n}", "1.00", user_id=f"u{n}")
        await office.admit(f"j{n}", user=f"u{n}", cap="1")
        await office.extend(f"j{n}", spent)
        await office.settle(f"j{n}", spent)

    async def shown(most: int, per_tenant: int) -> list[tuple[str, int]]:
        async with office.store.system() as conn:
            rows = await conn.fetch(office.store.sql.use_of_budgets, most, per_tenant)
        return [(row["budget"], row["budgets"]) for row in rows]

    assert await shown(9, 2) == [("own-0", 3), ("own-1", 3)]
    assert await shown(1, 9) == [("own-0", 3)]
