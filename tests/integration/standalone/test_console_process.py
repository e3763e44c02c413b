"""The console that `wayline up` keeps running beside its services."""

from __future__ import annotations

import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import httpx2
import pytest

from wayline.embedded import free_port
from wayline.embedded.process import children_of, is_alive
from wayline.standalone.servers.console import Console
from wayline.standalone.setup.installation import Installation
from wayline.testkit import until


def environment_of(pid: int) -> str:
    return Path(f"/proc/{pid}/environ").read_text()


async def test_the_console_comes_again_and_is_told_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    installation = Installation(tmp_path / "data")
    installation.prepare()
    before = set(children_of(os.getpid()))
    console = Console(installation, host="127.0.0.1", port=free_port(), gateway_url=f"http://127.0.0.1:{free_port()}")

    async def answers() -> bool:
        try:
            return (await http.get("/health/live")).status_code == 200
        except httpx2.TransportError:
            return False

    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(httpx2.AsyncClient(base_url=console.url, trust_env=False))
        await console.start(stack)
        await until(answers, why="the console answers")
        [first] = set(children_of(os.getpid())) - before
        told = environment_of(first)
        os.kill(first, signal.SIGKILL)
        await until(lambda: not is_alive(first), why="it is gone")
        await until(answers, why="it is started again")
        [second] = set(children_of(os.getpid())) - before

    assert "sk-secret" not in told and "WAYLINE_CONSOLE_COOKIE_KEY=" in told
    assert not is_alive(second)
    assert (installation.credentials / "console-cookie-key").stat().st_mode & 0o077 == 0
