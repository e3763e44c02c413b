"""What MCP clients are told of changes: lists, and the jobs that they watch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import orjson
import pytest
import pytest_asyncio
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, ToolsListChanged

from wayline.telemetry import metrics
from wayline.testkit import Platform, until
from wayline.testkit.platform import STOP_GRACE_S

from ..jobs.conftest import index_document
from .conftest import Door, open_door

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

RESULT = "job://j1/result"
WITHIN_S = 20


@pytest.fixture(autouse=True, scope="module")
def look_often() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("wayline.gateway.handlers.mcp.changes.LOOK_EVERY_S", 0.1)
        monkeypatch.setattr("wayline.gateway.handlers.mcp.offers.FRESH_S", 0.05)
        yield


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_door(module_platform: Platform) -> Door:
    return await open_door(module_platform, "retrieval")


@pytest_asyncio.fixture(loop_scope="module")
async def door(shared_door: Door) -> Door:
    """The door for a tenant of the test's own, with a job that waits for an executor."""
    door = await shared_door.for_new_tenant()
    await submit_job(door.platform)
    return door


async def submit_job(platform: Platform) -> None:
    await platform.submit("j1")
    await platform.wait_until("j1", lambda job: job.routing.config is not None, "the job to be routed")


@asynccontextmanager
async def executing(platform: Platform) -> AsyncIterator[None]:
    """Run an executor, which takes up every job that waits."""
    await platform.start("executor")
    yield
    await platform.stop("executor", STOP_GRACE_S)


async def save_prompt(door: Door) -> None:
    url, prompt = f"http://127.0.0.1:{door.port}/v1/prompts/hello", {"messages": [{"text": "Hello."}]}
    async with httpx2.AsyncClient(headers=door.headers(await door.key("admin"))) as http:
        saved = await http.put(url, json=prompt)
    assert saved.status_code == 200, saved.text


class Told:
    """Keeps the methods and the URIs of what a client of an older protocol is told."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, str | None]] = set()

    async def __call__(self, message: Any) -> None:
        if method := getattr(message, "method", None):
            uri = getattr(message.params, "uri", None)
            self.seen.add((method, uri and str(uri)))

    async def has(self, method: str, uri: str | None = None) -> None:
        await until(lambda: (f"notifications/{method}", uri) in self.seen, why=f"{method} to be told")


async def next_of(told: Any, *wanted: Any) -> None:
    """Read a stream of changes until all of these were among them."""
    missing = set(wanted)
    async with asyncio.timeout(WITHIN_S):
        async for event in told:
            missing.discard(event)
            if not missing:
                return


async def test_a_client_that_listens_is_told_what_it_asked_for(door: Door):
    async with (
        door.client() as client,
        client.listen(
            tools_list_changed=True,
            prompts_list_changed=True,
            resources_list_changed=True,
            resource_subscriptions=[RESULT],
        ) as told,
    ):
        await door.platform.put_agent("critic")
        await next_of(told, ToolsListChanged())
        await save_prompt(door)
        await next_of(told, PromptsListChanged())
        await index_document(door.platform, "tides", "tides.md", "High water.")
        await next_of(told, ResourcesListChanged())
        async with executing(door.platform):
            await next_of(told, ResourceUpdated(RESULT))

    assert told.honored.resource_subscriptions == [RESULT]


async def test_what_was_not_asked_for_is_not_told(door: Door):
    async with door.client() as client, client.listen(prompts_list_changed=True) as told:
        await door.platform.put_agent("critic")
        await save_prompt(door)
        async with asyncio.timeout(WITHIN_S):
            first = await anext(aiter(told))

    assert first == PromptsListChanged()


async def test_only_jobs_of_the_tenant_can_be_watched(door: Door, shared_door: Door):
    other = await shared_door.for_new_tenant()
    asked = [RESULT, "job://nobody/result", "document://tides"]

    async with door.client() as mine, mine.listen(resource_subscriptions=asked) as told:
        assert told.honored.resource_subscriptions == [RESULT]
    async with (
        other.client() as theirs,
        theirs.listen(prompts_list_changed=True, resource_subscriptions=asked) as told,
    ):
        assert told.honored.resource_subscriptions is None


@asynccontextmanager
async def older_client(door: Door, told: Told, *, subscribing_at: Door | None = None) -> AsyncIterator[Client]:
    """Connect a client of an older protocol; what it subscribes to may reach another gateway than its stream."""

    class Spread(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            body = orjson.loads(await request.aread() or b"{}")
            if subscribing_at is not None and body.get("method", "").startswith("resources/"):
                request.url = request.url.copy_with(port=subscribing_at.port)
            return await super().handle_async_request(request)

    async with httpx2.AsyncClient(transport=Spread(), headers=door.headers(), timeout=60) as http:
        transport = streamable_http_client(door.url, http_client=http)
        async with Client(transport, mode="legacy", message_handler=told) as client:
            yield client


async def test_an_older_client_is_told_on_its_stream(door: Door):
    told = Told()

    async with older_client(door, told) as client:
        await client.subscribe_resource(RESULT)
        await door.platform.put_agent("critic")
        await told.has("tools/list_changed")
        await save_prompt(door)
        await told.has("prompts/list_changed")
        await index_document(door.platform, "tides", "tides.md", "High water.")
        await told.has("resources/list_changed")
        async with executing(door.platform):
            await told.has("resources/updated", RESULT)


async def test_a_subscription_reaches_the_stream_on_another_gateway(door: Door):
    told = Told()

    async with door.another() as other, older_client(door, told, subscribing_at=other) as client:
        await client.subscribe_resource(RESULT)
        await client.subscribe_resource("job://j1/trace")
        await client.unsubscribe_resource("job://j1/trace")
        async with executing(door.platform):
            await told.has("resources/updated", RESULT)
            await door.platform.wait_for("j1")

    assert ("notifications/resources/updated", "job://j1/trace") not in told.seen


async def test_what_never_changes_cannot_be_subscribed_to(door: Door):
    async with older_client(door, Told()) as client:
        with pytest.raises(MCPError, match="is no resource that changes"):
            await client.subscribe_resource("document://tides")
        with pytest.raises(MCPError, match="job 'j2'"):
            await client.subscribe_resource("job://j2/result")


async def test_without_a_stream_a_subscription_is_an_error(door: Door, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("wayline.gateway.handlers.mcp.subscriptions.STREAM_WITHIN_S", 0.6)
    message = {"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": RESULT}}
    accept = {"Accept": "application/json, text/event-stream", "Mcp-Session-Id": "s-1"}

    async with httpx2.AsyncClient(headers=door.headers(), timeout=30) as http:
        refused = await http.post(door.url, json=message, headers=accept)

    assert "first open one, with GET" in refused.text


@pytest.mark.asyncio(loop_scope="function")
async def test_streams_end_well_when_the_gateway_stops(platform: Platform):
    door = await open_door(platform)
    await submit_job(platform)

    async with door.client() as client, client.listen(tools_list_changed=True) as told:
        stopping = asyncio.create_task(platform.stop("gateway"))
        async with asyncio.timeout(WITHIN_S):
            assert [event async for event in told] == []
        await stopping

    assert metrics.event_streams._value.get() == 0
