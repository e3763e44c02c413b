"""How soon pages of the console show, how much they send, and how they scroll, in Chromium against a whole platform.

python -m tests.bench.console_pages [--write docs/performance.md] [--rounds 5]

Where other work disturbs the clock, the processor time of the console and of the browser's page stands beside it, and
a blank page of the same height is the floor of scrolling.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import asyncpg
import httpx2
from playwright.async_api import Browser, BrowserContext, Page, async_playwright
from playwright.async_api import Error as PlaywrightError

from wayline.console.pages.frame import Frame
from wayline.console.pages.job_calls import TEMPLATE as CALL_TEMPLATE
from wayline.console.pages.job_calls import CallPage, diff_of
from wayline.console.render.environment import Templates
from wayline.console.render.steps import ToolCall
from wayline.contracts.models import ModelCard, Prices, PutModel, Rates
from wayline.embedded.ports import free_port
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.gateway.settings import Settings as GatewaySettings
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import Platform, until
from wayline.testkit.platform import QUICK
from wayline.testkit.processes import ServiceProcess

from . import page
from .tool_platform import tool_platform

STORED_JOBS, SPANS, CALLS, CALLS_A_STEP = 100_000, 5_000, 300, 10
DIFF_BYTES = 5_000_000
REQUESTS, AT_ONCE = 200, 4
LOOK_WITHIN_S = 120
PART = "console_pages"
HEAD = ("page", "asked", "first byte, ms", "first paint, ms", "sent, kB", "longest frame, ms", "work a frame, ms")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking")
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
STORED = """
INSERT INTO tracing.jobs (
    tenant, job_id, seq, trace_id, status, agent, input, steps, usage, tokens, cost_usd, partial, citations, created_at,
    ended_at
)
SELECT 'default', 'stored-' || n, 9, md5(n::text), (ARRAY['completed', 'failed', 'cancelled'])[1 + n % 3],
    'agent-' || n % 20, 'What became of order ' || n || '?', 2, '{"input": 100, "output": 10}', 110, 0.001, false, '[]',
    now() - make_interval(secs => n), now() - make_interval(secs => n - 1)
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
LOADED = """() => {
  const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
  const paint = performance.getEntriesByName('first-contentful-paint')[0];
  return {
    painted: paint ? paint.startTime : null,
    answered: all[0].responseStart,
    sent: all.reduce((sum, one) => sum + one.transferSize, 0),
  };
}"""
SCROLLED = """async () => {
  // A window of which the browser makes no more frames, as happens where many come and go, is not measured.
  const stalled = new Promise((_, fail) => setTimeout(() => fail(new Error('no frames')), 20000));
  const frame = () => Promise.race([new Promise(requestAnimationFrame), stalled]);
  const most = document.documentElement.scrollHeight - innerHeight, frames = [];
  const step = Math.max(most / 120, 40);
  await frame();
  let last = performance.now();
  for (let y = 0; y <= most; y += step) {
    scrollTo(0, y);
    await frame();
    frames.push(performance.now() - last);
    last = performance.now();
  }
  return frames;
}"""


@dataclass
class Measured:
    """What one page took, a value a round."""

    name: str
    asked: str
    answered: list[float] = field(default_factory=list)
    painted: list[float] = field(default_factory=list)
    sent: list[float] = field(default_factory=list)
    longest: list[float] = field(default_factory=list)
    work: list[float] = field(default_factory=list)
    """Milliseconds of the page's main thread for one frame of scrolling."""

    def cells(self) -> list[str]:
        kilobytes = [sent / 1_000 for sent in self.sent]
        return [self.name, self.asked, *map(_middle, (self.answered, self.painted, kilobytes, self.longest, self.work))]


