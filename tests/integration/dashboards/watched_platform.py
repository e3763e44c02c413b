"""Every service in one process on a real bus and a real database, watched while it works through a script."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from wayline.chassis import Bus, BusSettings
from wayline.chassis.stream_limits import Limits
from wayline.contracts.tools import ListTools, ToolList
from wayline.embedded import NatsServer, free_port
from wayline.executor.adapters import circuit_breaker
from wayline.simulator.chat_server import ChatServer, Say, turns
from wayline.standalone.services import MEMBERS, Member, ServiceGroup
from wayline.standalone.setup.installation import GRAFANA, Installation, ServerAccess
from wayline.standalone.setup.migrations import migrate_all
from wayline.testkit import until
from wayline.testkit.databases import Database
from wayline.testkit.effects_server import EffectsServer
from wayline.testkit.guarded import ADMIN, Guarded, config

from . import prometheus
from .prometheus import Prometheus
from .questions import Question, Window, expand_promql, expand_sql

SHIPPED = Path(__file__).parents[3] / "deploy" / "prometheus"
PAYS = turns(Say(tools=(("effects__pay_once", {}), ("get_current_time", {}))), Say(text="It is paid."))
PRICED = {
    "provider": "chat",
    "model": "priced",
    "tier": "standard",
    "prices": {"rates": {"input": "0", "output": "10"}},
}
DRAFTED = "It is drafted."
DRAFTED_USD = Decimal("0.00003")
"""Three words of the priced model."""
TOOLS = {"effects__pay_once", "get_current_time", "search_knowledge"}
"""Each is called once a wave: the offline model searches, the scripted one calls the others."""
BROKEN = {"provider": "chat", "model": "broken", "tier": "standard"}
STUMBLER = {"instructions": "Be brief.", "model": "chat/broken", "routing": {"fallbacks": ["chat/priced"]}}
"""An agent whose model never answers; another one goes on."""
JOBS: dict[str, dict[str, Any]] = {
    "asks": {"input": "What is a lease?", "options": {"model": "offline/extractive"}},
    "pays": {"input": "Pay.", "options": {"model": "chat/m"}},
    "drafts": {"input": "Draft it.", "options": {"model": "chat/priced"}},
    "stumbles": {"agent": "stumbler", "input": "Draft it all the same."},
    "fails": {"input": "Teleport me.", "options": {"required_tools": ["teleport"]}},
}
WAVES = 2
"""A counter's first value is no increase: what happens once has no rate."""
RUN_WITHIN_S = 120.0
LATEST_S = 10.0
ENDED, SPENT = "wayline_jobs_ended_total", "wayline_ledger_cost_usd"
PUT_ASIDE, HELD = "wayline_dead_letters_total", "jetstream_stream_total_messages"


@dataclass
class WatchedPlatform:
    """The platform after its script has run, and what can be asked of it."""

    gateway: str
    database: Database
    grafana_dsn: str
    window: Window
    prometheus: Prometheus | None = None

    async def scrape(self) -> list[Sample]:
        """Every sample that the services export right now."""
        async with httpx2.AsyncClient(timeout=30) as client:
            text = (await client.get(f"{self.gateway}/metrics")).text
        return [sample for family in text_string_to_metric_families(text) for sample in family.samples]

    async def fetch(self, sql: str, *, dsn: str | None = None) -> list[dict[str, Any]]:
        """Rows as the database's owner sees them, or whoever else is named."""
        conn = await asyncpg.connect(dsn or self.database.dsn)
        try:
            return [dict(row) for row in await conn.fetch(sql)]
        finally:
            await conn.close()

    async def answer(self, asked: Question) -> list[dict[str, Any]]:
        """What a panel would get: rows, or for Prometheus one a value."""
        if asked.sql:
            return await self.fetch(expand_sql(asked.sql, self.window, asked.variables), dsn=self.grafana_dsn)
        assert self.prometheus is not None
        query, window = expand_promql(asked.promql, self.window, asked.variables), self.window
        start, end = window.start.timestamp(), window.end.timestamp()
        if asked.instant:
            # Of the last moment that has a value: after a scrape that was too slow a series has none.
            start = max(start, end - LATEST_S)
            said = await self.prometheus.ask("query_range", query=query, start=start, end=end, step=window.step_s)
            return [{**series["metric"], "value": float(series["values"][-1][1])} for series in said["result"]]
        said = await self.prometheus.ask("query_range", query=query, start=start, end=end, step=window.step_s)
        return [
            {**series["metric"], "at": float(at), "value": float(value)}
            for series in said["result"]
            for at, value in series["values"]
        ]

    async def unanswered(self, asked: Iterable[Question]) -> list[str]:
        """The questions that get an error, no data, or nothing but empty values."""
        found: list[str] = []
        for question in asked:
            try:
                rows = await self.answer(question)
            except (asyncpg.PostgresError, ValueError) as error:
                found.append(f"{question.panel}: {str(error).splitlines()[0]}")
                continue
            if not any(_says_something(question, row) for row in rows):
                found.append(f"{question.panel}: no data")
        return found


