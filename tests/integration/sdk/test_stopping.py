"""A program of the SDK ends at SIGTERM, also while the bus is away."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from wayline.embedded import free_port
from wayline.testkit import until
from wayline.testkit.fixtures import NatsFactory
from wayline.testkit.fork_server import fork

PROGRAMS = {
    "tools": """
from wayline.sdk import Tools
tools = Tools("orders")
@tools.tool()
async def refund() -> str: ...
tools.run()
""",
    "finished jobs": """
from wayline.sdk import FinishedJobs
finished = FinishedJobs("billing")
@finished.handler
async def bill(job) -> None: ...
finished.run()
""",
}

SERVES = {"tools": "no registry has taken the tools of orders yet", "finished jobs": "following finished jobs as"}
"""What each logs once it is connected."""


AS_A_NEW_PYTHON = "import logging\nlogging.getLogger().handlers.clear()\n"
"""What the fork server imported for other tests may have set up logs, which a program then leaves as they are."""


def started(program: str, url: str, home: Path) -> Any:
    (home / "program.py").write_text(AS_A_NEW_PYTHON + PROGRAMS[program])
    env = {name: value for name, value in os.environ.items() if not name.startswith("WAYLINE_")}
    more = {"cwd": home, "log": home / "program.log", "env": {**env, "WAYLINE_NATS_URL": url}}
    return fork("runpy:run_path", str(home / "program.py"), imports=["wayline.sdk"], **more)


def logged(home: Path) -> str:
    return (home / "program.log").read_text()


@pytest.mark.parametrize("program", PROGRAMS)
async def test_sigterm_ends_a_program_that_never_reached_the_bus(program: str, tmp_path: Path):
    child = started(program, f"nats://127.0.0.1:{free_port()}", tmp_path)
    await until(lambda: "bus: " in logged(tmp_path), why="it has tried to connect")

    child.process.send_signal(signal.SIGTERM)

    await until(lambda: child.exited, why="it ends")
    assert child.process.returncode == 0


@pytest.mark.parametrize("program", PROGRAMS)
async def test_sigterm_ends_a_program_that_lost_the_bus(program: str, nats_factory: NatsFactory, tmp_path: Path):
    server = await nats_factory()
    child = started(program, server.url, tmp_path)
    await until(lambda: SERVES[program] in logged(tmp_path), why="it serves")
    await server.kill()
    await until(lambda: "bus: " in logged(tmp_path), why="it has noticed")

    child.process.send_signal(signal.SIGTERM)

    await until(lambda: child.exited, why="it ends")
    assert child.process.returncode == 0