def _middle(values: list[float]) -> str:
    return f"{median(values):,.0f} [{min(values):,.0f}..{max(values):,.0f}]" if values else ""


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
    prices = Prices(rates=Rates(input=Decimal("0.1"), output=Decimal("0.2")), source="a bench")
    card = ModelCard(provider="chat", model="scripted", tier="standard", prices=prices, tools="native")
    await platform.bus.ask(PutModel(tenant="default", card=card), ModelCard)
    await platform.put_agent(
        "clock", model="chat/scripted", tools=("get_current_time",), max_steps=CALLS // CALLS_A_STEP + 2
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

    async def traced() -> bool:
        return (await api.get(f"/v1/jobs/{ids[1]}/trace")).status_code == 200

    await until(traced, within=60, why="the trace is stored")
    admin = await asyncpg.connect(platform.database.dsn)
    await admin.execute(SPANNED, SPANS, ids[1])
    await admin.execute(STORED, STORED_JOBS)
    await admin.execute("ANALYZE tracing.jobs, tracing.spans")
    await admin.close()
    return ids[0], ids[1]


def _script(body: dict[str, Any]) -> Say:
    asked = next(one["content"] for one in body["messages"] if one["role"] == "user")
    steps = sum(one["role"] == "assistant" for one in body["messages"])
    if "many" in str(asked) and steps < CALLS // CALLS_A_STEP:
        call = ("get_current_time", {"timezone": "Europe/Zurich"})
        return Say(text=f"Step {steps}.", tools=(call,) * CALLS_A_STEP)
    return Say(text="It is noon.")


@asynccontextmanager
async def opened(home: Path) -> AsyncIterator[Bench]:
    """Yield a platform with its console as a process, with all that is looked at."""
    async with ChatServer(_script) as chat, tool_platform(home, limits=QUICK) as platform:
        await platform.start(
            *("router", "executor", "tool_registry", "tracing", "gateway"),
            router=RouterSettings(chat_base_url=chat.url),
            executor=ExecutorSettings(chat_base_url=chat.url),
            gateway=GatewaySettings(http_port=0),
        )
        api = await platform.http(timeout_s=60)
        many_calls, many_spans = await _jobs(platform, api)
        logs, port = home / "processes", free_port()
        logs.mkdir()
        fleet = await platform.make_fleet(logs)
        address = {"PORT": str(port), "GATEWAY_URL": str(api.base_url), "COOKIE_KEY": "0" * 64}
        fleet.set("console", **{f"WAYLINE_CONSOLE_{name}": value for name, value in address.items()})
        console, url = fleet.spawn("console"), f"http://127.0.0.1:{port}"
        async with httpx2.AsyncClient(base_url=url, trust_env=False, timeout=60) as http:

            async def answers() -> bool:
                try:
                    return (await http.get("/health/live")).status_code == 200
                except httpx2.TransportError:
                    return False

            await until(answers, within=60, why="the console answers")
            await http.get("/jobs")
        executable = shutil.which("chromium") or shutil.which("chromium-browser")
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
            yield Bench(url, console, browser, many_calls, many_spans)
            await browser.close()


async def _loaded(window: Page, address: str, into: Measured) -> None:
    await window.goto(address)
    await window.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    found = await window.evaluate(LOADED)
    into.answered.append(found["answered"])
    into.painted.append(found["painted"] or 0)
    into.sent.append(found["sent"])


async def _scrolled(context: BrowserContext, window: Page, into: Measured) -> None:
    await window.bring_to_front()
    session = await context.new_cdp_session(window)
    await session.send("Performance.enable")

    async def work_s() -> float:
        metrics = (await session.send("Performance.getMetrics"))["metrics"]
        return next(one["value"] for one in metrics if one["name"] == "TaskDuration")

    before = await work_s()
    try:
        frames = await window.evaluate(SCROLLED)
    except PlaywrightError as error:
        if "no frames" not in str(error):
            raise
        return
    if frames:
        into.longest.append(max(frames))
        into.work.append((await work_s() - before) * 1_000 / len(frames))


async def _look(bench: Bench, into: Measured, path: str, *, scrolls: bool = False, warm: bool = False) -> None:
    context = await bench.browser.new_context(viewport={"width": 1280, "height": 900})
    window = await context.new_page()
    window.set_default_timeout(120_000)
    if warm:
        await window.goto(f"{bench.url}{path}")
        await window.goto("about:blank")
    await _loaded(window, f"{bench.url}{path}", into)
    if scrolls:
        await _scrolled(context, window, into)
    await context.close()


async def _blank(bench: Bench, into: Measured) -> None:
    context = await bench.browser.new_context(viewport={"width": 1280, "height": 900})
    window = await context.new_page()
    await window.set_content("<div style='height: 60000px'>nothing</div>")
    await _scrolled(context, window, into)
    await context.close()


def large_diff() -> str:
    """Return a difference of many files."""
    lines, size, number = list[str](), 0, 0
    while size < DIFF_BYTES:
        number += 1
        part = [f"--- a/part{number}.py", f"+++ b/part{number}.py", "@@ -1,400 +1,400 @@"]
        for line in range(200):
            part += [f" kept = value_{line}  # as it was", f"-old = call({line}, retries=3)"]
            part += [f"+old = call({line}, retries=5)", f" more = other_{line}"]
        lines += part
        size += sum(len(one) + 1 for one in part)
    return "\n".join(lines) + "\n"


async def _diff(bench: Bench, into: Measured, cpu_ms: list[float]) -> None:
    """Show a large difference as its page does: rendered here, painted by the browser."""
    frame = Frame("difference", "/jobs", ME, "token", "light", "/jobs", now=datetime.now(UTC))
    call = ToolCall("git_diff", {}, "read", "completed", large_diff())
    began = process_time()
    shown = CallPage("j1", 1, "1", call, diff_of(call))
    html = Templates().render(CALL_TEMPLATE, page=shown, frame=frame, view="diff", split=False)
    cpu_ms.append((process_time() - began) * 1_000)
    context = await bench.browser.new_context(viewport={"width": 1280, "height": 900})
    window = await context.new_page()
    await window.route("**/jobs/j1/calls/1/1/diff", lambda route: route.fulfill(body=html, content_type="text/html"))
    await _loaded(window, f"{bench.url}/jobs/j1/calls/1/1/diff", into)
    await _scrolled(context, window, into)
    await context.close()
    into.sent[-1] += len(html)


ME = {"tenant": "default", "name": "bench", "scopes": ["read"], "open": True, "version": "0"}


def _cpu_s(pid: int) -> float:
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / TICKS_A_SECOND


async def requests_a_core(bench: Bench) -> float:
    """Return how many times a second of one core the console answers with the list of jobs."""
    async with httpx2.AsyncClient(base_url=bench.url, trust_env=False, timeout=60) as http:

        async def some() -> None:
            for _ in range(REQUESTS // AT_ONCE):
                (await http.get("/jobs")).raise_for_status()

        before = _cpu_s(bench.console.pid)
        await asyncio.gather(*(some() for _ in range(AT_ONCE)))
        return REQUESTS / (_cpu_s(bench.console.pid) - before)


async def measure(home: Path, rounds: int) -> str:
    """Look at every page so many times, and return the table."""
    load = os.getloadavg()[0]
    async with opened(home) as bench:
        job, traced = f"/jobs/{bench.many_calls}", f"/jobs/{bench.many_spans}?view=trace"
        pages: list[tuple[Measured, Callable[[Measured], Awaitable[None]]]] = [
            (Measured("Home, nothing cached", "paint 100, 150 kB"), lambda one: _look(bench, one, "/")),
            (Measured("Home, once more", "paint 100, 40 kB"), lambda one: _look(bench, one, "/", warm=True)),
            (
                Measured(f"Jobs, {STORED_JOBS:,} stored", "answer 150, 40 kB"),
                lambda one: _look(bench, one, "/jobs", warm=True, scrolls=True),
            ),
            (
                Measured(f"a job of {SPANS:,} spans, its trace", "paint 300, 1,000 kB, frame 50"),
                lambda one: _look(bench, one, traced, scrolls=True),
            ),
            (
                Measured(f"a job of {CALLS} tool calls", "paint 300, 1,000 kB, frame 50"),
                lambda one: _look(bench, one, job, scrolls=True),
            ),
            (Measured("a blank page as high", ""), lambda one: _blank(bench, one)),
        ]
        cpu_ms, diff = list[float](), Measured("a difference of 5 MB", "300 with what renders it")
        for _ in range(rounds):
            for one, look in pages:
                async with asyncio.timeout(LOOK_WITHIN_S):
                    await look(one)
            await _diff(bench, diff, cpu_ms)
        a_core = await requests_a_core(bench)
    head = [
        "page",
        "asked: ms, kB",
        "first byte, ms",
        "first paint, ms",
        "sent, kB",
        "longest frame, ms",
        "work a frame, ms",
    ]
    table = page.table(head, [*(one.cells() for one, _ in pages), diff.cells()])
    return (
        f"{page.machine(load)} Median [least..most] of {rounds} rounds.\n\n{table}\n"
        f"The list of jobs is answered {a_core:.0f} times a second of the console's processor time (asked: 40); the "
        f"difference of 5 MB takes {median(cpu_ms):.0f} ms of it to be read and rendered.\n"
    )


def main() -> None:
    """Measure, print, and write where asked."""
    parser = argparse.ArgumentParser(description="How soon pages of the console show, and how they scroll.")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        # Postgres runs as another user where we are root.
        home.chmod(0o711)
        text = asyncio.run(measure(home, asked.rounds))
    if asked.write:
        page.write(asked.write, PART, text, by="make console-bench")
    print(text)


if __name__ == "__main__":
    main()
