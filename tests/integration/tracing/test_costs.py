"""Money in the ledger: every call once, what caches did, what nobody knows, and the same sum wherever one looks."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from prometheus_client import REGISTRY

from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.chat import AssistantMessage
from wayline.contracts.errors import Refused
from wayline.contracts.jobs import Failure, FiredBy, SubmittedBy
from wayline.contracts.money import JobCosts, Usage
from wayline.contracts.traces import CostGroup, CostRow, CostTable, GetCosts, JobPage, ListJobs
from wayline.journal import fold, view
from wayline.testkit import until

from .conftest import Log, Start, TracingPlatform, flat

USD = Decimal


class Spender(Log):
    """A log whose calls have prices, caches and accidents."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.told: list[e.Event] = []

    def _say(self, kind: type[e.Event], **fields: Any) -> e.Event:
        event = super()._say(kind, **fields)
        self.told.append(event)
        return event

    def _call(self, step: int, attempt: int) -> dict[str, Any]:
        attempt_id = ids.attempt_id(self.tenant, self.job_id, step, attempt)
        return {"step": step, "attempt": attempt, "attempt_id": attempt_id}

    def asks(self, step: int, attempt: int = 1, *, worst: str | None = "0.05", model: str = "claude") -> e.Event:
        usd = None if worst is None else USD(worst)
        return self._say(
            e.ModelRequested, **self._call(step, attempt), provider="anthropic", model=model, worst_usd=usd
        )

    def hears(self, step: int, attempt: int = 1, *, cost: str | None = "0.001", saved: str | None = None) -> e.Event:
        return self._say(
            e.ModelCompleted,
            **self._call(step, attempt),
            message=AssistantMessage(text="so"),
            usage=Usage(input=10, cache_read=4, output=5),
            cost_usd=None if cost is None else USD(cost),
            saved_usd=None if saved is None else USD(saved),
            stop_reason="end",
            duration_ms=10,
        )

    def loses(self, step: int, attempt: int = 1, *, bounds: tuple[str, str | None] | None = None) -> e.Event:
        unsettled = None
        if bounds is not None:
            upper = None if bounds[1] is None else USD(bounds[1])
            unsettled = e.Bounds(lower_usd=USD(bounds[0]), upper_usd=upper)
        error = Failure(code="stream_cut" if bounds else "rate_limited", message="gone")
        return self._say(e.ModelFailed, **self._call(step, attempt), error=error, retryable=True, unsettled=unsettled)

    def aside(self, purpose: str, cost: str | None, n: int = 1) -> e.Event:
        return self._say(
            e.AuxiliaryCompleted,
            purpose=purpose,
            attempt_id=f"{self.tenant}/{self.job_id}/aux/{n}",
            provider="anthropic",
            model="haiku",
            usage=Usage(input=3, output=1),
            cost_usd=None if cost is None else USD(cost),
            duration_ms=5,
        )

    def asks_aside(self, purpose: str, worst: str) -> e.Event:
        named = {"purpose": purpose, "attempt_id": f"{self.tenant}/{self.job_id}/aux/1"}
        return self._say(e.AuxiliaryRequested, **named, provider="anthropic", model="haiku", worst_usd=USD(worst))

    def loses_aside(self, purpose: str, upper: str | None) -> e.Event:
        return self._say(
            e.AuxiliaryFailed,
            purpose=purpose,
            attempt_id=f"{self.tenant}/{self.job_id}/aux/1",
            error=Failure(code="timeout", message="late"),
            unsettled=None if upper is None else e.Bounds(lower_usd=USD(0), upper_usd=USD(upper)),
        )


async def rows(platform: TracingPlatform, *group_by: str, tz: str = "UTC") -> list[CostRow]:
    asked = GetCosts.model_validate({"tenant": "acme", "group_by": group_by, "tz": tz})
    return list((await platform.bus.ask(asked, CostTable)).rows)


