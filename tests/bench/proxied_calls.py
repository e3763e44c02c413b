"""What our own processes add to a call of a tool, and what a server that hangs costs the calls of others.

python -m tests.bench.proxied_calls [--write docs/performance.md]

Registry, gateway and the servers are processes of their own. CPU is read from /proc, so that what else the machine does
hardly counts; latencies are compared within a round, with and without the server that hangs.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import httpx2
import uvloop
from mcp import Client

from wayline.contracts import ids
from wayline.contracts.tools import CallTool, ListTools, ToolList, ToolReply
from wayline.embedded.ports import free_port
from wayline.embedded.process import spawn
from wayline.testkit import Platform, until

from . import page
from .bus_tools import cpu_of
from .tool_platform import tool_platform

CALLS = 200
ROUNDS = 3
CPU_MAX_MS = 3.0
SERVERS = 10
AT_ONCE = 100
TIMES = 4
"""How often each of the concurrent calls is made in a round."""
HANGS_S = 5.0
PROTOCOL = "2026-07-28"
OURS = ("tool_registry", "gateway")
SERVER = """
import asyncio, sys
import uvicorn
from mcp.server import MCPServer

def app():
    server = MCPServer("tools")

    @server.tool(structured_output=False)
    async def look(number: str) -> str:
        return number

    @server.tool(structured_output=False)
    async def pay(number: str) -> str:
        return number

    @server.tool(structured_output=False)
    async def hang(number: str) -> str:
        await asyncio.sleep(3600)
        return number

    return server.streamable_http_app(json_response=True, stateless_http=True)

async def main():
    ports = map(int, sys.argv[1:])
    servers = [uvicorn.Server(uvicorn.Config(app(), port=port, log_level="warning")) for port in ports]
    await asyncio.gather(*(server.serve() for server in servers))

asyncio.run(main())
"""


@dataclass
class Deployment:
    """The processes that calls go through."""

    platform: Platform
    pids: dict[str, int] = field(default_factory=dict)
    mcp: str = ""
    """The address of `/mcp`."""
    server: str = ""
    """The address of the first server."""

    def spent(self) -> dict[str, float]:
        """Return the seconds of CPU of our processes."""
        return {name: cpu_of(self.pids[name]) for name in OURS}


@asynccontextmanager
async def start_deployment(home: Path) -> AsyncIterator[Deployment]:
    """Start every process, yield their addresses, and stop them."""
    async with AsyncExitStack() as stack:
        platform = await stack.enter_async_context(tool_platform(home))
        ports = [free_port() for _ in range(SERVERS)]
        program = home / "servers.py"
        program.write_text(SERVER)
        servers = spawn(
            [sys.executable, str(program), *map(str, ports)],
            cwd=home,
            log=home / "servers.log",
            death_signal=signal.SIGKILL,
        )
        stack.push_async_callback(servers.kill)
        fleet = await platform.make_fleet(home, *OURS)
        effects = {"look": "read", "hang": "read", "pay": "once"}
        named = [
            {
                "name": f"s{n}",
                "url": f"http://127.0.0.1:{port}/mcp",
                "effects": effects,
                "tools": {"hang": {"timeout_s": HANGS_S}},
            }
            for n, port in enumerate(ports)
        ]
        fleet.set(
            "tool_registry",
            WAYLINE_TOOL_REGISTRY_SERVERS=named,
            WAYLINE_TOOL_REGISTRY_RETRY_AFTER_S=[],
            # All calls are of one tenant.
            WAYLINE_TOOL_REGISTRY_CALLS_PER_TENANT_MAX=AT_ONCE,
        )
        http_port = free_port()
        fleet.set("gateway", WAYLINE_HTTP_PORT=str(http_port))
        deployment = Deployment(
            platform, mcp=f"http://127.0.0.1:{http_port}/mcp", server=f"http://127.0.0.1:{ports[0]}/mcp"
        )
        for name in OURS:
            deployment.pids[name] = (await fleet.start(name)).pid
        await until(lambda: _listed(platform), within=120, why="every tool is listed")
        yield deployment


async def _listed(platform: Platform) -> bool:
    found = await platform.bus.ask(ListTools(tenant="default"), ToolList, timeout_s=10)
    return {f"s{n}__look" for n in range(SERVERS)} <= {tool.name for tool in found.tools}


# CPU of one call after the other


async def cpu_rows(deployment: Deployment) -> list[list[str]]:
    """Return what a call costs in our processes, by what is called and how."""
    async with httpx2.AsyncClient(timeout=60) as http:
        ways: dict[str, Callable[[int, int], Awaitable[object]]] = {
            "a `read` call from the bus": lambda r, n: on_the_bus(deployment, "s0__look", f"look-{r}", n),
            "a `once` call from the bus": lambda r, n: on_the_bus(deployment, "s0__pay", f"pay-{r}", n),
            "a `read` call at `/mcp`": lambda r, n: at_mcp(deployment, http, "s0__look", n),
            "a `once` call at `/mcp`": lambda r, n: at_mcp(deployment, http, "s0__pay", n),
        }
        found: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
        for number in range(-1, ROUNDS):
            for way, call in ways.items():
                before = deployment.spent()
                for n in range(CALLS):
                    await call(number, n)
                spent = {name: 1_000 * (now - before[name]) / CALLS for name, now in deployment.spent().items()}
                if number >= 0:
                    found[way].append(spent)
    bare = await asyncio.to_thread(bare_ms_on_uvloop, deployment)
    return [
        ["the official client alone, for one call", "", "", f"{bare:.2f}", ""],
        *(_cpu_row(way, measured) for way, measured in found.items()),
    ]


def bare_ms_on_uvloop(deployment: Deployment) -> float:
    """Return `bare_ms` as measured on the event loop that the registry has."""
    return uvloop.run(bare_ms(deployment))


async def bare_ms(deployment: Deployment) -> float:
    """Return what the official SDK's client needs for one call of the same server, on this thread."""
    async with Client(deployment.server, cache=None) as client:
        took: list[float] = []
        for _ in range(-1, ROUNDS):
            before = time.thread_time()
            for n in range(CALLS):
                await client.session.call_tool("look", {"number": str(n)})
            took.append(1_000 * (time.thread_time() - before) / CALLS)
    return median(took[1:])


