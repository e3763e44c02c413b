"""A holder that stalls at the wrong moment, and a ledger whose answers get lost."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from mcp_types import CallToolResult, TextContent

from wayline.contracts.errors import Unavailable
from wayline.contracts.tools import CallTool, Effect, ToolDefinition, ToolReply
from wayline.telemetry import Telemetry
from wayline.testkit import until
from wayline.tool_registry.calls import effect_call
from wayline.tool_registry.calls.bound_tool import BoundTool
from wayline.tool_registry.calls.effect_call import EffectCall
from wayline.tool_registry.calls.ledger import Lease
from wayline.tool_registry.calls.ledger_table import PostgresLedger
from wayline.tool_registry.calls.tool_servers import ToolRequest
from wayline.tool_registry.definitions.tool_catalogue import Tool
from wayline.tool_registry.errors import AnswerLost, LedgerUnavailable

LEASE_S = 0.3


@dataclass
class Tills:
    """A server of one tool whose calls the test holds up."""

    inside: bool = False
    effects: int = 0
    go: asyncio.Event = field(default_factory=asyncio.Event)
    opening: asyncio.Event | None = None
    """Set once a session is open; None: there is none to open."""
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def call(self, request: ToolRequest) -> CallToolResult:
        self.asked.set()
        if self.opening is not None:
            await self.opening.wait()
        if (stop := await request.stopped()) is not None:
            raise stop
        self.effects += 1
        await self.go.wait()
        return CallToolResult(content=[TextContent(type="text", text=f"effect {self.effects}")])


@dataclass
class Holder:
    """One key's holder, which may stall between its row and what it begins with it."""

    platform: Any
    effect: Effect
    server: Tills
    stalls: bool = False
    lease_s: float = LEASE_S
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    stalled: asyncio.Event = field(default_factory=asyncio.Event)
    bound: int = 0

    def __post_init__(self) -> None:
        definition = ToolDefinition(name="till", effect=self.effect)
        self._bound = BoundTool(Tool(definition, "till", (), "till", False), self.server, Telemetry("test"), 1_000)
        self.ledger = PostgresLedger(self.platform.ledger, lease_s=self.lease_s)
        self.effect_call = EffectCall(self.platform.ask("till"), self._bind, self.ledger, attempts_max=3, join_s=0.2)

        begin = self.ledger.begin

        async def stalled_begin(ask: CallTool, *, effect: Effect, owner: str) -> Lease | None:
            lease = await begin(ask, effect=effect, owner=owner)
            if self.stalls:
                self.stalled.set()
                await self.woken.wait()
            return lease

        self.ledger.begin = stalled_begin  # type: ignore[method-assign]

    async def _bind(self) -> BoundTool:
        self.bound += 1
        return self._bound

    async def reply(self) -> ToolReply:
        return await self.effect_call.reply()


async def lease_ran_out(platform) -> None:
    sql = "SELECT count(*) FROM calls WHERE lease_until < clock_timestamp()"
    await until(lambda: platform.ledger.fetchval(platform.tenant, sql), why="the lease has run out")


@pytest.mark.parametrize("effect", [Effect.ONCE, Effect.IDEMPOTENT])
async def test_a_holder_asleep_past_its_lease_performs_no_effect(platform, effect):
    server = Tills()
    server.go.set()
    sleeper = Holder(platform, effect, server, stalls=True)
    sleeping = asyncio.create_task(sleeper.reply())
    await sleeper.stalled.wait()
    await lease_ran_out(platform)

    other = await Holder(platform, effect, server).reply()
    sleeper.woken.set()
    own = await sleeping

    assert server.effects == (0 if effect is Effect.ONCE else 1)
    assert other.status == ("unknown" if effect is Effect.ONCE else "success")
    assert own.status == other.status


async def test_a_first_attempt_looks_for_its_tool_once(platform):
    server = Tills()
    server.go.set()
    holder = Holder(platform, Effect.ONCE, server)

    assert (await holder.reply()).status == "success"

    assert holder.bound == 1


async def test_a_holder_that_waited_looks_for_its_tool_again(platform, monkeypatch):
    monkeypatch.setattr(effect_call, "FOUND_FRESH_S", 0.0)
    server = Tills()
    server.go.set()
    holder = Holder(platform, Effect.ONCE, server)

    assert (await holder.reply()).status == "success"

    assert holder.bound == 2