async def test_every_cost_of_a_job_agrees_in_all_places(platform: TracingPlatform, start: Start):
    await start()
    log = Spender(platform.bus)
    await log.append(log.submitted(), log.routed(), log.aside("classification", "0.0004"))
    await log.append(log.claimed(), log.asks(1))
    await log.append(log.loses(1, bounds=("0.002", "0.03")), log.asks(1, 2), log.loses(1, 2), log.asks(1, 3))
    await log.append(log.claimed(epoch=2), log.loses(1, 3, bounds=("0", "0.05")))
    await log.append(log.asks(1, 4), log.hears(1, 4, saved="0.0005"))
    await log.append(log.asked_tool(1), log.tool_answered(1, cost="0.01"), log.asks(2), log.hears(2, saved="-0.0002"))
    await log.append(log.completed())
    await platform.wait_until_read()

    shown = view(fold(log.told))
    assert shown.costs == JobCosts(
        model={"anthropic/claude": USD("0.002")},
        tool={"search": USD("0.01")},
        aux={"classification": USD("0.0004")},
        saved_usd=USD("0.0005"),
        lost_usd=USD("0.0002"),
        unsettled_calls=2,
        unsettled_lower_usd=USD("0.002"),
        unsettled_upper_usd=USD("0.08"),
    )
    [listed] = (await platform.bus.ask(ListJobs(tenant="acme"), JobPage)).jobs
    assert listed.costs == shown.costs
    [all_of_it] = await rows(platform, "job")
    assert (all_of_it.cost_usd, all_of_it.calls, all_of_it.calls_unknown) == (shown.cost_usd, 7, 0)
    assert (all_of_it.saved_usd, all_of_it.lost_usd) == (USD("0.0005"), USD("0.0002"))
    assert (all_of_it.calls_unsettled, all_of_it.unsettled_lower_usd, all_of_it.unsettled_upper_usd) == (
        2, USD("0.002"), USD("0.08"),
    )  # fmt: skip
    trace = await platform.trace("j1")
    assert trace.totals.cost_usd == sum(span.cost_usd or 0 for span in flat(trace.root)) == shown.cost_usd
    assert trace.totals.calls_unsettled == 2


async def test_costs_are_grouped_by_kind_session_tenant_and_job(platform: TracingPlatform, start: Start):
    await start()
    log = Spender(platform.bus)
    await log.append(log.submitted(), log.routed(), log.aside("embedding", "0.0004"))
    await log.append(log.claimed(), log.asks(1), log.hears(1), log.asked_tool(1), log.tool_answered(1, cost="0.01"))
    await log.append(log.completed())
    await platform.wait_until_read()

    kinds = {row.group["kind"]: row.cost_usd for row in await rows(platform, "kind")}
    assert kinds == {"model": USD("0.001"), "tool": USD("0.01"), "aux": USD("0.0004")}
    [row] = await rows(platform, "tenant", "session", "job", "user")
    assert row.group == {"tenant": "acme", "session": "s1", "job": "j1", "user": "u1"}
    assert row.cache_read_share == round(4 / 13, 6)


async def test_costs_are_of_those_that_meet_every_filter(platform: TracingPlatform, start: Start):
    await start()
    log = Spender(platform.bus, at=datetime(2026, 3, 28, 23, 30, tzinfo=UTC))
    await log.append(log.submitted(tags=("team:a", "case:7")), log.routed(), log.aside("embedding", "0.0004"))
    await log.append(log.claimed(), log.asks(1), log.hears(1), log.asked_tool(1), log.tool_answered(1, cost="0.01"))
    await log.append(log.completed())
    await platform.wait_until_read()

    async def spent(*group_by: str, **filters: Any) -> dict[str, str]:
        asked = GetCosts.model_validate({"tenant": "acme", "group_by": group_by or ("kind",), **filters})
        table = await platform.bus.ask(asked, CostTable)
        assert set(table.filtered_by) == filters.keys() & {"tags", "agent_version", "agent_label"}
        return {"/".join(row.group.values()): str(row.cost_usd) for row in table.rows}

    every = {"tool": "0.01", "model": "0.001", "aux": "0.0004"}
    assert await spent(tags=("team:a",), agent="assistant", user_id="u1", session_id="s1", job_id="j1") == every
    for nothing in (
        {"tags": ("team:b",)},
        {"agent": "x"},
        {"user_id": "x"},
        {"session_id": "x"},
        {"job_id": "x"},
        {"agent_version": 4},
        {"agent_label": "x"},
    ):
        assert await spent(**nothing) == {}
    assert await spent(model="claude") == await spent(model="anthropic/claude") == {"model": "0.001"}
    assert await spent(tool="search") == {"tool": "0.01"}
    assert await spent(until=datetime(2026, 3, 28, tzinfo=UTC)) == {}
    assert list(await spent("hour", tz="Europe/Berlin")) == ["2026-03-29T00:00"]
    assert await spent("version", "label", model="claude") == {"3/candidate": "0.001"}
    assert await spent(agent_version=3, agent_label="candidate") == every
    assert await spent("tag", model="claude") == {"team:a": "0.001", "case:7": "0.001"}
    by_tag = await platform.bus.ask(GetCosts(tenant="acme", group_by=("tag",)), CostTable)
    assert by_tag.total is not None and (by_tag.groups, by_tag.total.cost_usd) == (2, USD("0.0114"))
    assert await spent("purpose", "provider", model="claude") == {"-/anthropic": "0.001"}


