"""Tools of a tenant's own service: announced on the bus, called there, gone when it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from nats.aio.msg import Msg

from wayline.contracts import headers as h
from wayline.contracts.bus_tools import Announced, AnnounceTools, BusTool, InvokeTool
from wayline.contracts.errors import Refused
from wayline.contracts.mcp_servers import PutServer, ServerView
from wayline.contracts.server_config import ServerConfig
from wayline.contracts.tools import CallTool, Effect, ListTools, ToolList, ToolReply
from wayline.testkit import known_to_server, until
from wayline.testkit.walks import cases
from wayline.tool_registry.bus_tools import bus_service

from .conftest import RegistryPlatform

AMOUNT = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
TOOLS = (
    BusTool(name="refund", description="Pay an order back.", input_schema=AMOUNT, timeout_s=20),
    BusTool(name="look", effect=Effect.READ),
    BusTool(name="put", effect=Effect.IDEMPOTENT),
    BusTool(name="book", effect=Effect.RECONCILE),
)
TENANT = "default"
"""The clients' tenant: a bus without credentials is one of it."""

Serve = Callable[[Msg, InvokeTool], Awaitable[None]]


class OrderDesk:
    """A service as anyone may write it: a plain connection without credentials, which speaks the wire."""

    def __init__(self, platform: RegistryPlatform, instance: str = "one") -> None:
        self._nc = platform.client
        self.instance = instance
        self.started_at = datetime.now(UTC)
        self.calls: list[InvokeTool] = []
        self.headers: list[dict[str, str]] = []

    async def serve(self, answer: Serve) -> None:
        async def on_call(message: Msg) -> None:
            call = InvokeTool.from_wire(message.data, message.subject)
            self.calls.append(call)
            self.headers.append(dict(message.headers or {}))
            await answer(message, call)

        self._subscription = await self._nc.subscribe("tools.invoke.default.orders", "orders", cb=on_call)

    async def leave(self) -> None:
        await self._subscription.unsubscribe()

    async def announce(
        self, tools: tuple[BusTool, ...] = TOOLS, *, service: str = "orders", leaving: bool = False
    ) -> Announced:
        announcement = AnnounceTools(
            tenant=TENANT,
            service=service,
            instance=self.instance,
            started_at=self.started_at,
            tools=tools,
            leaving=leaving,
        )
        answer = await self._nc.request(announcement.subject, announcement.to_wire(), timeout=5)
        if h.ERROR in (answer.headers or {}):
            raise AssertionError(answer.data.decode())
        return Announced.model_validate_json(answer.data)


async def done(message: Msg, call: InvokeTool) -> None:
    """Answer a call at once."""
    await message.respond(orjson.dumps({"text": f"{call.tool} {call.arguments.get('amount')}"}))


@pytest.fixture
async def desk(platform: RegistryPlatform) -> AsyncIterator[OrderDesk]:
    platform.tenant = TENANT
    yield OrderDesk(platform)


async def names(platform: RegistryPlatform, *patterns: str) -> list[str]:
    listed = await platform.bus.ask(ListTools(tenant=TENANT, patterns=patterns or ("orders__*",)), ToolList)
    return [tool.name for tool in listed.tools]


def refund(platform: RegistryPlatform, **more: Any) -> CallTool:
    return platform.ask("orders__refund", {"amount": 7}, **more)


async def test_an_announced_tool_is_listed_and_called_with_key_and_trace(platform: RegistryPlatform, desk: OrderDesk):
    registry = await platform.registry()
    await desk.serve(done)
    await desk.announce()
    ask = refund(platform, user_id="ada")

    reply = await platform.call(ask)

    assert await names(platform) == ["orders__book", "orders__look", "orders__put", "orders__refund"]
    assert (reply.status, reply.content, reply.effect) == ("success", "refund 7", Effect.ONCE)
    (call,) = desk.calls
    assert (call.tenant, call.service, call.tool) == ("default", "orders", "refund")
    assert (call.key, call.job_id, call.step, call.call, call.user_id) == (ask.key, "j1", 1, "1", "ada")
    assert call.deadline < datetime.now(UTC) + timedelta(seconds=21)
    (span,) = [one for one in registry.spans.get_finished_spans() if one.name == "tools/call refund"]
    assert span.context is not None
    assert desk.headers[0]["traceparent"].split("-")[1:3] == [
        f"{span.context.trace_id:032x}",
        f"{span.context.span_id:016x}",
    ]


