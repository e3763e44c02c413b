"""What a tool's server asks, put to the user of the MCP client that called the tool."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import orjson
import pytest
import pytest_asyncio
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

from wayline.contracts.server_config import ServerSettings
from wayline.contracts.tenants import CreateTenant, Tenant
from wayline.telemetry import metrics
from wayline.testkit import Platform, until
from wayline.testkit.effects_server import EffectsServer

from ..jobs.conftest import until_listed, with_tools
from ..older_server import Ask, OlderServer
from .conftest import Door, open_another, open_door

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

SEND = "effects__send_once"
BOTH = pytest.mark.parametrize("mode", ["auto", "legacy"])


class User:
    """Fills in forms with the values that it was given, and keeps what it was shown."""

    def __init__(self, *answers: ElicitResult) -> None:
        self._answers = list(answers)
        self.shown: list[Any] = []

    async def __call__(self, _: Any, form: Any) -> ElicitResult:
        self.shown.append(form)
        return self._answers.pop(0)


def says(**content: Any) -> ElicitResult:
    return ElicitResult(action="accept", content=content)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def asking_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EffectsServer]:
    """A server whose tool asks for an account before it acts."""
    server = EffectsServer(tmp_path_factory.mktemp("effects") / "effects.txt", asking=True)
    yield await server.start()
    server.kill()


@pytest.fixture
def effects(asking_server: EffectsServer) -> EffectsServer:
    """The server that asks, without the effects of the test before."""
    asking_server.forget()
    return asking_server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def door(module_platform: Platform, asking_server: EffectsServer) -> Door:
    """The door of all tests that need no key: once there is one, nobody comes in without."""
    return await with_asking(module_platform, asking_server)


async def with_asking(platform: Platform, server: EffectsServer, **gateway: Any) -> Door:
    """Start the platform with the server that asks."""
    door = await open_door(platform, registry=with_tools(server.settings(), probe_every_s=0.2), **gateway)
    await until_listed(platform, SEND)
    return door


@BOTH
async def test_the_clients_user_answers_and_the_tool_acts_once(door: Door, effects: EffectsServer, mode: str):
    user = User(says(account="DE12"))

    async with door.client(mode=mode, elicitation_callback=user) as client:
        answered = await client.call_tool(SEND, {"amount": 5})

    assert answered.content[0].text == "send_once done: 5 from DE12"
    [form] = user.shown
    assert form.message == "From which account are 5 sent?"
    assert form.requested_schema["properties"]["account"]["minLength"] == 4
    [(_, key)] = effects.calls()
    assert key.endswith("/1/1/2")


@BOTH
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_question_that_the_user_declines_ends_the_call(
    door: Door, effects: EffectsServer, mode: str, action: str
):
    async with door.client(mode=mode, elicitation_callback=User(ElicitResult(action=action))) as client:
        answered = await client.call_tool(SEND, {"amount": 5})

    assert (answered.is_error, answered.meta["wayline/error"]) == (True, "denied")
    assert action in answered.content[0].text
    assert effects.calls() == []


@BOTH
async def test_a_client_without_forms_is_told_to_run_an_agent(door: Door, effects: EffectsServer, mode: str):
    async with door.client(mode=mode) as client:
        answered = await client.call_tool(SEND, {"amount": 5})

    assert (answered.is_error, answered.meta["wayline/error"]) == (True, "needs_input")
    assert effects.calls() == []


class Spread(httpx2.AsyncHTTPTransport):
    """Sends what a client answers and cancels to another gateway than what it asks."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self._port = port
        self.moved = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = orjson.loads(await request.aread() or b"{}")
        if "result" in body or body.get("method") == "notifications/cancelled":
            request.url = request.url.copy_with(port=self._port)
            self.moved += 1
        return await super().handle_async_request(request)


@asynccontextmanager
async def spread_client(door: Door, other: Door, **options: Any) -> AsyncIterator[tuple[Client, Spread]]:
    """Connect a client whose answers reach another gateway."""
    spread = Spread(other.port)
    async with httpx2.AsyncClient(transport=spread, timeout=60) as http:
        transport = streamable_http_client(door.url, http_client=http)
        async with Client(transport, mode="legacy", **options) as client:
            yield client, spread


async def test_an_answer_that_another_gateway_gets_reaches_the_call(door: Door, effects: EffectsServer):
    other = await open_another(door.platform)

    async with spread_client(door, other, elicitation_callback=User(says(account="DE12"))) as (client, spread):
        answered = await client.call_tool(SEND, {"amount": 5})

    assert answered.content[0].text == "send_once done: 5 from DE12"
    assert spread.moved == 1


