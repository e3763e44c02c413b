"""Wayline as an MCP server: real services in this process, and MCP clients of the official library."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from wayline.executor.settings import Settings as ExecutorSettings
from wayline.gateway.adapters.keys import create_key
from wayline.gateway.keys import Scope
from wayline.gateway.settings import Settings as GatewaySettings
from wayline.router.settings import Settings as RouterSettings
from wayline.testkit import Database, Platform
from wayline.testkit.guarded import Guarded
from wayline.tool_registry.settings import Settings as RegistrySettings

from ..jobs.conftest import effects

__all__ = ["effects"]

ALL: tuple[Scope, ...] = ("read", "write", "tools")


@dataclass
class Door:
    """A gateway of a platform, which serves `/mcp`."""

    platform: Platform
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    async def key(self, *scopes: Scope, tenant: str = "default") -> str:
        """Create an API key."""
        return await create_key(await self.platform.store("gateway"), tenant, "desktop", scopes=scopes or ALL)

    @asynccontextmanager
    async def client(self, key: str | None = None, *, mode: str = "auto", **options: Any) -> AsyncIterator[Client]:
        """Connect a client; without a key, as a program of this machine."""
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            transport = streamable_http_client(self.url, http_client=http)
            async with Client(transport, mode=mode, **options) as client:
                yield client


@pytest.fixture
async def platform(guarded_nats: Guarded, database: Database) -> AsyncIterator[Platform]:
    async with Platform.open(guarded_nats, database) as platform:
        yield platform


async def open_door(
    platform: Platform,
    *services: str,
    router: RouterSettings | None = None,
    executor: ExecutorSettings | None = None,
    registry: RegistrySettings | None = None,
    **gateway: Any,
) -> Door:
    """Start what answers for tools and agents, the named services, and a gateway on a free port."""
    await platform.start("router", "tool_registry", *services, router=router, executor=executor, tool_registry=registry)
    return await open_another(platform, **gateway)


async def open_another(platform: Platform, **gateway: Any) -> Door:
    """Start one more gateway."""
    await platform.start("gateway", gateway=GatewaySettings(**{"http_port": 0, **gateway}))
    return Door(platform, platform.http_port)
