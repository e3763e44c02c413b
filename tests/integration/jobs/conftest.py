"""Whole jobs through services in this process: what several files of tests set the same way."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from wayline.contracts.errors import Retry, WaylineError
from wayline.contracts.knowledge import Document, GetDocument, IndexDocument
from wayline.contracts.tools import ListTools, ToolList
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.gateway.adapters.keys import create_key
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import Platform, until
from wayline.testkit.effects_server import EffectsServer
from wayline.tool_registry.settings import Settings as RegistrySettings

from .ended_jobs import differences


@pytest.fixture
async def platform(platform: Platform, request: pytest.FixtureRequest) -> AsyncIterator[Platform]:
    """Replay every ended job once the test is over; `not_replayed(reason)` says why a test's jobs cannot be."""
    yield platform
    if request.node.get_closest_marker("not_replayed") is None:
        assert await differences(platform.bus) == []


async def index_document(
    platform: Platform, document_id: str, name: str, text: str, *, status: str = "ready"
) -> Document:
    """Index a document and wait until it can be found, or until it has failed where a test expects that."""
    document = IndexDocument(tenant=platform.tenant, document_id=document_id, name=name, text=text)
    await platform.bus.publish(document, msg_id=f"{platform.tenant}-{document_id}")

    async def indexed() -> Document | None:
        try:
            stored = await platform.bus.ask(GetDocument(tenant=platform.tenant, document_id=document_id), Document)
        except WaylineError:
            return None
        return stored if stored.status in ("ready", "failed") else None

    indexed_document = await until(indexed, why="the document is indexed")
    assert indexed_document is not None
    assert indexed_document.status == status, indexed_document.error
    return indexed_document


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_chat(module_platform: Platform) -> AsyncIterator[ChatServer]:
    """A model, and services that ask it, for all tests of a file: each gives it a script and is a tenant of its own."""
    async with ChatServer(lambda _: Say()) as chat:
        router = RouterSettings(chat_base_url=chat.url)
        await module_platform.start("router", "executor", "tool_registry", router=router, executor=chatting(chat))
        yield chat
        assert await differences(module_platform.bus) == []


@pytest.fixture
async def effects(tmp_path: Path) -> AsyncIterator[EffectsServer]:
    """An MCP server whose effects are counted in a file; every call takes as long as the test says."""
    server = EffectsServer(tmp_path / "effects.txt")
    yield server
    server.kill()


async def until_listed(platform: Platform, tool: str) -> None:
    """Wait until the registry lists a tool: an MCP server is connected beside the start."""

    async def listed() -> bool:
        try:
            found = await platform.bus.ask(ListTools(tenant="default"), ToolList)
        except Retry:
            return False
        return tool in {one.name for one in found.tools}

    await until(listed, why=f"{tool} is listed")


async def make_key(platform: Platform) -> str:
    """Make a key of the platform's tenant; from then on each request to the gateway has to show one."""
    store = await platform.store("gateway", max_size=1)
    key = await create_key(store, platform.tenant, "test")
    await store.close()
    return key


async def http_with_key(platform: Platform) -> httpx2.AsyncClient:
    """Connect to the gateway with a key of the platform's tenant."""
    http = await platform.http()
    http.headers["Authorization"] = f"Bearer {await make_key(platform)}"
    return http


def chatting(chat: ChatServer, **more: Any) -> ExecutorSettings:
    """Return the settings of an executor that calls a scripted provider."""
    return ExecutorSettings(chat_base_url=chat.url, tool_wait_s=2.0, **more)


def with_tools(*servers: dict[str, Any], **more: Any) -> RegistrySettings:
    """Return the settings of a registry with MCP servers beside the built-in tools, and short waits."""
    return RegistrySettings.model_validate(
        {
            "servers": list(servers),
            "lease_s": 0.9,
            "answer_within_s": 0.4,
            "cancel_wait_s": 0.4,
            "retry_after_s": [0.01, 0.02],
            "available_within_s": 0.5,
            "reconnect_wait_max_s": 0.3,
            **more,
        }
    )