async def test_a_repeated_call_gets_the_stored_result(platform: RegistryPlatform, desk: OrderDesk):
    await platform.registry()
    await desk.serve(done)
    await desk.announce()
    ask = refund(platform)

    first, second = await platform.call(ask), await platform.call(ask)

    assert (first.repeated, second.repeated, second.content) == (False, True, "refund 7")
    assert len(desk.calls) == 1


async def test_a_registry_that_starts_hears_of_services_at_once(platform: RegistryPlatform, desk: OrderDesk):
    await desk.serve(done)

    async def announce(_: Msg) -> None:
        await desk.announce()

    await platform.client.subscribe("tools.wanted", cb=announce)
    await known_to_server(platform.client)
    await platform.registry()

    assert (await platform.call(refund(platform))).content == "refund 7"


async def test_a_call_without_a_listening_instance_is_unavailable(platform: RegistryPlatform, desk: OrderDesk):
    await platform.registry()
    await desk.announce()

    reply = await platform.call(refund(platform))

    assert (reply.status, reply.error and reply.error.code) == ("failed", "unavailable")
    await desk.serve(done)
    again = await platform.call(refund(platform, call="2"))
    assert again.status == "success"


@pytest.mark.parametrize(
    ("tool", "outcome"), [("refund", ("unknown", None)), ("look", ("failed", "unavailable"))], ids=["once", "read"]
)
async def test_a_delivered_call_without_an_answer_follows_its_effect(
    platform: RegistryPlatform, desk: OrderDesk, monkeypatch: pytest.MonkeyPatch, tool: str, outcome: Any
):
    monkeypatch.setattr(bus_service, "SILENT_MAX_S", 0.3)
    await platform.registry()

    async def nothing(message: Msg, call: InvokeTool) -> None:
        return None

    await desk.serve(nothing)
    await desk.announce()

    reply = await platform.call(platform.ask(f"orders__{tool}", {"amount": 7}))

    assert (reply.status, reply.error and reply.error.code) == outcome
    assert len(desk.calls) == (1 if tool == "refund" else 3)


