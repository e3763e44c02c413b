"""Wayline as an MCP server: real services in this process, and MCP clients of the official library."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from wayline.executor.settings import Settings as ExecutorSettings
from wayline.gateway.adapters.keys import create_key
from wayline.gateway.keys import Scope
from wayline.gateway.settings import Settings as GatewaySettings
from wayline.router.settings import Settings as RouterSettings
from wayline.testkit import Database, Platform
from wayline.testkit.effects_server import EffectsServer
from wayline.testkit.guarded import Guarded
from wayline.testkit.platform import STOP_GRACE_S
from wayline.tool_registry.settings import Settings as RegistrySettings

from ..jobs.conftest import effects, shared_chat, until_listed, with_tools

__all__ = ["effects", "shared_chat"]

ALL: tuple[Scope, ...] = ("read", "write", "tools")


@dataclass
class Door:
    """A gateway of a platform, which serves `/mcp`."""

    platform: Platform
    port: int
    own_key: str | None = None
    """What a client comes with that is given no key; None: it comes as a program of this machine."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    async def key(self, *scopes: Scope, tenant: str | None = None, **more: Any) -> str:
        """Create an API key."""
        store = await self.platform.store("gateway", max_size=1)
        try:
            return await create_key(store, tenant or self.platform.tenant, "desktop", scopes=scopes or ALL, **more)
        finally:
            await store.close()

    async def for_new_tenant(self) -> Door:
        """Return this door for a tenant that no other test has, with a key for everything."""
        door = Door(await self.platform.new_tenant(), self.port)
        return replace(door, own_key=await door.key())

    @asynccontextmanager
    async def another(self, **gateway: Any) -> AsyncIterator[Door]:
        """Run one more gateway for the same clients."""
        door = await open_another(self.platform, **gateway)
        yield replace(door, own_key=self.own_key)
        await self.platform.stop("gateway", STOP_GRACE_S)

    def headers(self, key: str | None = None) -> dict[str, str]:
        """Return what a client shows with each request."""
        shown = key or self.own_key
        return {} if shown is None else {"Authorization": f"Bearer {shown}"}

    @asynccontextmanager
    async def client(self, key: str | None = None, *, mode: str = "auto", **options: Any) -> AsyncIterator[Client]:
        """Connect a client."""
        async with httpx2.AsyncClient(headers=self.headers(key), timeout=60) as http:
            transport = streamable_http_client(self.url, http_client=http)
            async with Client(transport, mode=mode, **options) as client:
                yield client


@pytest.fixture
async def platform(guarded_nats: Guarded, database: Database) -> AsyncIterator[Platform]:
    async with Platform.open(guarded_nats, database) as platform:
        yield platform


@pytest_asyncio.fixture(loop_scope="module")
async def door(shared_door: Door) -> Door:
    """The door that a file's tests share, for a tenant of the test's own."""
    return await shared_door.for_new_tenant()


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


async def with_effects(platform: Platform, effects: EffectsServer, *services: str, **server: Any) -> Door:
    """Start the platform with a server whose effects are counted."""
    await effects.start()
    door = await open_door(platform, *services, registry=with_tools(effects.settings(**server)))
    await until_listed(platform, "effects__pay_once")
    return door


async def open_another(platform: Platform, **gateway: Any) -> Door:
    """Start one more gateway."""
    await platform.start("gateway", gateway=GatewaySettings(**{"http_port": 0, **gateway}))
    return Door(platform, platform.http_port)
