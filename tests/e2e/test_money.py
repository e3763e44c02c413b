"""Money through the front door: whoever is asked, each job cost the same, and what the provider billed."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from wayline.embedded.process import Child
from wayline.standalone.terminal.money_views import usd
from wayline.testkit import until
from wayline.testkit.fixtures import run
from wayline.testkit.service_starts import start_command

from ..integration.dashboards.questions import Question, Window, expand_sql, questions, samples_of
from ..integration.standalone.conftest import Installed

DASHBOARD = Path(__file__).parents[2] / "deploy" / "grafana" / "dashboards" / "cost.json"
QUESTION = "How often is a lease renewed?"
LEASES = "A lease is renewed every two seconds while its tool runs.\n"
# Longer than what any of the models keeps at least.
INSTRUCTIONS = "You answer from the knowledge base, in one sentence, and say which page it is from. " * 100
RATES = {"input": "0.10", "output": "0.50", "cache_read": "0.01", "cache_write_5m": "0.125"}
# By Chat Completions this one takes tools only where it is told not to think.
OWN = {
    "provider": "chat",
    "model": "gpt-6-luna",
    "tier": "flash",
    "reasoning": "effort",
    "efforts": ["none"],
    "cache": {"kind": "automatic"},
    "prices": {"rates": RATES, "source": "a contract of ours"},
}
AGENTS = {
    "claude": "anthropic/claude-sonnet-5-5",
    "gpt": "openai/gpt-6.1-terra",
    "own": "chat/gpt-6-luna",
}
STEPS = 2
TOLD_WITHIN_S = 20.0

Money = tuple[Decimal, Decimal, Decimal]
"""What was spent, what prompt caches saved, what they cost in vain."""


def money(cost: Any, saved: Any, lost: Any) -> Money:
    spent, less, more = (Decimal(str(amount)).quantize(Decimal("1e-9")) for amount in (cost, saved, lost))
    return spent, less, more


def of_job(job: dict[str, Any]) -> Money:
    return money(job["cost_usd"], job["costs"]["saved_usd"], job["costs"]["lost_usd"])


def of_costs(costs: dict[str, Any]) -> dict[str, Money]:
    return {row["group"]["agent"]: money(row["cost_usd"], row["saved_usd"], row["lost_usd"]) for row in costs["rows"]}


@dataclass
class ServerAccess:
    """`wayline up`, the providers it calls, and who asks it."""

    installed: Installed
    simulate: Child
    printed: Path
    """What the providers print."""
    began: datetime

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.installed.http_port}"

    def get(self, path: str, **parameters: str) -> Any:
        return httpx2.get(f"{self.url}{path}", params=parameters, timeout=30).raise_for_status()

    def put(self, path: str, body: Any) -> None:
        httpx2.put(f"{self.url}{path}", json=body, timeout=30).raise_for_status()

    def bill(self) -> Decimal:
        """End the providers; the last thing they say is what it would have cost."""
        assert run(self.simulate.end(signal.SIGINT, within_s=30))
        return Decimal(self.printed.read_text().rpartition("$")[2].strip())

    def table(self, title: str) -> list[dict[str, Any]]:
        """What a panel of the Cost dashboard gets from Postgres, as Grafana's role."""
        window = Window(self.began, datetime.now(UTC) + timedelta(seconds=1))
        line = (self.installed.data / "credentials" / "grafana.env").read_text().strip()
        asked = panel(title)
        return run(_rows(line.partition("=")[2], expand_sql(asked.sql, window, asked.variables)))

    def number(self, title: str) -> Any:
        """What a panel gets from Prometheus: with one replica the gauge itself, summed."""
        promql = panel(title).promql
        (name,) = samples_of(promql)
        assert promql == f"sum(max by (model, agent) ({name}))"
        families = text_string_to_metric_families(self.get("/metrics").text)
        return sum(one.value for family in families for one in family.samples if one.name == name)


def panel(title: str) -> Question:
    [found] = [asked for asked in questions(json.loads(DASHBOARD.read_text())) if asked.panel == title]
    return found


async def _rows(dsn: str, sql: str) -> list[dict[str, Any]]:
    conn = await asyncpg.connect(dsn)
    try:
        return [dict(row) for row in await conn.fetch(sql)]
    finally:
        await conn.close()