def _says_something(asked: Question, row: dict[str, Any]) -> bool:
    if asked.sql:
        return None not in (row.get(name) for name in ("time", "metric") if name in row) and any(
            isinstance(value, int | float) for value in row.values()
        )
    # Every script has an increase of all that is counted, so a rate of zero is a rate of nothing.
    return not math.isnan(row["value"]) and (row["value"] > 0 or "rate(" not in asked.promql)


@asynccontextmanager
async def running(database: Database, directory: Path, binaries: Path | None) -> AsyncIterator[WatchedPlatform]:
    """The platform, after its script has run."""
    async with AsyncExitStack() as stack:
        installation = Installation(directory / "data")
        installation.prepare()
        credentials = installation.load_credentials()
        text = config(directory / "nats" / "jetstream", credentials.seeds)
        guarded = Guarded(NatsServer(directory / "nats", config=text), credentials.seeds)
        await guarded.server.start()
        stack.push_async_callback(guarded.server.stop)
        stack.callback(_nobody_was_refused, guarded)
        access = ServerAccess(guarded.url, database.dsn, credentials, own_bus=True)
        async for _ in migrate_all(access, Limits(memory=True)):
            pass
        gateway = f"http://127.0.0.1:{await _start_services(stack, access, directory)}"
        watched = WatchedPlatform(
            gateway, database, access.dsn_of("wayline_grafana", GRAFANA), _until_now(datetime.now(UTC))
        )
        if binaries is not None:
            target = gateway.removeprefix("http://")
            watched.prometheus = await prometheus.start(binaries, SHIPPED, directory, targets=[target])
            stack.push_async_callback(watched.prometheus.stop)
        bus = await Bus.connect(guarded.settings(ADMIN), service="test", exit_when_closed=False)
        stack.push_async_callback(bus.close)
        await _tools_are_there(bus)
        await _set_up(gateway)
        for n in range(WAVES):
            await _play(watched, bus, n)
        watched.window = _until_now(watched.window.start)
        yield watched


def _nobody_was_refused(guarded: Guarded) -> None:
    assert guarded.refusals() == []


async def _start_services(stack: AsyncExitStack, access: ServerAccess, directory: Path) -> int:
    """Start all of them; returns the port of the gateway."""
    chat = await stack.enter_async_context(ChatServer(_say))
    effects = await EffectsServer(directory / "effects.txt").start()
    stack.callback(effects.kill)
    environment = stack.enter_context(pytest.MonkeyPatch.context())
    port = free_port()
    environment.setenv("WAYLINE_HTTP_PORT", str(port))
    environment.setenv("WAYLINE_CHAT_BASE_URL", chat.url)
    environment.setenv("WAYLINE_TOOL_REGISTRY_SERVERS", json.dumps([effects.settings()]))
    environment.setenv("WAYLINE_TRACING_GAUGES_EVERY_S", "0.5")
    environment.setenv("WAYLINE_ROUTER_BUDGETS_EVERY_S", "0.5")

    def settings_of(member: Member) -> BusSettings:
        dsn = access.dsn_of(member.role, member.identity) if member.schema else None
        seed = access.seed_of(member.identity)
        return BusSettings(
            nats_url=access.nats_url, nats_seed=seed, nats_accounts=True, postgres_dsn=dsn, drain_grace_s=2
        )

    # However long the waves take: the model that never answers is left alone in the second of them.
    environment.setattr(circuit_breaker, "WINDOW_S", WAVES * RUN_WITHIN_S)
    group = ServiceGroup(MEMBERS, settings_of)
    await group.start()
    stack.push_async_callback(group.stop)
    return port


