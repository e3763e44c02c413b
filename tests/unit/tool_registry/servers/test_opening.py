"""A server whose connection cannot even be prepared says why, and is tried again."""

from __future__ import annotations

import shutil
from pathlib import Path

import certifi
import pytest

from wayline.contracts.server_config import ServerSettings
from wayline.testkit import until
from wayline.tool_registry.definitions.arguments import Arguments
from wayline.tool_registry.servers.mcp_server import McpServer
from wayline.tool_registry.settings import Settings

NOWHERE = ServerSettings(name="s", url="http://127.0.0.1:9/mcp")


def says(server: McpServer, text: str) -> bool:
    return text in (server.problem or "")


async def test_a_missing_file_of_authorities_is_told_and_tried_again(tmp_path: Path):
    ca_file = tmp_path / "ca.pem"
    shutil.copy(certifi.where(), ca_file)
    settings = Settings(ca_file=ca_file, reconnect_wait_max_s=0.05)
    ca_file.unlink()
    server = McpServer(NOWHERE, settings, Arguments())
    server.start()
    await until(lambda: says(server, "No such file"), why="the server says that the file is missing")
    assert server.tried.is_set()
    assert server.listed.is_set()

    shutil.copy(certifi.where(), ca_file)

    await until(lambda: not says(server, "No such file"), why="the server is tried again")
    await server.stop()


async def test_approved_definitions_that_nobody_can_read_are_told(monkeypatch: pytest.MonkeyPatch):
    server = McpServer(NOWHERE, Settings(), Arguments())

    async def recall() -> None:
        raise ValueError("a row that nobody can read")

    monkeypatch.setattr(server._learner, "recall", recall)
    server.start()

    await until(lambda: says(server, "nobody can read"), why="the server says why it is not connected")
    await server.stop()