async def test_a_call_cancelled_at_its_question_ends_on_any_gateway(door: Door, effects: EffectsServer):
    other = await open_another(door.platform)
    asked = asyncio.Event()

    async def think(_: Any, __: Any) -> ElicitResult:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with spread_client(door, other, elicitation_callback=think) as (client, spread):
        call = asyncio.create_task(client.call_tool(SEND, {"amount": 5}))
        await asyncio.wait_for(asked.wait(), 20)
        await until(lambda: metrics.event_streams._value.get() == 2, why="the stream of changes, and the question")
        call.cancel()
        await asyncio.wait([call])
        await until(lambda: metrics.event_streams._value.get() == 1, why="the call to end")

    assert spread.moved == 1
    assert effects.calls() == []


async def test_a_question_that_nobody_answers_in_time_ends_the_call(door: Door, effects: EffectsServer):
    hasty = await open_another(door.platform, mcp_wait_max_s=0.2)
    over = asyncio.Event()

    async def think(_: Any, __: Any) -> ElicitResult:
        await over.wait()
        return says(account="DE12")

    async with hasty.client(mode="legacy", elicitation_callback=think) as client:
        answered = await client.call_tool(SEND, {"amount": 5})
        over.set()

    assert (answered.is_error, answered.meta["wayline/error"]) == (True, "denied")
    assert "within 0.2 s" in answered.content[0].text
    assert effects.calls() == []


@pytest.mark.asyncio(loop_scope="function")
@BOTH
async def test_an_older_server_that_asks_two_things_is_answered_twice(platform: Platform, mode: str):
    async def act(ask: Ask) -> str:
        given = [(await ask(f"Your {what}?", {what: {"type": "string"}})).get("content") for what in ("name", "town")]
        return f"sent {given}"

    user = User(says(name="Ann"), says(town="Bern"))
    async with OlderServer(act).serving() as server:
        door = await open_door(platform, registry=with_tools(ServerSettings(name="old", url=server.url)))
        await until_listed(platform, "old__act")
        async with door.client(mode=mode, elicitation_callback=user) as client:
            answered = await client.call_tool("old__act", {})

    assert answered.content[0].text == "sent [{'name': 'Ann'}, {'town': 'Bern'}]"
    assert [form.message for form in user.shown] == ["Your name?", "Your town?"]


async def posted(door: Door, message: dict[str, Any], key: str | None = None) -> httpx2.Response:
    headers = {"Accept": "application/json, text/event-stream"} | ({"Authorization": f"Bearer {key}"} if key else {})
    async with httpx2.AsyncClient(headers=headers) as http:
        return await http.post(door.url, json={"jsonrpc": "2.0", **message})


async def test_an_answer_to_nothing_is_refused(door: Door):
    refused = await posted(door, {"id": "7", "result": {}})

    assert (refused.status_code, refused.json()["code"]) == (400, "nothing_asked")


async def test_a_state_that_no_call_returned_is_refused(door: Door, effects: EffectsServer):
    async with door.client() as client:
        with pytest.raises(Exception, match="not one that a call here has returned"):
            await client.session.call_tool(SEND, {"amount": 5}, request_state="made up")


@pytest.mark.asyncio(loop_scope="function")
async def test_another_tenant_cannot_answer(platform: Platform, effects: EffectsServer):
    door = await with_asking(platform, effects, mcp_wait_max_s=5)
    await platform.bus.ask(CreateTenant(tenant="other"), Tenant)
    stranger = await door.key(tenant="other")
    mine = await door.key()
    question = asyncio.get_running_loop().create_future()

    class Watched(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            body = orjson.loads(await request.aread() or b"{}")
            if "result" in body:
                question.set_result(body)
                await theirs_refused.wait()
            return await super().handle_async_request(request)

    theirs_refused = asyncio.Event()
    async with httpx2.AsyncClient(transport=Watched(), headers={"Authorization": f"Bearer {mine}"}, timeout=60) as http:
        transport = streamable_http_client(door.url, http_client=http)
        user = User(says(account="DE12"))
        async with Client(transport, mode="legacy", elicitation_callback=user) as client:
            call = asyncio.create_task(client.call_tool(SEND, {"amount": 5}))
            answer = await asyncio.wait_for(question, 20)
            stolen = {**answer, "result": {"action": "accept", "content": {"account": "XX99"}}}
            assert (await posted(door, stolen, stranger)).status_code == 202
            theirs_refused.set()
            answered = await call

    assert answered.content[0].text == "send_once done: 5 from DE12"
