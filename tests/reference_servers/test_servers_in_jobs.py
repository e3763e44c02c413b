"""MCP servers that others wrote, saved over HTTP and used by jobs, as programs and over HTTP."""

from __future__ import annotations

import asyncio
import os
import socket
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from wayline.contracts.events import ToolCompleted
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator import Say, turns
from wayline.testkit import Database, Platform, until
from wayline.testkit.guarded import Guarded
from wayline.tool_registry.settings import Settings as RegistrySettings

from ..npm import node
from .relay import relayed
from .servers import NAMES, Reference, npm_file, of_python, reference

PATHS = {"streamableHttp": "mcp", "sse": "sse"}
LIMITS = {"max_steps": 10, "adapt_steps": False}
"""Room for every call of the longest script."""
KEYS = f"k1:{b64encode(bytes(range(32))).decode()}"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture
async def platform(guarded_nats: Guarded, database: Database) -> AsyncIterator[Platform]:
    async with Platform.open(guarded_nats, database) as platform:
        yield platform


async def use(platform: Platform, name: str, config: dict[str, Any], known: Reference, directory: Path) -> None:
    """Save a server over HTTP, let a job make its calls, and see what each was answered."""
    calls = known.script(name, directory)
    simulator = await platform.simulate(turns(*(Say(tools=(call,)) for call in calls), Say(text="All is done.")))
    at = {"anthropic_base_url": simulator.url}
    await platform.start(
        *("router", "executor", "tool_registry", "gateway"),
        router=RouterSettings.model_validate(at),
        executor=ExecutorSettings.model_validate(at),
        tool_registry=RegistrySettings.model_validate(
            {
                "keys": KEYS,
                "commands": [{"command": node(), "env": ["MEMORY_FILE_PATH"]}, of_python("")[0]],
                "server_allowed_hosts": ["127.0.0.1:*"],
                # They write to a directory of the test's.
                "programs": "unconfined",
            }
        ),
    )
    http = await platform.http()
    await _ok(
        http.put(f"/v1/mcp/servers/{name}", json={**config, "effects": {tool: "read" for tool, _, _ in known.calls}})
    )
    await _connected(http, name)
    await _ok(http.put("/v1/agents/user", json={"instructions": "Use the tools.", "tools": [f"{name}__*"], **LIMITS}))

    job = (await _ok(http.post("/v1/jobs", json={"agent": "user", "input": "Go."})))["job_id"]
    if known.answer is not None:
        [asked] = (await platform.wait_until_parked(job)).tools.pending
        await platform.decide(job, asked.approval_id, arguments=known.answer)
    ended = await platform.wait_for(job)

    assert (ended.status, ended.answer) == ("completed", "All is done."), ended
    results = await platform.events_of(job, ToolCompleted)
    answers = [event.error.message if event.error else event.content for event in results]
    assert len(answers) == len(known.calls)
    for answer, (tool, _, words) in zip(answers, known.calls, strict=True):
        assert words in answer, f"{tool}: {answer}"


async def _ok(asked: Any) -> dict[str, Any]:
    response: httpx2.Response = await asked
    assert response.is_success, response.text
    return response.json()


async def _connected(http: httpx2.AsyncClient, name: str) -> None:
    async def is_connected() -> bool:
        return (await _ok(http.get(f"/v1/mcp/servers/{name}")))["state"] == "connected"

    await until(is_connected, within=60, why=f"{name} is connected")


@pytest.mark.parametrize("name", NAMES)
async def test_a_job_uses_the_server_as_a_program(platform: Platform, tmp_path: Path, name: str):
    await _repository(tmp_path)
    known = reference(name)

    await use(platform, name, known.config(tmp_path), known, tmp_path)


@pytest.mark.parametrize("name", NAMES[1:])
async def test_a_job_uses_the_server_over_http(platform: Platform, tmp_path: Path, name: str):
    await _repository(tmp_path)
    known = reference(name)

    async with relayed(known.config(tmp_path)) as url:
        await use(platform, name, {"url": url}, known, tmp_path)


async def test_a_person_answers_what_a_program_asks(platform: Platform, tmp_path: Path):
    known = reference("asking")

    await use(platform, "everything", known.config(tmp_path), known, tmp_path)


@pytest.mark.parametrize("name", ["everything", "asking"])
@pytest.mark.parametrize("transport", ["streamableHttp", "sse"])
async def test_a_job_uses_the_server_at_its_own_http_door(
    platform: Platform, tmp_path: Path, transport: str, name: str
):
    known = reference(name)

    async with listening(transport) as port:
        config = {"url": f"http://127.0.0.1:{port}/{PATHS[transport]}", "sse": transport == "sse"}
        await use(platform, "everything", config, known, tmp_path)


@asynccontextmanager
async def listening(transport: str) -> AsyncIterator[int]:
    """Run the reference server on a port of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *(node(), str(npm_file("server-everything")), transport),
        env={**os.environ, "PORT": str(port)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await until(lambda: _answers(port), why="the reference server listens")
        yield port
    finally:
        process.kill()
        await process.wait()


async def _answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


async def _repository(directory: Path) -> None:
    process = await asyncio.create_subprocess_exec("git", "init", "--quiet", str(directory))
    assert await process.wait() == 0
