"""The official conformance suite against the gateway: its door, its middleware and its MCP stack.

`make mcp-conformance` installs the suite and Node, and runs this. What the suite asks for, `fixture_server.py` answers
in place of Wayline's own tools; all else is what every client of `/mcp` meets: keys and origins, limits, strict JSON,
tracing, the exchange without a session.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from wayline.gateway.handlers.mcp import changes
from wayline.gateway.handlers.mcp import server as wayline_server
from wayline.gateway.settings import Settings
from wayline.testkit import Database, Platform
from wayline.testkit.guarded import Guarded

from .figures import note
from .fixture_server import make_fixture
from .suite import WITHIN_S, check_server, expected_failures

pytestmark = [pytest.mark.slow, pytest.mark.timeout(WITHIN_S + 60)]


async def never(*_: Any) -> AsyncGenerator[None]:
    """Follow a resource of the suite, which does not change."""

    async def follow() -> AsyncGenerator[None]:
        await asyncio.Event().wait()
        yield

    return follow()


@pytest.fixture
async def url(guarded_nats: Guarded, database: Database, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(wayline_server, "make_server", make_fixture)
    monkeypatch.setattr(changes, "updates", never)
    async with Platform.open(guarded_nats, database) as platform:
        await platform.start("router", "gateway", gateway=Settings(http_port=0))
        yield f"http://127.0.0.1:{platform.http_port}/mcp"


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
async def test_the_door_passes_all_scenarios_but_those_named(url: str, revision: str):
    report = await check_server(url, revision)
    note("`/mcp`, with the suite's own tools", revision, report)

    assert len(report.required) >= 30, report.told
    assert report.failed == expected_failures("server", revision).keys(), report.told