async def test_heartbeats_keep_a_long_call_alive(
    platform: RegistryPlatform, desk: OrderDesk, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(bus_service, "SILENT_MAX_S", 0.5)
    await platform.registry()

    async def slow(message: Msg, call: InvokeTool) -> None:
        for _ in range(12):
            await asyncio.sleep(0.1)
            await platform.client.publish(message.reply, b"", headers={h.HEARTBEAT: "1"})
        await done(message, call)

    await desk.serve(slow)
    await desk.announce()

    assert (await platform.call(refund(platform))).content == "refund 7"


async def test_a_call_that_a_service_did_not_begin_is_unavailable(platform: RegistryPlatform, desk: OrderDesk):
    await platform.registry()

    async def draining(message: Msg, call: InvokeTool) -> None:
        problem = {"code": "unavailable", "title": "unavailable", "detail": "it is being stopped", "status": 503}
        await platform.client.publish(message.reply, orjson.dumps(problem), headers={h.ERROR: "unavailable"})

    await desk.serve(draining)
    await desk.announce()

    reply = await platform.call(refund(platform))

    assert (reply.status, reply.error and reply.error.code) == ("failed", "unavailable")
    assert reply.error is not None and "it is being stopped" in reply.error.message


async def test_a_call_that_one_instance_refused_is_made_by_another(platform: RegistryPlatform, desk: OrderDesk):
    await platform.registry(available_within_s=60)

    async def full_at_first(message: Msg, call: InvokeTool) -> None:
        if len(desk.calls) > 2:
            return await done(message, call)
        problem = {"code": "unavailable", "title": "unavailable", "detail": "it runs 64 calls", "status": 503}
        await platform.client.publish(message.reply, orjson.dumps(problem), headers={h.ERROR: "unavailable"})

    await desk.serve(full_at_first)
    await desk.announce()

    reply = await platform.call(refund(platform))

    assert (reply.status, reply.content, reply.attempts) == ("success", "refund 7", 1)
    assert len({call.key for call in desk.calls}) == 1 and len(desk.calls) == 3


@pytest.mark.parametrize("body", [b"no json", b"[]", b'{"text": 5}'], ids=["text", "array", "wrong field"])
async def test_an_answer_of_another_shape_has_acted(platform: RegistryPlatform, desk: OrderDesk, body: bytes):
    await platform.registry()

    async def lie(message: Msg, call: InvokeTool) -> None:
        await message.respond(body)

    await desk.serve(lie)
    await desk.announce()

    reply = await platform.call(refund(platform))

    assert reply.status == "success"
    assert "The tool has run" in reply.content
    assert reply.content.endswith(body.decode())


async def test_a_result_has_its_error_cost_and_entities(platform: RegistryPlatform, desk: OrderDesk):
    await platform.registry()
    answers = [
        {"error": "the order was paid back already", "cost_usd": "0.01"},
        {"structured": {"entities": [{"type": "order", "id": "A-1"}]}, "cost_usd": "0.02"},
    ]

    async def answer(message: Msg, call: InvokeTool) -> None:
        await message.respond(orjson.dumps(answers[len(desk.calls) - 1]))

    await desk.serve(answer)
    await desk.announce()

    failed, succeeded = [await platform.call(refund(platform, call=call)) for call in ("1", "2")]

    assert failed.error is not None and failed.error.message == "the order was paid back already"
    assert [float(one.cost_usd or 0) for one in (failed, succeeded)] == [0.01, 0.02]
    assert [entity.id for entity in succeeded.entities] == ["A-1"]


async def test_a_service_that_leaves_is_away_until_it_is_back(platform: RegistryPlatform, desk: OrderDesk):
    await platform.registry()
    await desk.serve(done)
    await desk.announce()
    await desk.announce(leaving=True)

    reply = await platform.call(refund(platform))

    assert await names(platform) == []
    assert (reply.status, reply.error and reply.error.code) == ("failed", "unavailable")
    listed = await platform.bus.ask(ListTools(tenant=TENANT), ToolList)
    assert [one.name for one in listed.away] == ["orders"]
    await desk.announce()
    assert (await platform.call(refund(platform, call="2"))).status == "success"


async def test_a_service_whose_announcements_stop_is_away(
    platform: RegistryPlatform, desk: OrderDesk, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(bus_service, "ANNOUNCED_FOR_S", 0.2)
    await platform.registry()
    await desk.announce()

    async def gone() -> bool:
        return await names(platform) == []

    await until(gone, why="the announcement has run out")


async def test_the_tools_of_the_newest_instance_count(platform: RegistryPlatform, desk: OrderDesk):
    await platform.registry()
    newer = OrderDesk(platform, "two")
    await newer.announce((*TOOLS, BusTool(name="cancel")))
    await desk.announce()

    both = await names(platform)
    await newer.announce(leaving=True)

    assert "orders__cancel" in both
    assert "orders__cancel" not in await names(platform) and "orders__refund" in await names(platform)


async def test_a_tool_with_a_bad_definition_is_left_out_and_named(platform: RegistryPlatform, desk: OrderDesk):
    await platform.registry()
    bad = (
        BusTool(name="kind", input_schema={"type": "object", "properties": {"a": {"type": "nothing"}}}),
        BusTool(name="list", input_schema={"type": "array"}),
        BusTool(name="hidden", description="Pay\u200b back."),
        BusTool(name="x" * 60),
    )

    announced = await desk.announce((*bad, BusTool(name="fine")))

    assert set(announced.left_out) == {"kind", "list", "hidden", "x" * 60}
    assert await names(platform) == ["orders__fine"]


@pytest.mark.parametrize(
    ("tools", "why"),
    [
        ([{"name": "a b"}], "tools.0.name"),
        ([{"name": "a", "description": "x" * 9_000}], "tools.0.description"),
        ([{"name": "a", "input_schema": {"type": "object", "description": "x" * 40_000}}], "input_schema takes"),
        ([{"name": "a", "timeout_s": 3_600}], "tools.0.timeout_s"),
        ([{"name": f"t{n}"} for n in range(101)], "tools"),
    ],
    ids=["name", "description", "schema", "timeout", "too many"],
)
async def test_an_announcement_out_of_bounds_is_refused(
    platform: RegistryPlatform, desk: OrderDesk, tools: Any, why: str
):
    await platform.registry()
    body = {"instance": "one", "started_at": "2026-01-01T00:00:00Z", "tools": tools}

    answer = await platform.client.request("tools.announce.default.orders", orjson.dumps(body), timeout=5)

    assert answer.headers is not None and answer.headers[h.ERROR] == "invalid_message"
    assert why in orjson.loads(answer.data)["detail"]
    assert await names(platform) == []


async def test_a_service_cannot_take_the_name_of_an_mcp_server(platform: RegistryPlatform, desk: OrderDesk):
    await platform.registry(server_allowed_hosts=["127.0.0.1:*"])
    saved = PutServer(tenant=TENANT, name="orders", config=ServerConfig(url="http://127.0.0.1:9/mcp"))
    await desk.announce()
    assert await names(platform) != []
    await platform.bus.ask(saved, ServerView)

    with pytest.raises(AssertionError, match="'orders' is the name of an MCP server"):
        await desk.announce()
    assert await names(platform) == []


async def test_wrong_arguments_never_reach_the_service(platform: RegistryPlatform, desk: OrderDesk):
    await platform.registry()
    await desk.serve(done)
    await desk.announce()

    reply = await platform.call(platform.ask("orders__refund", {"amount": "seven"}))

    assert (reply.error and reply.error.code, desk.calls) == ("invalid_arguments", [])


async def test_another_tenant_neither_sees_nor_calls_the_tools(platform: RegistryPlatform, desk: OrderDesk):
    await platform.registry()
    await desk.serve(done)
    await desk.announce()

    listed = await platform.bus.ask(ListTools(tenant="acme", patterns=("orders__*",)), ToolList)
    with pytest.raises(Refused, match="must begin with"):
        await platform.once(refund(platform, tenant="acme"))
    platform.tenant = "acme"
    reply = await platform.call(refund(platform))

    assert (listed.tools, reply.error and reply.error.code, desk.calls) == ((), "unknown_tool", [])


async def test_a_lost_booking_is_asked_about_before_it_is_made_again(
    platform: RegistryPlatform, desk: OrderDesk, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(bus_service, "SILENT_MAX_S", 0.2)
    await platform.registry()

    async def forget_the_answer(message: Msg, call: InvokeTool) -> None:
        if call.reconcile:
            await message.respond(orjson.dumps({"structured": {"found": True, "content": "booked"}}))

    await desk.serve(forget_the_answer)
    await desk.announce()

    reply = await platform.call(platform.ask("orders__book"))

    assert (reply.status, reply.content) == ("success", "booked")
    assert [call.reconcile for call in desk.calls] == [False, True]


@pytest.mark.parametrize("tool", cases(["look", "put", "book"]))
async def test_a_call_cut_near_its_deadline_is_repeated(
    platform: RegistryPlatform, desk: OrderDesk, monkeypatch: pytest.MonkeyPatch, tool: str
):
    monkeypatch.setattr(bus_service, "SILENT_MAX_S", 1.0)
    await platform.registry()

    async def silent_at_first(message: Msg, call: InvokeTool) -> None:
        if call.reconcile:
            await message.respond(orjson.dumps({"structured": {"found": False}}))
        elif call.call == "first" or (len(desk.calls) > 2 and call.deadline > datetime.now(UTC)):
            await done(message, call)

    await desk.serve(silent_at_first)
    await desk.announce()
    # The first call of a registry loads a library.
    await platform.call(platform.ask(f"orders__{tool}", call="first"))
    deadline = datetime.now(UTC) + timedelta(seconds=1)

    reply = await platform.call(platform.ask(f"orders__{tool}", deadline=deadline))

    assert (reply.status, reply.content, reply.error) == ("success", f"{tool} None", None)


async def test_both_replicas_know_what_was_announced(platform: RegistryPlatform, desk: OrderDesk):
    await platform.registry()
    await platform.registry()
    await desk.serve(done)
    await desk.announce()

    async def everywhere() -> bool:
        listed: list[list[str]] = [await names(platform) for _ in range(8)]
        return all(listed)

    await until(everywhere, why="whichever replica answers knows the tools")
    replies: list[ToolReply] = [await platform.call(refund(platform, call=str(call))) for call in range(8)]
    assert {reply.status for reply in replies} == {"success"}
    assert len(desk.calls) == 8
