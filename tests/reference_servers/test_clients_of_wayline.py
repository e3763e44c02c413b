"""MCP clients that others wrote, at Wayline's `/mcp`."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from wayline.executor.settings import Settings as ExecutorSettings
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator import Say, turns
from wayline.testkit import Database, Platform
from wayline.testkit.guarded import Guarded

from ..npm import installed, node

SCRIPT = Path(__file__).with_name("official_client.mjs")
INSPECTOR = "reference_servers/node_modules/@modelcontextprotocol/inspector"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture
async def platform(guarded_nats: Guarded, database: Database) -> AsyncIterator[Platform]:
    async with Platform.open(guarded_nats, database) as platform:
        simulator = await platform.simulate(turns(Say(text="All is done.")))
        at = {"anthropic_base_url": simulator.url}
        await platform.start(
            *("router", "executor", "tool_registry", "retrieval", "tracing", "gateway"),
            router=RouterSettings(**at),
            executor=ExecutorSettings(**at),
        )
        await platform.put_agent("user", instructions="Be brief.")
        yield platform


@pytest.fixture
def url(platform: Platform) -> str:
    return f"http://127.0.0.1:{platform.http_port}/mcp"


async def run(*argv: str) -> Any:
    """Run a program of Node's and read the JSON that it prints."""
    status, told, errors = await ended(*argv)
    assert status == 0, f"{told}\n{errors}"
    return json.loads(told)


async def ended(*argv: str) -> tuple[int | None, str, str]:
    """Run a program of Node's to its end; return its status, its output and its errors."""
    process = await asyncio.create_subprocess_exec(
        *(node(), *argv),
        # Not the home of whoever runs the tests: the inspector keeps there what it was told.
        env={**os.environ, "HOME": str(installed()), "PATH": f"{Path(node()).parent}:{os.environ['PATH']}"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    told, errors = await process.communicate()
    return process.returncode, told.decode(), errors.decode()


@pytest.mark.parametrize("version", ["new", "old"])
async def test_an_official_client_runs_tools_and_an_agent(url: str, version: str):
    # Beside the packages, or Node does not find them.
    script = shutil.copy(SCRIPT, installed("reference_servers"))

    told = await run(str(script), version, url)

    assert {"calculator", "run_agent", "search_knowledge"} <= set(told["tools"])
    assert (told["calculated"], told["answer"], told["resources"]) == ("42", "All is done.", 0)
    assert told["status"] == "completed"


def inspector(url: str, *more: str) -> tuple[str, ...]:
    """Return the inspector's command line, up to the method."""
    [launcher] = installed(INSPECTOR).glob("clients/launcher/build/index.js")
    return (str(launcher), "--cli", url, "--transport", "http", *more, "--method")


async def test_the_inspectors_command_line_lists_and_calls_tools(url: str):
    ask = inspector(url)

    listed = await run(*ask, "tools/list")
    called = await run(*ask, "tools/call", "--tool-name", "calculator", "--tool-arg", "expression=6*7")

    assert "calculator" in {tool["name"] for tool in listed["tools"]}
    assert called["content"][0]["text"] == "42"


async def test_the_inspectors_command_line_needs_the_bearers_key(platform: Platform, url: str):
    http = await platform.http()
    created = await http.post("/v1/keys", json={"name": "inspector", "scopes": ["read", "operator"]})
    assert created.is_success, created.text
    ask = inspector(url, "--header", f"Authorization: Bearer {created.json()['key']}")

    listed = await run(*ask, "tools/list")
    called = await run(*ask, "tools/call", "--tool-name", "calculator", "--tool-arg", "expression=6*7")
    status, told, _ = await ended(*inspector(url), "tools/list")

    assert "calculator" in {tool["name"] for tool in listed["tools"]}
    assert called["content"][0]["text"] == "42"
    assert (status != 0, "calculator" in told) == (True, False), told
