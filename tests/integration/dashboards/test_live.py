"""Every panel is asked for real: a Prometheus that scrapes a working platform, and its Postgres as Grafana's role."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import httpx2
import pytest

from wayline.testkit import until

from .conftest import rules
from .questions import Json, Question, expand_promql, panels, questions, samples_of
from .watched_platform import DRAFTED_USD, JOBS, TOOLS, WAVES, WatchedPlatform

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(240),
]

PAID = (Decimal("0.01") + DRAFTED_USD) * WAVES
COSTS = ["Cost by model", "Cost by agent", "Cost by day", "Dearest traces"]


def question(dashboard: Json, title: str) -> Question:
    [found] = [asked for asked in questions(dashboard) if asked.panel == title]
    return found


def dollars(amounts: list[float]) -> Decimal:
    return sum((Decimal(str(amount)) for amount in amounts), Decimal(0)).quantize(Decimal("1e-9"))


async def test_every_metric_of_a_panel_is_in_a_live_scrape(watched: WatchedPlatform, dashboard: Json):
    exported = {sample.name for sample in await watched.scrape()}

    asked = {
        name
        for panel in questions(dashboard)
        if panel.promql
        for name in samples_of(expand_promql(panel.promql, watched.window))
    }
    assert asked - exported == set()


async def test_every_panel_has_data(watched: WatchedPlatform, dashboard: Json, binaries: Path):
    left: list[str] = []

    async def all_have() -> bool:
        left[:] = await watched.unanswered(questions(dashboard))
        return not left

    # Prometheus reads the services one after another.
    with suppress(AssertionError):
        await until(all_have, why="every panel has data")
    assert left == []


async def test_every_panel_over_postgres_has_data_for_grafanas_role(watched: WatchedPlatform, dashboard: Json):
    tables = [asked for asked in questions(dashboard) if asked.sql]

    assert len(tables) >= 6
    assert await watched.unanswered(tables) == []


async def test_a_panel_with_a_misspelt_metric_fails_the_check(watched, dashboard: Json, binaries: Path):
    asked = [question for question in questions(dashboard) if question.promql]
    for name in {name for one in asked for name in samples_of(expand_promql(one.promql, watched.window))}:
        spoilt = [replace(one, promql=re.sub(rf"\b{name}\b", f"{name}s", one.promql)) for one in asked]
        changed = [one for one in spoilt if one not in asked]

        assert await watched.unanswered(changed) == [f"{one.panel}: no data" for one in changed] != [], name


async def test_a_panel_with_a_misspelt_column_fails_the_check(watched: WatchedPlatform, overview: Json):
    tables = [asked for asked in questions(overview) if asked.sql]
    spoilt = [replace(asked, sql=asked.sql.replace("sum(cost_usd)", "sum(cost_euro)")) for asked in tables]

    refused = await watched.unanswered(spoilt)
    assert refused == [f'{title}: column "cost_euro" does not exist' for title in COSTS]


async def test_what_was_predicted_stands_beside_what_it_cost(watched: WatchedPlatform, cost: Json):
    [row] = await watched.answer(question(cost, "Actual to predicted by tier"))

    [job] = await watched.fetch(
        "SELECT DISTINCT estimated_cost_usd AS usd FROM tracing.jobs WHERE model = 'priced' AND steps > 0"
    )
    assert (row["tier"], row["jobs"]) == ("standard", WAVES)
    assert dollars([row["actual"]]) == DRAFTED_USD * WAVES
    assert row["median"] == pytest.approx(float(DRAFTED_USD / job["usd"]))


@pytest.mark.parametrize("title", COSTS)
async def test_costs_in_tables_add_up_to_the_ledger(watched: WatchedPlatform, overview: Json, title: str):
    rows = await watched.answer(question(overview, title))

    [ledger] = await watched.fetch("SELECT sum(cost_usd) AS cost FROM tracing.ledger")
    assert dollars([row["cost"] for row in rows]) == ledger["cost"] == PAID


async def test_the_cost_that_prometheus_knows_is_the_ledgers(watched: WatchedPlatform, overview: Json, binaries: Path):
    spent = await watched.answer(question(overview, "Ledger"))
    unknown = await watched.answer(question(overview, "Calls of unknown price"))

    [ledger] = await watched.fetch(
        "SELECT sum(cost_usd) AS cost, count(*) FILTER (WHERE cost_usd IS NULL) AS unknown FROM tracing.ledger"
    )
    assert dollars([spent[-1]["value"]]) == ledger["cost"] == PAID
    assert unknown[-1]["value"] == ledger["unknown"] > 0


async def test_outcomes_and_dead_letters_are_those_of_the_script(
    watched: WatchedPlatform, overview: Json, binaries: Path
):
    outcomes = await watched.answer(question(overview, "Outcomes"))
    dead = await watched.answer(question(overview, "Dead letters"))

    assert {row["status"]: row["jobs"] for row in outcomes} == {"completed": 3 * WAVES, "failed": WAVES}
    assert dead[-1]["value"] == WAVES


async def test_each_tool_call_of_the_script_is_shown_once(watched: WatchedPlatform, overview: Json):
    rows = await watched.answer(question(overview, "Tool calls"))

    shown = Counter({row["metric"]: 0 for row in rows})
    for row in rows:
        shown[row["metric"]] += row["calls"]
    assert shown == {f"{tool} ok": WAVES for tool in TOOLS}


@pytest.mark.parametrize("title", ["Slowest traces", "Dearest traces"])
async def test_a_job_in_a_table_leads_to_its_trace(watched: WatchedPlatform, overview: Json, title: str):
    [panel] = [panel for panel in panels(overview) if panel["title"] == title]
    [column] = [column for column in panel["fieldConfig"]["overrides"] if column["matcher"]["options"] == "job"]
    [link] = column["properties"][0]["value"]
    jobs = {row["job"] for row in await watched.answer(question(overview, title))}

    assert jobs == {f"{name}-{n}" for name in JOBS for n in range(WAVES)} - (
        set() if title == "Slowest traces" else {f"fails-{n}" for n in range(WAVES)}
    )
    async with httpx2.AsyncClient(timeout=30) as client:
        for job in jobs:
            url = link["url"].replace("${gateway:raw}", watched.gateway).replace("${__data.fields.job}", job)
            answered = await client.get(url)
            assert (answered.status_code, answered.json()["root"]["parent_span_id"]) == (200, None), url


async def test_a_dead_letter_and_an_unknown_price_are_alerts(watched: WatchedPlatform, binaries: Path):
    async def alerting() -> bool:
        assert watched.prometheus is not None
        said = (await watched.prometheus.ask("alerts"))["alerts"]
        return {"WaylineDeadLetters", "WaylineUnknownPrice"} <= {alert["labels"]["alertname"] for alert in said}

    await until(alerting, within=20, why="Prometheus has evaluated the rules")


async def test_prometheus_has_read_every_rule(watched: WatchedPlatform, binaries: Path):
    assert watched.prometheus is not None
    groups = (await watched.prometheus.ask("rules"))["groups"]

    loaded = {rule["name"]: rule["health"] for group in groups for rule in group["rules"]}
    assert loaded.keys() == {rule["alert"] for rule in rules()}
    assert "err" not in loaded.values()
