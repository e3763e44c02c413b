"""`wayline` as its users run it: a process of its own, on ports of its own."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from wayline.embedded import free_port
from wayline.embedded.process import Child, children_of, is_alive
from wayline.simulator.chat_server import ChatServer, Script
from wayline.testkit import until
from wayline.testkit.fixtures import run
from wayline.testkit.made_once import copy_made, make_once
from wayline.testkit.processes import EMBEDS, FEW_CONNECTIONS
from wayline.testkit.service_starts import finish_command, start_command

START_WITHIN_S = 120.0
END_WITHIN_S = 40.0


@dataclass
class Installed:
    """A data directory with ports of its own, and the `wayline` command for it."""

    data: Path
    nats_port: int = field(default_factory=free_port)
    http_port: int = field(default_factory=free_port)
    more: dict[str, str] = field(default_factory=dict)
    is_up_forked: bool = True
    """Whether `up` is forked from a process that has imported it, as all other commands are, or a new Python."""
    process: Child | None = None

    @property
    def env(self) -> dict[str, str]:
        ours = {name: value for name, value in os.environ.items() if not name.startswith("WAYLINE_") or name == EMBEDS}
        return {
            **ours,
            **FEW_CONNECTIONS,
            "WAYLINE_DATA_DIR": str(self.data),
            "WAYLINE_NATS_PORT": str(self.nats_port),
            "WAYLINE_HTTP_PORT": str(self.http_port),
            "WAYLINE_CONSOLE": "false",
            **self.more,
        }

    @property
    def output(self) -> Path:
        return self.data.with_name(f"{self.data.name}.out")

    @property
    def note(self) -> dict[str, Any] | None:
        """What the running `up` says of itself once it is ready."""
        path = self.data / "up.json"
        return json.loads(path.read_text()) if path.exists() and path.stat().st_size else None

    def wayline(self, *words: str, stdin: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        directory, variables = self.data.parent, {**self.env, **more}
        return finish_command(*words, cwd=directory, env=variables, stdin=stdin, within_s=START_WITHIN_S)

    def run_json(self, *words: str) -> Any:
        """Run a command with --json and return what it prints."""
        done = self.wayline(*words, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def get(self, path: str) -> Any:
        """Ask the gateway as a test that waits does: a command for each question would compute all the while."""
        url = f"http://127.0.0.1:{self.http_port}{path}"
        return httpx2.get(url, timeout=START_WITHIN_S, trust_env=False).raise_for_status().json()

    def spawn(self, *words: str, **more: str) -> subprocess.Popen[bytes]:
        """Start a command that stays."""
        with self.output.open("ab") as sink:
            return subprocess.Popen(
                [sys.executable, "-m", "wayline.standalone", *words],
                env={**self.env, **more},
                cwd=self.data.parent,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
            )

    def begin(self, *words: str) -> None:
        if self.is_up_forked:
            self.process = start_command("up", *words, cwd=self.data.parent, log=self.output, env=self.env)
        else:
            self.process = Child(self.spawn("up", *words))

    def start(self, *words: str) -> None:
        """`wayline up`, until it is ready."""
        self.begin(*words)
        run(until(self._is_ready, within=START_WITHIN_S, why=f"wayline up is ready; see {self.output}"))

    def _is_ready(self) -> bool:
        assert self.process is not None
        assert not self.process.exited, self.output.read_text()
        note = self.note
        return note is not None and note["pid"] == self.process.pid

    def servers(self) -> list[int]:
        assert self.process is not None
        return children_of(self.process.pid)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Signal it and wait for its end; nothing it started may be left."""
        assert self.process is not None
        servers = self.servers()
        ended = run(self.process.end(how, within_s=END_WITHIN_S))
        assert ended, self.output.read_text()
        run(until(lambda: not any(map(is_alive, servers)), within=END_WITHIN_S, why="its servers end with it"))
        status = self.process.process.returncode
        assert status is not None
        return status

    def abandon(self) -> None:
        if self.process is not None and not self.process.exited:
            self.stop(signal.SIGKILL)


@contextmanager
def serving_chat(script: Script) -> Iterator[ChatServer]:
    """Serve a scripted model on a thread of its own: the test's own waits for commands."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def begin() -> ChatServer:
        return await ChatServer(script).__aenter__()

    async def end(chat: ChatServer) -> None:
        await chat.__aexit__()

    try:
        chat = asyncio.run_coroutine_threadsafe(begin(), loop).result(START_WITHIN_S)
        yield chat
        asyncio.run_coroutine_threadsafe(end(chat), loop).result(START_WITHIN_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(START_WITHIN_S)
        loop.close()


@pytest.fixture(scope="module")
def wayline(server_dir: Path) -> Iterator[Installed]:
    """A running `wayline up --sample` outside a repository."""
    home = server_dir / f"up-{secrets.token_hex(3)}"
    home.mkdir()
    installed = Installed(home / "data", more={"WAYLINE_NATS_MONITOR_PORT": str(free_port())})
    installed.start("--sample")
    run(until(lambda: "Ctrl-C" in installed.output.read_text(), within=START_WITHIN_S, why="the first job is shown"))
    yield installed
    installed.abandon()


@pytest.fixture(scope="session")
def prepared(server_dir: Path) -> Path:
    """The data of an installation whose servers have run once: its tables and streams are there, and nothing else."""
    return make_once("prepared", prepare, own=server_dir) / "data"


def prepare(home: Path) -> None:
    """Start the servers of an installation for the first time, and end them."""
    installed = Installed(home / "data")
    installed.start("--servers-only")
    assert installed.stop() == 0
    (installed.data / "postgres" / "port").unlink()


@contextmanager
def empty_place(server_dir: Path, name: str) -> Iterator[Installed]:
    """Make an empty place; what is started there is gone afterwards."""
    home = server_dir / f"{name}-{secrets.token_hex(3)}"
    home.mkdir()
    installed = Installed(home / "data")
    try:
        yield installed
    finally:
        installed.abandon()


@pytest.fixture
def empty(server_dir: Path, request: pytest.FixtureRequest) -> Iterator[Installed]:
    """An empty place; what the test starts there is gone after it."""
    with empty_place(server_dir, f"fresh-{request.node.name[:30]}") as installed:
        yield installed


@pytest.fixture
def fresh(empty: Installed, prepared: Path) -> Installed:
    """An installation of the test's own, in which no service has run yet."""
    copy_made(prepared, empty.data)
    return empty


@pytest.fixture(scope="module")
def shared(server_dir: Path, prepared: Path) -> Iterator[Installed]:
    """An installation of all tests of a file, in which no service has run yet: the file's own fixture starts it."""
    with empty_place(server_dir, "shared") as installed:
        copy_made(prepared, installed.data)
        yield installed