async def test_costs_by_day_use_the_requested_time_zone(platform: TracingPlatform, start: Start):
    await start()
    log = Spender(platform.bus, at=datetime(2026, 3, 28, 23, 30, tzinfo=UTC))
    await log.append(log.submitted(), log.routed(), log.claimed(), log.asks(1), log.hears(1), log.completed())
    await platform.wait_until_read()

    assert [row.group["day"] for row in await rows(platform, "day")] == ["2026-03-28"]
    assert [row.group["day"] for row in await rows(platform, "day", tz="Europe/Berlin")] == ["2026-03-29"]


async def test_an_unknown_time_zone_is_refused_even_without_costs(platform: TracingPlatform, start: Start):
    await start()

    async def refused(*group_by: str) -> str:
        with pytest.raises(Refused, match="Europe/Atlantis") as told:
            await rows(platform, *group_by, tz="Europe/Atlantis")
        return told.value.code

    assert {await refused("day"), await refused("model")} == {"unknown_timezone"}
    log = Spender(platform.bus)
    await log.append(log.submitted(), log.routed(), log.claimed(), log.asks(1), log.hears(1), log.completed())
    await platform.wait_until_read()
    assert {await refused("day"), await refused("model")} == {"unknown_timezone"}
    assert await rows(platform, "model", tz="Europe/Berlin") != []


async def test_a_refused_call_costs_nothing_and_is_not_unknown(platform: TracingPlatform, start: Start):
    await start()
    log = Spender(platform.bus)
    await log.append(log.submitted(), log.routed(), log.claimed(), log.asks(1), log.loses(1), log.asks(1, 2))
    await log.append(log.hears(1, 2, cost=None), log.completed())
    await platform.wait_until_read()

    [row] = await rows(platform, "model")
    assert (row.calls, row.calls_unknown, row.calls_unsettled, row.cost_usd) == (2, 1, 0, 0)


async def test_an_unknown_bound_makes_the_upper_bound_unknown(platform: TracingPlatform, start: Start):
    await start()
    log = Spender(platform.bus)
    await log.append(log.submitted(), log.routed(), log.claimed(), log.asks(1, worst=None), log.cancelled())
    await platform.wait_until_read()

    [row] = await rows(platform, "model")
    assert (row.calls_unsettled, row.unsettled_lower_usd, row.unsettled_upper_usd) == (1, 0, None)
    assert (await platform.trace("j1")).totals.cost_usd == 0


async def test_log_ledger_spans_and_metric_have_equal_sums(platform: TracingPlatform, start: Start):
    """Of random jobs with retries, cuts, aborts, auxiliary calls and dead holders."""
    await start()
    chance = random.Random(20261122)
    logs = [Spender(platform.bus, job_id=f"r{n}") for n in range(40)]
    for log in logs:
        await live(log, chance)
    await platform.wait_until_read()

    total = sum((view(fold(log.told)).cost_usd or USD(0) for log in logs), USD(0))
    ledger = sum((row.cost_usd for row in await rows(platform, "model", "tool", "kind")), USD(0))
    spans = await platform.rows("SELECT sum(cost_usd) AS usd FROM spans")
    assert total == ledger == spans[0]["usd"] > 0
    lost = {call for log in logs for call in unsettled_calls(log)}
    kept = {row["attempt_id"] for row in await platform.rows("SELECT attempt_id FROM ledger WHERE NOT settled")}
    assert kept == lost != set()

    def exported() -> Decimal:
        samples = [s for metric in REGISTRY.collect() for s in metric.samples if s.name == "wayline_ledger_cost_usd"]
        return USD(str(sum(sample.value for sample in samples))).quantize(USD("1e-9"))

    await until(lambda: exported() == total, why="the gauge has read the ledger")


async def live(log: Spender, chance: random.Random) -> None:
    """One random job, to its end."""

    def price() -> str:
        return f"0.{chance.randrange(10**9):09d}"

    await log.append(log.submitted(), log.routed())
    await log.append(log.claimed())
    for step in range(1, chance.randrange(2, 5)):
        attempt = 1
        await log.append(log.asks(step))
        while (fate := chance.choice(("ends", "ends", "refused", "cut", "killed"))) != "ends":
            if fate == "killed":
                await log.append(log.claimed(epoch=attempt + 1))
            else:
                await log.append(log.loses(step, attempt, bounds=("0", price()) if fate == "cut" else None))
            attempt += 1
            await log.append(log.asks(step, attempt))
        await log.append(log.hears(step, attempt, cost=price()))
        if chance.random() < 0.3:
            await log.append(log.aside("rerank", price(), n=step))
    if chance.random() < 0.3:
        await log.append(log.asks(9))
        await log.append(log.cancelled())
    else:
        await log.append(log.completed())


