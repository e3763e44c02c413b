"""What a call of a tool costs over the bus, beside the same tool over HTTP.

python -m tests.bench.bus_tools [--write docs/performance.md]

One registry, one asker, and each tool's host as a process of its own; rounds alternate, and the ratio is taken within
a round, so that what else the machine does weighs on both.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

from wayline.contracts import ids
from wayline.contracts.tools import CallTool, ListTools, ToolList, ToolReply
from wayline.embedded.ports import free_port
from wayline.embedded.process import Child, spawn
from wayline.testkit import Platform, until
from wayline.tool_registry.settings import Settings

from . import page
from .tool_platform import tool_platform

CALLS = 200
ROUNDS = 5
MEASURES = ("elapsed, ms a call", "CPU of registry and asker, ms a call", "CPU of the tool's host, ms a call")
OVER_HTTP = """
import sys
from mcp.server import MCPServer
server = MCPServer("http")

@server.tool(structured_output=False)
async def {effect}(number: str) -> str:
    return number

server.run("streamable-http", port=int(sys.argv[1]), json_response=True, stateless_http=True)
"""
OVER_BUS = """
from wayline.sdk import Tools
tools = Tools("bus-{effect}")

@tools.tool(effect="{effect}")
async def {effect}(number: str) -> str:
    return number

tools.run()
"""


async def measure(home: Path) -> list[list[str]]:
    """Return the rows of the table."""
    lines: list[list[str]] = []
    async with tool_platform(home) as platform:
        for effect in ("read", "once"):
            lines += await compare(platform, home, effect)
    return lines


async def compare(platform: Platform, home: Path, effect: str) -> list[list[str]]:
    """Return what calls of one effect cost on both ways."""
    port = free_port()
    hosts = {
        way: _host(home, f"{way}_{effect}", text.format(effect=effect), arguments, platform.nats.url)
        for way, text, arguments in (("http", OVER_HTTP, [str(port)]), ("bus", OVER_BUS, []))
    }
    # A service of a name that has other tools than before would wait for an approval.
    names = {"http": f"http__{effect}", "bus": f"bus-{effect}__{effect}"}
    server = {"name": "http", "url": f"http://127.0.0.1:{port}/mcp", "effects": {effect: effect}}
    await platform.start("tool_registry", tool_registry=Settings.model_validate({"servers": [server]}))

    async def listed() -> bool:
        found = await platform.bus.ask(ListTools(tenant="default"), ToolList, timeout_s=10)
        return set(names.values()) <= {tool.name for tool in found.tools}

    await until(listed, within=60, why="both tools are listed")
    found: dict[str, list[tuple[float, float, float]]] = {"http": [], "bus": []}
    for round_number in range(-1, ROUNDS):
        for way in ("http", "bus"):
            measured = await calls(platform, names[way], round_number, lambda pid=hosts[way].pid: cpu_of(pid))
            if round_number >= 0:
                found[way].append(measured)
    lines: list[list[str]] = []
    for n, name in enumerate(MEASURES):
        http, bus = ([one[n] for one in found[way]] for way in ("http", "bus"))
        ratios = [ours / theirs for ours, theirs in zip(bus, http, strict=True) if theirs]
        shown = [f"{median(values):.2f}" for values in (http, bus, ratios)]
        lines.append([f"`{effect}`: {name}", *shown])
    await platform.stop("tool_registry", 1)
    for host in hosts.values():
        host.process.send_signal(signal.SIGKILL)
    return lines


async def calls(
    platform: Platform, tool: str, round_number: int, host_cpu: Callable[[], float]
) -> tuple[float, float, float]:
    """Return what one call takes: elapsed, CPU here, CPU in the tool's host, in milliseconds."""
    began, used, theirs = time.perf_counter(), time.process_time(), host_cpu()
    for n in range(CALLS):
        job = f"{tool}-{round_number}"
        ask = CallTool(
            tenant="default",
            key=ids.tool_key("default", job, n, "1"),
            job_id=job,
            step=n,
            call="1",
            tool=tool,
            arguments={"number": str(n)},
            deadline=datetime.now(UTC) + timedelta(seconds=60),
        )
        reply = await platform.bus.ask(ask, ToolReply, timeout_s=10)
        assert reply.content == str(n), reply
    spent = (time.perf_counter() - began, time.process_time() - used, host_cpu() - theirs)
    elapsed, here, there = (1_000 * one / CALLS for one in spent)
    return elapsed, here, there


def cpu_of(pid: int) -> float:
    """Return the seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _host(home: Path, name: str, text: str, arguments: list[str], nats_url: str) -> Child:
    program = home / f"{name}.py"
    program.write_text(text)
    return spawn(
        [sys.executable, str(program), *arguments],
        cwd=home,
        log=home / f"{name}.log",
        death_signal=signal.SIGKILL,
        env={**os.environ, "WAYLINE_NATS_URL": nats_url},
    )


def main() -> None:
    """Measure, print, and write where asked."""
    parser = argparse.ArgumentParser(description="What a tool over the bus costs.")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page")
    asked = parser.parse_args()
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        # Postgres runs as another user where we are root.
        home.chmod(0o711)
        table = page.table(["measure", "HTTP", "bus", "ratio"], asyncio.run(measure(home)))
    text = f"{page.machine(load_before)} {ROUNDS} rounds of {CALLS} calls, one after the other: medians.\n\n{table}"
    if asked.write:
        page.write(asked.write, "bus_tools", text)
    print(text)


if __name__ == "__main__":
    main()
