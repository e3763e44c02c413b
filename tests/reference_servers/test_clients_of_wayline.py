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
async def url(guarded_nats: Guarded, database: Database) -> AsyncIterator[str]:
    async with Platform.open(guarded_nats, database) as platform:
        simulator = await platform.simulate(turns(Say(text="All is done.")))
        at = {"anthropic_base_url": simulator.url}
        await platform.start(
            *("router", "executor", "tool_registry", "retrieval", "tracing", "gateway"),
            router=RouterSettings(**at),
            executor=ExecutorSettings(**at),
        )
        await platform.put_agent("user", instructions="Be brief.")
        yield f"http://127.0.0.1:{platform.http_port}/mcp"


async def run(*argv: str) -> Any:
    """Run a program of Node's and read the JSON that it prints."""
    process = await asyncio.create_subprocess_exec(
        *(node(), *argv),
        env={**os.environ, "PATH": f"{Path(node()).parent}:{os.environ['PATH']}"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    told, errors = await process.communicate()
    assert process.returncode == 0, f"{told.decode()}\n{errors.decode()}"
    return json.loads(told)


@pytest.mark.parametrize("version", ["new", "old"])
async def test_an_official_client_runs_tools_and_an_agent(url: str, version: str):
    # Beside the packages, or Node does not find them.
    script = shutil.copy(SCRIPT, installed("reference_servers"))

    told = await run(str(script), version, url)

    assert {"calculator", "run_agent", "search_knowledge"} <= set(told["tools"])
    assert (told["calculated"], told["answer"], told["resources"]) == ("42", "All is done.", 0)
    assert told["status"] == "completed"


async def test_the_inspectors_command_line_lists_and_calls_tools(url: str):
    [inspector] = installed(INSPECTOR).glob("clients/launcher/build/index.js")
    ask = (str(inspector), "--cli", url, "--transport", "http", "--method")

    listed = await run(*ask, "tools/list")
    called = await run(*ask, "tools/call", "--tool-name", "calculator", "--tool-arg", "expression=6*7")

    assert "calculator" in {tool["name"] for tool in listed["tools"]}
    assert called["content"][0]["text"] == "42"
