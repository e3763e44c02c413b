"""A console on a whole platform, with the jobs that its pages are measured with, and a browser."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import available_timezones

import asyncpg
import httpx2
from playwright.async_api import Browser, async_playwright

from wayline.contracts.models import ModelCard, Prices, PutModel, Rates
from wayline.embedded.ports import free_port
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import Platform, until
from wayline.testkit.platform import QUICK
from wayline.testkit.processes import ServiceProcess

from ..tool_platform import tool_platform

STORED_JOBS, SPANS, CALLS, CALLS_A_STEP = 100_000, 5_000, 300, 20
SERVICES = ("router", "executor", "tool_registry", "tracing", "gateway")
TABLES = ("router", "tool_registry", "tracing", "gateway")
"""Those of them that own tables."""
ZONES = sorted(available_timezones())[:CALLS]
"""An argument for each call: the same call again would be taken for a loop."""
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking")
STORED = """
INSERT INTO tracing.jobs (
    tenant, job_id, seq, trace_id, status, agent, input, steps, usage, tokens, cost_usd, partial, citations, created_at,
    ended_at, words
)
SELECT 'default', 'stored-' || n, 9, md5(n::text), (ARRAY['completed', 'failed', 'cancelled'])[1 + n % 3],
    'agent-' || n % 20, 'What became of order ' || n || '?', 2, '{"input": 100, "output": 10}', 110, 0.001, false, '[]',
    now() - make_interval(secs => n), now() - make_interval(secs => n - 1),
    array_to_tsvector(ARRAY['~default', '=stored-' || n, 'what', 'became', 'of', 'order', n::text])
FROM generate_series(1, $1::int) AS n
"""
SPANNED = """
INSERT INTO tracing.spans (
    trace_id, span_id, start, tenant, parent_span_id, service, name, kind, duration_ms, status, attributes, links,
    events, usage, cost_usd, seq
)
SELECT s.trace_id, left(md5(n::text), 16), s.start + make_interval(secs => n * 0.001), s.tenant, s.span_id, 'executor',
    'execute_tool search_' || n % 50, 'internal', 5 + n % 40, 'ok', '{}', '[]', '[]', NULL, 0.0001, 0
FROM generate_series(1, $1::int) AS n, (
    SELECT * FROM tracing.spans WHERE trace_id = (SELECT trace_id FROM tracing.jobs WHERE job_id = $2)
    ORDER BY parent_span_id NULLS FIRST, start LIMIT 1
) AS s
"""


@dataclass(frozen=True)
class Bench:
    """A console with what is looked at, and a browser."""

    url: str
    console: ServiceProcess
    browser: Browser
    many_calls: str
    many_spans: str


async def _jobs(platform: Platform, api: httpx2.AsyncClient) -> tuple[str, str]:
    """Run a job of many calls, and one to which many spans are added beside many stored jobs; return their ids."""
    many_calls, many_spans = await _run_jobs(platform, api)
    log = (await api.get(f"/v1/jobs/{many_calls}/events", headers={"Accept": "application/json"})).json()
    calls = sum(event["type"] == "tool.completed" for event in log)
    assert calls == CALLS, f"the job made {calls} calls: {log[-1]}"

    async def traced() -> bool:
        return (await api.get(f"/v1/jobs/{many_spans}/trace")).status_code == 200

    await until(traced, within=60, why="the trace is stored")
    admin = await asyncpg.connect(platform.database.dsn)
    await admin.execute(SPANNED, SPANS, many_spans)
    await admin.execute(STORED, STORED_JOBS)
    await admin.execute("VACUUM ANALYZE tracing.jobs")
    await admin.execute("VACUUM ANALYZE tracing.spans")
    await admin.close()
    return many_calls, many_spans


async def _run_jobs(platform: Platform, api: httpx2.AsyncClient) -> tuple[str, str]:
    prices = Prices(rates=Rates(input=Decimal("0.1"), output=Decimal("0.2")), source="a bench")
    card = ModelCard(provider="chat", model="scripted", tier="standard", prices=prices, tools="native")
    await platform.bus.ask(PutModel(tenant="default", card=card), ModelCard)
    await platform.put_agent(
        "clock", model="chat/scripted", tools=("get_current_time",), max_steps=2 * CALLS // CALLS_A_STEP
    )
    ids = list[str]()
    for text in ("many", "one"):
        body = {"agent": "clock", "input": text, "options": {"budget_usd": "100"}}
        job = (await api.post("/v1/jobs", json=body)).raise_for_status().json()
        ids.append(job["job_id"])

    async def ended() -> bool:
        found = [(await api.get(f"/v1/jobs/{one}")).json() for one in ids]
        return all(job["status"] == "completed" for job in found)

    await until(ended, within=300, why="both jobs have ended")

    return ids[0], ids[1]


def _script(body: dict[str, Any]) -> Say:
    asked = next(one["content"] for one in body["messages"] if one["role"] == "user")
    steps = sum(one["role"] == "assistant" for one in body["messages"])
    if "many" in str(asked) and steps < CALLS // CALLS_A_STEP:
        zones = ZONES[steps * CALLS_A_STEP : (steps + 1) * CALLS_A_STEP]
        return Say(text=f"Step {steps}.", tools=tuple(("get_current_time", {"timezone": zone}) for zone in zones))
    return Say(text="It is noon.")


async def _answered(http: httpx2.AsyncClient) -> None:
    """Wait until a process answers at its port."""

    async def answers() -> bool:
        try:
            return (await http.get("/health/live")).status_code == 200
        except httpx2.TransportError:
            return False

    await until(answers, within=60, why="it answers")


@asynccontextmanager
async def opened(home: Path) -> AsyncIterator[Bench]:
    """Yield a platform, each service a process as `wayline up` starts them, with all that is looked at."""
    async with AsyncExitStack() as stack:
        chat = await stack.enter_async_context(ChatServer(_script))
        platform = await stack.enter_async_context(tool_platform(home, limits=QUICK))
        logs, gateway_port, port = home / "processes", free_port(), free_port()
        logs.mkdir()
        fleet = await platform.make_fleet(logs, *TABLES)
        for name in ("router", "executor"):
            fleet.set(name, WAYLINE_CHAT_BASE_URL=chat.url)
        fleet.set("gateway", WAYLINE_HTTP_PORT=str(gateway_port))
        gateway_url, url = f"http://127.0.0.1:{gateway_port}", f"http://127.0.0.1:{port}"
        address = {"PORT": str(port), "GATEWAY_URL": gateway_url, "COOKIE_KEY": "0" * 64}
        fleet.set("console", **{f"WAYLINE_CONSOLE_{name}": value for name, value in address.items()})
        await fleet.ensure(*SERVICES)
        api = await stack.enter_async_context(httpx2.AsyncClient(base_url=gateway_url, trust_env=False, timeout=60))
        many_calls, many_spans = await _jobs(platform, api)
        console = fleet.spawn("console")
        http = await stack.enter_async_context(httpx2.AsyncClient(base_url=url, trust_env=False, timeout=60))
        await _answered(http)
        await http.get("/jobs")
        executable = shutil.which("chromium") or shutil.which("chromium-browser")
        playwright = await stack.enter_async_context(async_playwright())
        browser = await playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
        stack.push_async_callback(browser.close)
        yield Bench(url, console, browser, many_calls, many_spans)