def _cpu_row(way: str, measured: Sequence[dict[str, float]]) -> list[str]:
    each = [median(one[name] for one in measured) for name in OURS]
    total = median(sum(one.values()) for one in measured)
    return [way, *(f"{ms:.2f}" for ms in each), f"{total:.2f}", "yes" if total <= CPU_MAX_MS else "**no**"]


async def on_the_bus(deployment: Deployment, tool: str, job: str, n: int, *, timeout_s: float = 30) -> ToolReply:
    """Call a tool as the executor does."""
    ask = CallTool(
        tenant="default",
        key=ids.tool_key("default", job, n, "1"),
        job_id=job,
        step=n,
        call="1",
        tool=tool,
        arguments={"number": str(n)},
        deadline=datetime.now(UTC) + timedelta(seconds=timeout_s),
    )
    while True:
        reply = await deployment.platform.bus.ask(ask, ToolReply, timeout_s=timeout_s)
        if reply.status != "in_progress":
            break
    assert tool.endswith("__hang") or reply.content == str(n), reply
    return reply


async def at_mcp(deployment: Deployment, http: httpx2.AsyncClient, tool: str, n: int) -> None:
    """Call a tool as an MCP client of the newest protocol does, and nothing before it."""
    about = {
        "io.modelcontextprotocol/protocolVersion": PROTOCOL,
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": tool, "arguments": {"number": str(n)}, "_meta": about}
    answer = await http.post(
        deployment.mcp,
        json={"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": params},
        headers={
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": PROTOCOL,
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
        },
    )
    assert f'"text":"{n}"' in answer.text.replace(" ", ""), answer.text


# Many calls at once, with and without a server that hangs


async def concurrent_rows(deployment: Deployment) -> list[list[str]]:
    """Return the latency of the calls of nine servers, while the tenth hangs and while it does not."""
    found: dict[str, list[float]] = {"works": [], "hangs": []}
    for number in range(-1, ROUNDS):
        for tenth, p99s in found.items():
            p99 = await p99_of_nine(deployment, f"{tenth}-{number}", hangs=tenth == "hangs")
            if number >= 0:
                p99s.append(p99)
    ratios = [hung / well for hung, well in zip(found["hangs"], found["works"], strict=True)]
    shown = [f"{median(values):.0f}" for values in (found["works"], found["hangs"])]
    return [["p99 of the other nine, ms", *shown, f"{median(ratios):.2f} [{min(ratios):.2f}..{max(ratios):.2f}]"]]


async def p99_of_nine(deployment: Deployment, job: str, *, hangs: bool) -> float:
    """Make calls at once, a tenth of the callers to each server, and return the p99 of nine servers' calls."""
    took: list[float] = []

    async def caller(n: int) -> None:
        server = n % SERVERS
        last = server == SERVERS - 1
        # Once in both halves: what the other nine share the machine with differs in the hanging alone.
        for again in range(1 if last else TIMES):
            began = time.perf_counter()
            tool = "hang" if last and hangs else "look"
            await on_the_bus(deployment, f"s{server}__{tool}", f"{job}-{n}", again)
            if not last:
                took.append(1_000 * (time.perf_counter() - began))

    await asyncio.gather(*(caller(n) for n in range(AT_ONCE)))
    return sorted(took)[math.ceil(0.99 * len(took)) - 1]


async def measure(home: Path) -> str:
    """Return both tables."""
    async with start_deployment(home) as deployment:
        cpu = await cpu_rows(deployment)
        latency = await concurrent_rows(deployment)
    costs = page.table(["CPU, ms a call", "registry", "gateway", "together", f"at most {CPU_MAX_MS:g}"], cpu)
    waits = page.table([f"{AT_ONCE} calls at once over {SERVERS} servers", "all work", "one hangs", "ratio"], latency)
    return f"{costs}\n{waits}"


def main() -> None:
    """Measure, print, and write where asked."""
    parser = argparse.ArgumentParser(description="What a proxied call costs.")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the tables into this page")
    asked = parser.parse_args()
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        # Postgres runs as another user where we are root.
        home.chmod(0o711)
        tables = asyncio.run(measure(home))
    text = f"{page.machine(load_before)} {ROUNDS} rounds of {CALLS} calls, one after the other: medians.\n\n{tables}"
    if asked.write:
        page.write(asked.write, "proxied_calls", text)
    print(text)


if __name__ == "__main__":
    main()