def _say(body: dict[str, Any]) -> Say:
    if body["model"] == BROKEN["model"]:
        return Say(status=503)
    return Say(text=DRAFTED) if body["model"] == PRICED["model"] else PAYS(body)


async def _tools_are_there(bus: Bus) -> None:
    async def listed() -> bool:
        found = await bus.ask(ListTools(tenant="default"), ToolList)
        return {tool.name for tool in found.tools} >= TOOLS

    await until(listed, within=RUN_WITHIN_S, why="the registry has reached its servers")


async def _set_up(gateway: str) -> None:
    """A model with a price, and a budget: a soft one, because the script's other jobs have models of unknown price."""
    async with httpx2.AsyncClient(timeout=30) as client:
        for path, body in (
            ("models/chat/priced", PRICED),
            ("models/chat/broken", BROKEN),
            ("agents/stumbler", STUMBLER),
            ("budgets/month", {"limit_usd": "5", "hard": False}),
        ):
            saved = await client.put(f"{gateway}/v1/{path}", json=body)
            assert saved.status_code == 200, saved.text


async def _play(watched: WatchedPlatform, bus: Bus, n: int) -> None:
    """Jobs that complete, pay and fail, and a message that is put aside; over when all was counted and scraped."""
    before = await watched.scrape()
    for name, job in JOBS.items():
        body = {"agent": "assistant", "job_id": f"{name}-{n}", **job}
        await bus.js.publish("jobs.submit.default", json.dumps(body).encode())
    await bus.js.publish("jobs.submit.default", b"{not json")

    figures = dict[str, float]()

    async def counted() -> bool:
        now = await watched.scrape()
        [owed] = await watched.fetch("SELECT sum(cost_usd)::float8 AS cost FROM tracing.ledger WHERE NOT open")
        figures.update(ended=total(now, ENDED) - total(before, ENDED), dead=total(now, HELD, stream_name="DEAD"))
        figures.update(spent=total(now, SPENT), owed=owed["cost"])
        are_whole = figures["ended"] == len(JOBS) and figures["dead"] == n + 1
        return are_whole and math.isclose(figures["spent"], figures["owed"])

    try:
        await until(counted, within=RUN_WITHIN_S, why=f"the services have counted wave {n}")
    except AssertionError as error:
        error.add_note(f"{figures}")
        raise
    async with httpx2.AsyncClient(timeout=30) as client:

        async def rated() -> bool:
            said = await client.post(f"{watched.gateway}/v1/jobs/asks-{n}/feedback", json={"score": 1})
            return said.status_code == 200

        await until(rated, within=RUN_WITHIN_S, why=f"the answer of wave {n} is rated")
    if watched.prometheus is not None:
        await _scraped(watched.prometheus, await watched.scrape(), n)


async def _scraped(watching: Prometheus, samples: list[Sample], n: int) -> None:
    wanted = {f"sum({name})": total(samples, name) for name in (ENDED, SPENT, PUT_ASIDE)}
    wanted[f'sum({HELD}{{stream_name="DEAD"}})'] = n + 1

    async def scraped() -> bool:
        said = {query: (await watching.ask("query", query=query))["result"] for query in wanted}
        return all(found and math.isclose(float(found[0]["value"][1]), wanted[query]) for query, found in said.items())

    await until(scraped, within=RUN_WITHIN_S, why=f"Prometheus has scraped wave {n}")


def total(samples: Iterable[Sample], name: str, **labels: str) -> float:
    """The sum of a metric's values, over all labels that are not named."""
    return sum(one.value for one in samples if one.name == name and labels.items() <= one.labels.items())


def _until_now(start: datetime) -> Window:
    now = datetime.now(UTC) + timedelta(seconds=1)
    return Window(start, now)
