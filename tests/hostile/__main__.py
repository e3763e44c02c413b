"""Run the whole hostile corpus against a registry with a second tenant at work.

python -m tests.hostile [--write docs/hostile.md] [transfer login ...]

With words, only the cases whose names begin with one of them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from base64 import b64encode
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from wayline.contracts.errors import Retry
from wayline.contracts.tools import ListTools, ToolList
from wayline.testkit import Platform, until
from wayline.testkit.effects_server import EffectsServer
from wayline.testkit.guarded import ADMIN
from wayline.testkit.platform import QUICK

from ..bench import page
from ..bench.tool_platform import tool_platform
from .cases import CASES, Case
from .names import HostileName, name_server
from .neighbour import TOOL, Calls, at_work
from .programs import PYTHON

QUIET_CALLS = 1_000
WARM_CALLS = 100
CALLS_MIN = 200
"""Of the other tenant in each case, which is done again until then: a p99 of fewer is only the worst of some calls."""
CASE_S = 60.0
"""How long a case is done again, however few the calls."""
LOWEST_PRIORITY = 19
HOSTILE, OTHER = "mallory", "acme"
NAMES_ARE_OURS = os.geteuid() == 0
"""Only root can be a name server, and have one process ask it; the others leave those cases out."""
HEAD = ["case", "outcome", "held", "calls", "p99 of the other tenant, ms", "of its quiet p99", "peak memory, MiB"]


@dataclass(frozen=True)
class Measured:
    """What one case did."""

    case: Case
    came: tuple[str, ...]
    """Each outcome that it had."""
    calls: int
    """Of the other tenant meanwhile."""
    p99_ms: float
    peak_mib: float

    @property
    def holds(self) -> bool:
        return set(self.came) <= set(self.case.outcomes)

    def cells(self, quiet_ms: float) -> list[str]:
        times = f"{self.p99_ms / quiet_ms:.1f}"
        held = "yes" if self.holds else f"**no**: {', '.join(self.case.outcomes)}"
        came = ", ".join(self.came)
        return [self.case.name, came, held, str(self.calls), f"{self.p99_ms:.1f}", times, f"{self.peak_mib:.0f}"]


def peak_mib(pid: int) -> float:
    """Return the most memory that a process has had, and begin anew."""
    status = Path(f"/proc/{pid}/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return peak / 1024


async def registry(platform: Platform, dsn: str, effects: EffectsServer, home: Path) -> asyncio.subprocess.Process:
    """Start a registry as a process of its own, which asks the hostile name server where that can be."""
    settings = {
        "SERVERS": json.dumps([effects.settings()]),
        "SERVER_ALLOWED_HOSTS": '["127.0.0.1:*", "10.0.0.0/16:*"]',
        "COMMANDS": json.dumps([PYTHON]),
        "KEYS": f"k:{b64encode(bytes(32)).decode()}",
        "CONNECT_TIMEOUT_S": "10",
        "RETRY_AFTER_S": "[]",
    }
    environment = {
        **os.environ,
        **{f"WAYLINE_TOOL_REGISTRY_{name}": value for name, value in settings.items()},
        "WAYLINE_NATS_URL": platform.nats.url,
        "WAYLINE_NATS_SEED": platform.nats.seeds["tool_registry"],
        "WAYLINE_NATS_ACCOUNTS": "true",
        "WAYLINE_POSTGRES_DSN": dsn,
    }
    command = (sys.executable, "-m", "wayline.tool_registry")
    if NAMES_ARE_OURS:
        resolver = home / "resolv.conf"
        resolver.write_text("nameserver 127.0.0.1\n")
        mounted = f'mount --bind "{resolver}" /etc/resolv.conf && exec "$@"'
        command = ("unshare", "--mount", "sh", "-c", mounted, "sh", *command)
    return await asyncio.create_subprocess_exec(*command, env=environment, stdout=asyncio.subprocess.DEVNULL)


async def run(home: Path, kinds: tuple[str, ...]) -> str:
    """Run the cases of these kinds, and return the page's part."""
    async with AsyncExitStack() as stack:
        if NAMES_ARE_OURS:
            await stack.enter_async_context(name_server())
        platform = await stack.enter_async_context(tool_platform(home, limits=QUICK))
        dsn = await platform.migrate("tool_registry")
        effects = await EffectsServer(home / "effects.txt").start()
        process = await registry(platform, dsn, effects, home)
        try:
            await _until_it_hears(platform)
            return await _measure(platform, process.pid, kinds)
        finally:
            process.terminate()
            await process.wait()
            effects.kill()