def unsettled_calls(log: Spender) -> set[str]:
    """The attempts that began and whose usage never came, unless the provider refused them."""
    began = {event.attempt_id for event in log.told if isinstance(event, e.ModelRequested)}
    known = {
        event.attempt_id
        for event in log.told
        if isinstance(event, e.ModelCompleted) or (isinstance(event, e.ModelFailed) and event.unsettled is None)
    }
    return began - known


@pytest.mark.parametrize(("upper", "unsettled"), [("0.002", 1), (None, 0)], ids=["cut", "refused"])
async def test_a_failed_auxiliary_call_is_unsettled_only_if_billable(
    platform: TracingPlatform, start: Start, upper: str | None, unsettled: int
):
    await start()
    log = Spender(platform.bus)
    await log.append(log.submitted(), log.routed())
    await log.append(log.claimed(), log.asks_aside("classification", "0.002"))
    await log.append(log.loses_aside("classification", upper), log.asks(1))
    await log.append(log.hears(1), log.completed())
    await platform.wait_until_read()

    found = {row.group["kind"]: row for row in await rows(platform, "kind")}
    shown = view(fold(log.told))

    assert shown.costs is not None
    assert shown.costs.unsettled_calls == found["aux"].calls_unsettled == unsettled
    assert shown.costs.unsettled_upper_usd == found["aux"].unsettled_upper_usd == USD(upper or 0)
    assert (found["aux"].cost_usd, found["model"].cost_usd) == (0, shown.cost_usd)


async def test_the_total_counts_groups_that_are_cut_off(
    platform: TracingPlatform, start: Start, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("wayline.tracing.handlers.answers.COST_ROWS_MAX", 2)
    await start()
    for number in range(5):
        log = Spender(platform.bus, job_id=f"j{number}")
        await log.append(log.submitted(), log.routed(), log.aside("classification", f"0.00{number}"))
    await platform.wait_until_read()

    table = await platform.bus.ask(GetCosts(tenant="acme", group_by=("job",)), CostTable)

    assert [row.group["job"] for row in table.rows] == ["j4", "j3"]
    assert table.total is not None
    assert (table.groups, table.total.calls, table.total.cost_usd) == (5, 5, USD("0.010"))
    assert await platform.bus.ask(GetCosts(tenant="globex"), CostTable) == CostTable(rows=())


async def test_predictions_count_once_a_job_and_breaks_by_cause(platform: TracingPlatform, start: Start):
    await start()
    for number, (schedule, tier) in enumerate([("morning", "flash"), ("morning", "premium"), (None, "flash")]):
        log = Spender(platform.bus, job_id=f"j{number}")
        submitted = log.submitted()
        assert isinstance(submitted, e.JobSubmitted)
        if schedule:
            fired = FiredBy(schedule=schedule, version=1, due_at=log.at)
            key = SubmittedBy(how="key", name="app", key_id="k1")
            submitted = submitted.model_copy(update={"schedule": fired, "submitted_by": key})
        routed = log.routed()
        assert isinstance(routed, e.JobRouted)
        route = routed.route.model_copy(update={"estimated_cost_usd": USD("0.25"), "tier": tier})
        await log.append(submitted, routed.model_copy(update={"route": route}))
        await log.append(log.claimed(), log.asks(1))
        heard = log.hears(1)
        await log.append(heard, log.asks(2).model_copy(update={"cache_break": "compaction"}))
        await log.append(log.hears(2, saved="-0.0005"), log.completed())
    await platform.wait_until_read()

    async def costs(*by: CostGroup) -> dict[tuple[str, ...], CostRow]:
        table = await platform.bus.ask(GetCosts(tenant="acme", group_by=by), CostTable)
        assert table.total is not None and table.total.predicted_usd == USD("0.75")
        return {tuple(row.group.values()): row for row in table.rows}

    by_schedule, by_tier = await costs("schedule"), await costs("tier", "model")
    by_break, by_key = await costs("cache_break"), await costs("key")

    assert {name: row.predicted_usd for name, row in by_schedule.items()} == {
        ("morning",): USD("0.5"),
        ("-",): USD("0.25"),
    }
    assert {name: row.calls for name, row in by_key.items()} == {("k1",): 4, ("-",): 2}
    assert {name: row.calls for name, row in by_tier.items()} == {("flash", "claude"): 4, ("premium", "claude"): 2}
    assert {name: (row.calls, row.lost_usd, row.predicted_usd) for name, row in by_break.items()} == {
        ("compaction",): (3, USD("0.0015"), None),
        ("-",): (3, USD(0), USD("0.75")),
    }
