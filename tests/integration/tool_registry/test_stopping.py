"""Calls that are cancelled, take too long, or are in the way of a shutdown."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from mcp.server import MCPServer

from wayline.contracts.errors import Retry
from wayline.testkit import until
from wayline.testkit.mcp_servers import serving
from wayline.testkit.plain_mcp import plain_program
from wayline.testkit.walks import cases
from wayline.tool_registry.calls.running_calls import RunningCalls

from .test_servers import program

WAITING = plain_program("""
DIRECTORY = Path(__file__).parent

class Waiting(MCPServer):
    def hear(self, asked):
        if asked["method"] == "tools/call":
            DIRECTORY.joinpath("begun").write_text(str(asked["id"]))
        elif asked["method"] == "notifications/cancelled":
            DIRECTORY.joinpath("cancelled").write_text(str(asked["params"]["requestId"]))
        else:
            super().hear(asked)

server = Waiting("waiting")

@server.tool()
def wait():
    pass

server.run()
""")


@pytest.mark.parametrize(
    ("tool", "status", "code"),
    cases(
        [
            ("pay_once", "unknown", None),
            ("put_idempotent", "failed", "cancelled"),
            ("look_read", "failed", "cancelled"),
        ]
    ),
)
async def test_a_cancel_stops_the_call_in_whichever_replica_runs_it(platform, tool, status, code):
    slow = await platform.server(delay_ms=30_000)
    registries = await asyncio.gather(platform.registry(slow.settings()), platform.registry(slow.settings()))
    ask = platform.ask(f"effects__{tool}")
    calling = asyncio.create_task(platform.call(ask))
    await until(lambda: any(ask.key in _requests(r) for r in registries), why="a replica sent the request")

    await platform.cancel(ask.key)
    reply = await calling

    assert (reply.status, reply.error.code if reply.error else None) == (status, code)
    assert slow.calls() == []


async def test_a_cancel_ends_the_tool_of_an_http_server(platform):
    begun, cancelled = asyncio.Event(), asyncio.Event()
    server = MCPServer("waiting")

    @server.tool()
    async def wait() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return ""

    async with serving(server) as url:
        await platform.registry({"name": "waiting", "url": url, "effects": {"wait": "read"}})

        await cancel_once(platform, begun.is_set)

        await until(cancelled.is_set, why="the server cancels its tool")


async def test_a_cancel_ends_the_tool_of_a_program(platform):
    await platform.registry(program(platform, "waiting", WAITING, effects={"wait": "read"}))
    begun, cancelled = (Path(platform.tmp_path, name) for name in ("begun", "cancelled"))

    await cancel_once(platform, begun.exists)

    await until(cancelled.exists, why="the server is told")
    assert cancelled.read_text() == begun.read_text()


async def cancel_once(platform, begun) -> None:
    """Cancel a call of a tool that never ends by itself, once the tool has begun."""
    ask = platform.ask("waiting__wait")
    calling = asyncio.create_task(platform.call(ask))
    await until(begun, why="the tool has begun")
    await platform.cancel(ask.key)
    reply = await calling
    assert reply.error is not None
    assert reply.error.code == "cancelled"


async def test_a_cancelled_call_stays_cancelled_when_repeated(platform):
    slow = await platform.server(delay_ms=30_000)
    registry = await platform.registry(slow.settings())
    ask = platform.ask("effects__put_idempotent")
    calling = asyncio.create_task(platform.call(ask))
    await until(lambda: ask.key in _requests(registry), why="the request is out")
    await platform.cancel(ask.key)
    await calling

    again = await platform.call(ask)

    assert again.error is not None
    assert (again.error.code, again.repeated) == ("cancelled", True)


async def test_another_tenants_cancel_is_not_heard(platform):
    slow = await platform.server(delay_ms=30_000)
    registry = await platform.registry(slow.settings())
    foreign, own = platform.ask("effects__put_idempotent"), platform.ask("effects__put_idempotent", job="j2")
    calling, other = (asyncio.create_task(platform.call(ask)) for ask in (foreign, own))
    await until(lambda: {foreign.key, own.key} <= set(_requests(registry)), why="both requests are out")

    tenant, platform.tenant = platform.tenant, "intruder"
    await platform.cancel(foreign.key)
    platform.tenant = tenant
    # Cancels are heard in their order: once the second has acted, the first was heard.
    await platform.cancel(own.key)

    assert (await other).error is not None
    assert not calling.done()
    assert foreign.key in _requests(registry)
    await platform.cancel(foreign.key)
    await calling


async def test_a_once_tool_that_times_out_is_unknown(platform):
    slow = await platform.server(delay_ms=30_000)
    await platform.registry(slow.settings(timeout_s=1), lease_s=600)
    ask = platform.ask("effects__pay_once")

    reply = await platform.call(ask)

    row = await platform.row(ask.key)
    assert reply.status == "unknown"
    assert row is not None
    assert row["state"] == "unknown"


async def test_an_unanswering_idempotent_tool_is_retried_then_unknown(platform):
    slow = await platform.server(delay_ms=30_000)
    await platform.registry(slow.settings(timeout_s=1), attempts_max=2)
    ask = platform.ask("effects__put_idempotent")

    reply = await platform.call(ask)

    assert (reply.status, reply.attempts) == ("unknown", 2)


async def test_a_slow_read_times_out_after_three_tries(platform):
    slow = await platform.server(delay_ms=30_000)
    registry = await platform.registry(slow.settings(timeout_s=1))

    reply = await platform.call(platform.ask("effects__look_read"))

    attempts = [s for s in registry.spans.get_finished_spans() if s.name == "tools/call look_read"]
    assert reply.error is not None
    assert (reply.error.code, reply.attempts, len(attempts)) == ("timeout", 3, 3)
    assert [span.attributes["wayline.attempt"] for span in attempts] == [1, 2, 3]


async def test_a_tools_own_waits_between_reads_win_over_the_services(platform):
    slow = await platform.server(delay_ms=30_000)
    server = slow.settings(timeout_s=1, tools={"look_read": {"retry_after_s": []}})
    await platform.registry(server)

    reply = await platform.call(platform.ask("effects__look_read"))

    assert reply.attempts == 1


async def test_a_long_read_is_in_progress_and_joined_when_repeated(platform):
    slow = await platform.server(delay_ms=4_000)
    await platform.registry(slow.settings(), answer_within_s=0.4)
    ask = platform.ask("effects__look_read")

    first = await platform.once(ask)
    reply = await platform.call(ask)

    assert (first.status, reply.status) == ("in_progress", "success")
    assert slow.count("look_read") == 1


async def test_a_read_that_ended_unawaited_is_not_run_again(platform):
    slow = await platform.server(delay_ms=4_000)
    await platform.registry(slow.settings(), answer_within_s=0.4)
    ask = platform.ask("effects__look_read")
    assert (await platform.once(ask)).status == "in_progress"
    await until(lambda: slow.count("look_read") == 1, why="the tool has answered")

    assert (await platform.call(ask)).status == "success"
    assert slow.count("look_read") == 1


async def test_an_answer_that_is_kept_for_its_caller_takes_no_slot(platform):
    slow = await platform.server(delay_ms=4_000)
    await platform.registry(slow.settings(), answer_within_s=0.4, calls_max=1)
    ask = platform.ask("effects__look_read")
    assert (await platform.once(ask)).status == "in_progress"
    await until(lambda: slow.count("look_read") == 1, why="the tool has answered")

    assert (await platform.call(platform.ask("get_current_time", job="j2"))).status == "success"


async def test_a_shutdown_lets_a_call_end_and_answers_it(platform):
    registry = await platform.registry()
    ask = platform.ask("effects__pay_once")
    asking = asyncio.create_task(platform.once(ask))
    await until(lambda: ask.key in _requests(registry), why="the request is out")

    await registry.stop(grace_s=5)

    row = await platform.row(ask.key)
    assert (await asking).status in {"success", "in_progress"}
    assert row is not None
    assert row["state"] == "finished"


async def test_a_shutdown_without_grace_leaves_a_once_call_unknown(platform):
    slow = await platform.server(delay_ms=30_000)
    registry = await platform.registry(slow.settings())
    ask = platform.ask("effects__pay_once")
    asking = asyncio.create_task(platform.once(ask, timeout_s=3))
    await until(lambda: ask.key in _requests(registry), why="the request is out")

    await registry.stop(grace_s=0)
    await asyncio.wait({asking})

    row = await platform.row(ask.key)
    assert row is not None
    assert row["state"] == "unknown"
    assert asking.exception() is None or isinstance(asking.exception(), Retry)


def _requests(registry) -> set[str]:
    """Return the keys whose request to a tool this registry has sent and not seen answered."""
    running = next(part for part in registry.service.parts if isinstance(part, RunningCalls))._running
    sent = {key: getattr(r.call, "_request", None) or getattr(r.call, "_task", None) for key, r in running.items()}
    return {key for key, task in sent.items() if task is not None and not task.done()}


async def test_a_cancel_that_is_read_before_its_call_stops_it(platform):
    await platform.registry()
    ask = platform.ask("effects__pay_once")

    await platform.cancel(ask.key)
    reply = await platform.call(ask)

    assert (reply.status, reply.error.code, reply.begun) == ("failed", "cancelled", False)
    assert platform.times_acted("pay_once") == 0
