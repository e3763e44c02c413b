"""Resources and prompts of tenants' servers are listed and read, within limits and apart for each tenant."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.server.mcpserver import MCPServer
from pydantic import SecretStr

from wayline.contracts.errors import Reject
from wayline.contracts.mcp_servers import EnableServer, PutServer, ServerView
from wayline.contracts.server_config import ServerConfig
from wayline.contracts.server_resources import (
    FilledPrompt,
    FillServerPrompt,
    ListServerPrompts,
    ListServerResources,
    PromptArgument,
    ReadServerResource,
    ResourceContents,
    ResourcePart,
    ServerPrompts,
    ServerResources,
)
from wayline.testkit.mcp_servers import serving

from .test_tenant_servers import ALLOWED

SECRET = "canary-of-the-library"


@asynccontextmanager
async def library(platform, **settings: Any) -> AsyncIterator[None]:
    """A tenant's server with resources and prompts, and a registry that is connected to it."""
    server = MCPServer("library")

    @server.resource("note://tides", name="tides", mime_type="text/plain")
    def tides() -> str:
        return f"High at noon. {SECRET}"

    @server.resource("pixel://{name}", name="pixel", mime_type="image/png")
    def pixel(name: str) -> bytes:
        return name.encode()

    @server.prompt()
    def summary(length: str) -> str:
        """Sum up a text."""
        return f"Sum it up, {length}."

    async with serving(server) as url:
        await platform.registry(platform.effects.settings(), **ALLOWED, **settings)
        config = ServerConfig(url=url, headers={"X-Key": SecretStr(SECRET)})
        await platform.bus.ask(PutServer(tenant=platform.tenant, name="library", config=config), ServerView)
        yield


async def read(platform, uri: str, tenant: str | None = None) -> ResourceContents:
    ask = ReadServerResource(tenant=tenant or platform.tenant, name="library", uri=uri)
    return await platform.bus.ask(ask, ResourceContents, timeout_s=20)


async def test_resources_and_templates_are_listed_and_read_without_secrets(platform):
    async with library(platform, available_within_s=10):
        ask = ListServerResources(tenant=platform.tenant, name="library")
        listed = await platform.bus.ask(ask, ServerResources, timeout_s=20)
        text, content = await read(platform, "note://tides"), await read(platform, "pixel://red")

    assert [(one.uri, one.name, one.mime_type) for one in listed.resources] == [("note://tides", "tides", "text/plain")]
    assert [one.uri_template for one in listed.templates] == ["pixel://{name}"]
    assert (listed.resources_total, listed.templates_total) == (1, 1)
    assert text.contents == (ResourcePart(uri="note://tides", mime_type="text/plain", text="High at noon. ***"),)
    assert content.contents == (ResourcePart(uri="pixel://red", mime_type="image/png", base64="cmVk"),)


async def test_prompts_are_listed_and_filled_in(platform):
    async with library(platform, available_within_s=10):
        listed = await platform.bus.ask(
            ListServerPrompts(tenant=platform.tenant, name="library"), ServerPrompts, timeout_s=20
        )
        ask = FillServerPrompt(tenant=platform.tenant, name="library", prompt="summary", arguments={"length": "short"})
        filled = await platform.bus.ask(ask, FilledPrompt, timeout_s=20)

    assert [(one.name, one.description) for one in listed.prompts] == [("summary", "Sum up a text.")]
    assert listed.prompts[0].arguments == (PromptArgument(name="length", required=True),)
    assert [(one.role, one.content["text"]) for one in filled.messages] == [("user", "Sum it up, short.")]


async def test_unknown_foreign_and_oversized_resources_are_refused(platform):
    async with library(platform, available_within_s=10, result_max_bytes=100):
        with pytest.raises(Reject) as unknown:
            await read(platform, "note://nothing")
        with pytest.raises(Reject) as foreign:
            await read(platform, "note://tides", tenant=f"{platform.tenant}-other")
        with pytest.raises(Reject) as oversized:
            await read(platform, f"pixel://{'x' * 100}")

    codes = [(error.value.code, error.value.status) for error in (unknown, foreign, oversized)]
    assert codes == [("server_refused", 422), ("not_found", 404), ("answer_too_large", 422)]


async def test_a_disabled_server_says_how_to_enable_it(platform):
    async with library(platform):
        await platform.bus.ask(EnableServer(tenant=platform.tenant, name="library", enabled=False), ServerView)

        with pytest.raises(Reject) as refused:
            await read(platform, "note://tides")

    assert str(refused.value) == "library cannot be asked: it is disabled; `wayline mcp enable library` enables it"
