"""The example of the SDK, followed by its README: every command of it, on a platform of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from wayline.embedded import free_port
from wayline.embedded.process import children_of
from wayline.testkit import until
from wayline.testkit.processes import EMBEDS

ROOT = Path(__file__).parents[2]
README = ROOT / "examples" / "order_desk" / "README.md"
BLOCK = re.compile(r"^```\n(.+?)^```$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"\s{2,}#.*$", re.MULTILINE)
END_WITHIN_S = 40.0


class Terminals:
    """A user who follows the README, each block in a shell in the repository."""

    def __init__(self, home: Path, stack: ExitStack) -> None:
        self.home = home
        self.refunds = home / "refunds.txt"
        http, nats, simulator = free_port(), free_port(), free_port()
        self._simulator = str(simulator)
        self._stack = stack
        self.up_is_at = {"WAYLINE_URL": f"http://127.0.0.1:{http}", "WAYLINE_NATS_URL": f"nats://127.0.0.1:{nats}"}
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("WAYLINE_")} | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONUNBUFFERED": "1",
            # It is not about meaning: the model on board would embed every page of the repository for 10 s of CPU.
            EMBEDS: os.environ[EMBEDS],
            # What differs from a machine with nothing else on it: ports, and where files go.
            "WAYLINE_DATA_DIR": str(home / "data"),
            "WAYLINE_CONSOLE": "false",
            "WAYLINE_HTTP_PORT": str(http),
            "WAYLINE_NATS_PORT": str(nats),
            "ORDER_DESK_REFUNDS": str(self.refunds),
        }

    def blocks(self) -> Iterator[list[str]]:
        """Yield the commands of each block of the README."""
        for block in BLOCK.findall(README.read_text()):
            commands = COMMENT.sub("", block).replace(" refunds.txt", f" {self.refunds}")
            yield commands.replace("wayline simulate", f"wayline simulate --port {self._simulator}").splitlines()

    def run(self, command: str) -> str:
        """Run a command to its end and return what it prints."""
        done = subprocess.run(
            command, shell=True, cwd=ROOT, env=self.env, capture_output=True, text=True, timeout=90, check=False
        )
        return done.stdout + done.stderr

    def leave_running(self, command: str) -> Running:
        """Start a command that stays; it ends with the test."""
        running = Running(command, self.home / f"{len(list(self.home.glob('*.out')))}.out", self.env)
        self._stack.callback(running.interrupt)
        return running


class Running:
    """A command in a terminal of its own."""

    def __init__(self, command: str, output: Path, env: dict[str, str]) -> None:
        self._output = output
        with output.open("wb") as sink:
            self._shell = subprocess.Popen(
                command, shell=True, cwd=ROOT, env=env, stdout=sink, stderr=sink, start_new_session=True
            )

    @property
    def printed(self) -> str:
        return self._output.read_text()

    async def until_printed(self, text: str) -> str:
        await until(lambda: text in self.printed or self._shell.poll() is not None, within=60, why=f"it prints {text}")
        assert text in self.printed, self.printed
        return self.printed

    def kill(self) -> None:
        """End the program as `kill -9` does."""
        for pid in [*children_of(self._shell.pid), self._shell.pid]:
            os.kill(pid, signal.SIGKILL)
        self._shell.wait(END_WITHIN_S)

    def interrupt(self) -> None:
        """Press Ctrl-C and wait for the end."""
        if self._shell.poll() is None:
            os.killpg(self._shell.pid, signal.SIGINT)
            self._shell.wait(END_WITHIN_S)


@pytest.fixture
def terminals(server_dir: Path) -> Iterator[Terminals]:
    home = server_dir / "order_desk"
    home.mkdir()
    with ExitStack() as stack:
        yield Terminals(home, stack)


# Each command is a Python of its own, as at a terminal; services on the bus are tested in `sdk` and in `faults` too.
@pytest.mark.slow
@pytest.mark.timeout(280)
async def test_the_order_desks_readme_works_and_refunds_each_order_once(terminals: Terminals):
    simulate, up, desk, look, slow_desk, pay = terminals.blocks()

    simulated = await terminals.leave_running(*simulate).until_printed("WAYLINE_CHAT_BASE_URL=")
    terminals.env |= dict(re.findall(r"^export (\w+)=(.+)$", simulated, re.MULTILINE))
    await terminals.leave_running(*up).until_printed("Ctrl-C")
    terminals.env |= terminals.up_is_at
    serving = terminals.leave_running(*desk)
    await serving.until_printed("offering find_order, refund as orders")
    listed, paid, refunds = map(terminals.run, look)
    serving.interrupt()

    assert "orders__find_order" in listed and "orders__refund" in listed
    assert "42.00 paid back for A-1001" in paid
    assert refunds.startswith("A-1001 4200 ") and refunds.count("\n") == 1

    doomed = terminals.leave_running(*slow_desk)
    await doomed.until_printed("offering")
    paying = terminals.leave_running(*pay)
    await until(lambda: "A-1002" in terminals.refunds.read_text(), within=60, why="the refund has begun")
    doomed.kill()
    await terminals.leave_running(*desk).until_printed("offering")
    told = await paying.until_printed("wayline jobs answer")
    answer = next(line for line in told.splitlines() if "wayline jobs answer" in line)
    job, wait = re.findall(r"jobs answer (\S+) (\S+) ", answer)[0]
    terminals.run(f".venv/bin/wayline jobs answer {job} {wait} succeeded --content done")
    await until(lambda: "completed" in terminals.run(f".venv/bin/wayline jobs show {job}"), within=60, why="it ends")

    assert [line.split()[0] for line in terminals.refunds.read_text().splitlines()] == ["A-1001", "A-1002"]