@pytest.fixture
def access(fresh: Installed) -> Iterator[ServerAccess]:
    home = fresh.data.parent
    printed = home / "simulate.out"
    simulate = start_command("simulate", "--port", "0", "--json", cwd=home, log=printed, env=fresh.env)
    try:
        run(until(lambda: printed.read_text().endswith("\n"), within=TOLD_WITHIN_S, why="the providers answer"))
        variables = json.loads(printed.read_text())["environment"]
        fresh.more = {**variables, "WAYLINE_TRACING_GAUGES_EVERY_S": "1"}
        fresh.start()
        yield ServerAccess(fresh, simulate, printed, datetime.now(UTC))
    finally:
        run(simulate.kill())


def prepare(access: ServerAccess) -> None:
    """As somebody new to it would: a model of one's own, an agent a provider, a budget, a page of knowledge."""
    installed, home = access.installed, access.installed.data.parent
    (home / "card.json").write_text(json.dumps(OWN))
    (home / "leases.md").write_text(LEASES)
    installed.run_json("models", "add", "card.json")
    assert set(installed.run_json("models", "list")["usable"]) >= set(AGENTS.values())
    for agent, model in AGENTS.items():
        thinks = {"effort": "none"} if agent == "own" else {}
        config = {"model": model, "instructions": INSTRUCTIONS, "tools": ["search_knowledge"], **thinks}
        access.put(f"/v1/agents/{agent}", config)
    access.put("/v1/budgets/all", {"limit_usd": "5", "window": "total"})
    done = installed.wayline("ingest", "leases.md")
    assert done.returncode == 0, done.stderr


@pytest.mark.timeout(120)
def test_caller_command_http_dashboard_and_provider_see_one_cost(access: ServerAccess):
    installed = access.installed
    prepare(access)

    jobs = {agent: installed.run_json("run", "--agent", agent, QUESTION) for agent in AGENTS}

    for agent, job in jobs.items():
        assert (job["status"], job["steps"], f"{job['route']['provider']}/{job['route']['model']}") == (
            *("completed", STEPS),
            AGENTS[agent],
        )
        assert "renewed every two seconds" in job["answer"]
    answered = {agent: of_job(job) for agent, job in jobs.items()}
    assert all(cost > 0 and saved > 0 for cost, saved, _ in answered.values()), answered

    until_told(access)
    shown = {agent: of_job(access.get(f"/v1/jobs/{job['job_id']}").json()) for agent, job in jobs.items()}
    commanded = of_costs(installed.run_json("costs", "--by", "agent"))
    over_http = of_costs(access.get("/v1/costs", group_by="agent").json())
    spent = {row["agent"]: row["cost"] for row in access.table("Dollars by agent")}
    cached = {row["model"]: (row["saved"], row["lost"]) for row in access.table("Cache by model")}
    on_dashboard = {agent: money(spent[agent], *cached[AGENTS[agent].partition("/")[2]]) for agent in AGENTS}

    assert answered == shown == commanded == over_http == on_dashboard
    shown_to_people = installed.wayline("jobs", "show", jobs["claude"]["job_id"]).stdout
    assert f"the prompt cache saved {usd(str(answered['claude'][1]))}" in shown_to_people

    whole = money(*(sum(amounts) for amounts in zip(*answered.values(), strict=True)))
    titles = ("Spent", "Saved by caches", "Lost on caches")
    assert money(*(access.number(title) for title in titles)) == whole
    traces = [access.get(f"/v1/jobs/{job['job_id']}/trace").json() for job in jobs.values()]
    assert sum(Decimal(trace["totals"]["cost_usd"]) for trace in traces) == whole[0]
    run(until(lambda: of_budget(access) == (whole[0], 0, 0), within=TOLD_WITHIN_S, why="the jobs are settled"))
    assert access.bill() == whole[0]


def of_budget(access: ServerAccess) -> tuple[Decimal, ...]:
    """What is spent of the budget that counts every job, what is held of it, and what nobody saw end."""
    [budget] = access.get("/v1/budgets").json()["budgets"]
    return tuple(Decimal(budget[figure]) for figure in ("spent_usd", "reserved_usd", "unsettled_usd"))


def until_told(access: ServerAccess) -> None:
    """The ledger follows the log, and the gauges follow the ledger."""

    def told() -> bool:
        rows = access.get("/v1/costs", group_by="agent").json()["rows"]
        cost = sum(Decimal(row["cost_usd"]) for row in rows)
        calls = sum(row["calls"] for row in rows)
        return calls == STEPS * len(AGENTS) and money(access.number("Spent"), 0, 0) == money(cost, 0, 0)

    run(until(told, within=TOLD_WITHIN_S, why="tracing has read every job"))