@pytest.mark.parametrize("effect", [Effect.ONCE, Effect.IDEMPOTENT])
async def test_a_request_is_not_sent_after_its_lease_ran_out(platform, effect):
    slow, fast = Tills(opening=asyncio.Event()), Tills()
    for server in (slow, fast):
        server.go.set()
    sleeper = Holder(platform, effect, slow, lease_s=600)
    sleeping = asyncio.create_task(sleeper.reply())
    await slow.asked.wait()
    await platform.ledger.execute(
        platform.tenant, "UPDATE calls SET lease_until = clock_timestamp() - interval '1 hour'"
    )
    other = await Holder(platform, effect, fast).reply()

    # As after a freeze: its lease is as old as it is by the ledger's clock.
    sleeper.ledger.lease_s = 0
    slow.opening.set()
    own = await sleeping

    assert slow.effects == 0
    assert fast.effects == (0 if effect is Effect.ONCE else 1)
    assert own.status == other.status == ("unknown" if effect is Effect.ONCE else "success")


async def test_an_overtaken_holder_stops_and_returns_the_others_result(platform):
    slow, fast = Tills(), Tills()
    fast.go.set()
    first = Holder(platform, Effect.IDEMPOTENT, slow)
    running = asyncio.create_task(first.reply())
    await until(lambda: slow.effects, why="the first holder has sent its request")
    expire = "UPDATE calls SET lease_until = clock_timestamp() - interval '1 hour'"
    await platform.ledger.execute(platform.tenant, expire)

    second = await Holder(platform, Effect.IDEMPOTENT, fast).reply()

    assert second.status == "success"
    assert await running == second.model_copy(update={"repeated": True})
    assert not slow.go.is_set()


async def test_an_overtaken_holders_result_does_not_overwrite_the_others(platform):
    slow, other = Tills(), Tills(effects=10)
    # So long a lease that the first holder does not notice by itself.
    first = asyncio.create_task(Holder(platform, Effect.IDEMPOTENT, slow, lease_s=600).reply())
    await until(lambda: slow.effects, why="the first holder has sent its request")
    await platform.ledger.execute(
        platform.tenant, "UPDATE calls SET lease_until = clock_timestamp() - interval '1 hour'"
    )
    second = asyncio.create_task(Holder(platform, Effect.IDEMPOTENT, other).reply())
    await until(lambda: other.effects == 11, why="the second holder has sent its request")

    slow.go.set()
    overtaken = await first
    other.go.set()

    assert overtaken.status == "in_progress"
    assert (await second).content == "effect 11"


async def test_an_unconfirmed_ledger_row_is_recognised_by_its_maker(platform, monkeypatch):
    server = Tills()
    server.go.set()
    holder = Holder(platform, Effect.ONCE, server)
    begin = holder.ledger.begin

    async def begin_and_lose_the_answer(*args: Any, **kwargs: Any) -> None:
        monkeypatch.setattr(holder.ledger, "begin", begin)
        await begin(*args, **kwargs)
        raise LedgerUnavailable(OSError("the answer was lost"))

    monkeypatch.setattr(holder.ledger, "begin", begin_and_lose_the_answer)

    assert (await holder.reply()).status == "success"
    assert server.effects == 1


async def test_an_outcome_is_held_until_the_ledger_takes_it(platform, monkeypatch):
    server = Tills()
    server.go.set()
    holder = Holder(platform, Effect.ONCE, server)
    finish, lost = holder.ledger.finish, []

    async def finish_the_third_time(*args: Any) -> bool:
        if len(lost) < 2:
            lost.append(args)
            raise LedgerUnavailable(OSError("it is away"))
        return await finish(*args)

    monkeypatch.setattr(holder.ledger, "finish", finish_the_third_time)

    assert (await holder.reply()).status == "success"
    assert server.effects == 1


async def test_an_absent_ledger_is_unavailable_and_nothing_is_executed(platform, monkeypatch):
    server = Tills()
    holder = Holder(platform, Effect.ONCE, server)

    async def away(*args: Any, **kwargs: Any) -> None:
        raise LedgerUnavailable(OSError("it is away"))

    monkeypatch.setattr(holder.ledger, "begin", away)
    monkeypatch.setattr(effect_call, "POSTGRES_WAIT_S", 0)

    with pytest.raises(Unavailable, match="the ledger"):
        await holder.reply()
    assert server.effects == 0


async def test_a_cut_call_is_repeated_only_after_its_lease(platform, monkeypatch):
    server = Tills()

    async def cut(*args: Any, **kwargs: Any) -> None:
        server.effects += 1
        raise AnswerLost("the connection broke")

    monkeypatch.setattr(server, "call", cut)
    before = await Holder(platform, Effect.IDEMPOTENT, server, lease_s=600).reply()
    effects_before = server.effects
    await platform.ledger.execute(
        platform.tenant, "UPDATE calls SET lease_until = clock_timestamp() - interval '1 hour'"
    )
    await Holder(platform, Effect.IDEMPOTENT, server, lease_s=600).reply()

    assert (before.status, effects_before, server.effects) == ("in_progress", 1, 2)