async def _until_it_hears(platform: Platform) -> None:
    async def hears() -> bool:
        try:
            listed = await platform.bus.ask(ListTools(tenant=OTHER), ToolList, timeout_s=6)
        except Retry:
            return False
        return any(tool.name == TOOL for tool in listed.tools)

    await until(hears, within=60, why="the registry answers")


async def _measure(platform: Platform, pid: int, kinds: tuple[str, ...]) -> str:
    chosen = [case for case in CASES if case.name.startswith(kinds)]
    cases = [case for case in chosen if NAMES_ARE_OURS or not isinstance(case, HostileName)]
    found: list[Measured] = []
    async with at_work(platform.nats.settings(ADMIN), OTHER) as calls:
        # The hostile servers are on this machine alone here: what they take of it is not the registry's.
        os.nice(LOWEST_PRIORITY)
        await _made(calls, WARM_CALLS)
        begun_s = time.monotonic()
        await _made(calls, WARM_CALLS + QUIET_CALLS)
        quiet_ms = calls.p99_ms(begun_s)
        for number, case in enumerate(cases):
            found.append(await _case(platform, calls, case, number=number, pid=pid))
            print(*found[-1].cells(quiet_ms), sep=" | ", flush=True)
    kept = sum(one.holds for one in found)
    unknown, failed = calls.counted("unknown"), calls.counted("failed")
    worst = max(one.p99_ms for one in found)
    twice = sum(one.p99_ms > 2 * quiet_ms for one in found)
    harmless = max((one.p99_ms for one in found if one.case.name.endswith("no harm")), default=None)
    beside = (
        f"; beside a server that does no harm it was {harmless:.1f} ms, and more than twice that in "
        f"{sum(one.p99_ms > 2 * harmless for one in found)} cases"
        if harmless
        else ""
    )
    peak = max(one.peak_mib for one in found)
    return (
        f"{page.machine(os.getloadavg()[0])}\n\n"
        f"{kept} of {len(found)} cases have an outcome that they may have. The other tenant made "
        f"{len(calls.made)} calls with an effect: {unknown} unknown, {failed} failed; its p99 was "
        f"{quiet_ms:.1f} ms in quiet, more than twice that in {twice} cases, and at most {worst:.1f} ms "
        f"({worst / quiet_ms:.1f} times){beside}; the registry had at most {peak:.0f} MiB."
        "\n\n" + page.table(HEAD, [one.cells(quiet_ms) for one in found])
    )


async def _made(calls: Calls, count: int) -> None:
    await until(lambda: len(calls.made) >= count, within=300, why=f"the other tenant has made {count} calls")


async def _case(platform: Platform, calls: Calls, case: Case, *, number: int, pid: int) -> Measured:
    """Do a case, again and again until the other tenant has made enough calls."""
    peak_mib(pid)
    begun_s = time.monotonic()
    came: list[str] = []
    while not came or (len(calls.since(begun_s)) < CALLS_MIN and time.monotonic() < begun_s + CASE_S):
        came.append(await case.run(platform.bus, HOSTILE, job=f"h{number}-{len(came)}"))
    made = calls.since(begun_s)
    return Measured(case, tuple(dict.fromkeys(came)), len(made), calls.p99_ms(begun_s), peak_mib(pid))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    parser.add_argument("kinds", nargs="*", default=[""])
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wayline-hostile-") as directory:
        home = Path(directory)
        home.chmod(0o711)
        text = asyncio.run(run(home, tuple(chosen.kinds)))
    if chosen.write:
        page.write(chosen.write, "corpus", text, by="make hostile")
    else:
        print(text)


if __name__ == "__main__":
    main()
