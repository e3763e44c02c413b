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
from base64 import b64encode
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from wayline.contracts.errors import Retry
from wayline.contracts.tools import ListTools, ToolList
from wayline.testkit import Platform, until
from wayline.testkit.effects_server import EffectsServer
from wayline.testkit.platform import QUICK

from ..bench import page
from ..bench.tool_platform import tool_platform
from .attack import Victim
from .cases import CASES, Case
from .names import HostileName, name_server
from .programs import PYTHON

QUIET_CALLS = 300
HOSTILE, OTHER = "mallory", "acme"
NAMES_ARE_OURS = os.geteuid() == 0
"""Only root can be a name server, and have one process ask it; the others leave those cases out."""
HEAD = ["case", "outcome", "held", "p99 of the other tenant, ms", "of its quiet p99", "peak memory, MiB"]


@dataclass(frozen=True)
class Measured:
    """What one case did."""

    case: Case
    came: str
    p99_ms: float
    peak_mib: float

    @property
    def holds(self) -> bool:
        return self.came in self.case.outcomes

    def cells(self, quiet_ms: float) -> list[str]:
        times = f"{self.p99_ms / quiet_ms:.1f}"
        held = "yes" if self.holds else f"**no**: {', '.join(self.case.outcomes)}"
        return [self.case.name, self.came, held, f"{self.p99_ms:.1f}", times, f"{self.peak_mib:.0f}"]


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
        return any(tool.name == "effects__pay_once" for tool in listed.tools)

    await until(hears, within=60, why="the registry answers")


async def _measure(platform: Platform, pid: int, kinds: tuple[str, ...]) -> str:
    victim = Victim(platform.bus, OTHER, "effects__pay_once")
    for _ in range(QUIET_CALLS):
        await victim.call()
    quiet_ms = victim.p99_ms(0)
    chosen = [case for case in CASES if case.name.startswith(kinds)]
    cases = [case for case in chosen if NAMES_ARE_OURS or not isinstance(case, HostileName)]
    found: list[Measured] = []
    async with victim.at_work():
        for number, case in enumerate(cases):
            peak_mib(pid)
            since = len(victim.took_ms)
            came = await case.run(platform.bus, HOSTILE, job=f"h{number}")
            found.append(Measured(case, came, victim.p99_ms(since), peak_mib(pid)))
            print(*found[-1].cells(quiet_ms), sep=" | ", flush=True)
    kept = sum(one.holds for one in found)
    worst = max(one.p99_ms for one in found)
    peak = max(one.peak_mib for one in found)
    return (
        f"{page.machine(os.getloadavg()[0])}\n\n"
        f"{kept} of {len(found)} cases have an outcome that they may have. The other tenant made {victim.calls} calls "
        f"with an effect: {victim.unknown} unknown, {victim.failed} failed; its p99 was {quiet_ms:.1f} ms in quiet and "
        f"at most {worst:.1f} ms ({worst / quiet_ms:.1f} times) during a case; the registry had at most {peak:.0f} MiB."
        "\n\n" + page.table(HEAD, [one.cells(quiet_ms) for one in found])
    )


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
