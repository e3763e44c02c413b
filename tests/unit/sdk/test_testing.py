"""A service's author tests its tools without a bus, as the bus would call them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from faststream import Context, Depends
from faststream.nats.annotations import NatsMessage
from pydantic import BaseModel
from typing_extensions import TypedDict

from wayline.sdk import Call, Result, ToolFailed, Tools, TryLater, Unavailable
from wayline.sdk.testing import OutcomeUnknown, Progress, ToolBench


class Paid(BaseModel):
    cents: int


class Seat(TypedDict):
    row: int


@dataclass
class Point:
    x: float


@pytest.fixture
def tools() -> Tools:
    return Tools("till")


async def test_a_tool_is_called_as_its_service_would_be(tools: Tools):
    @tools.tool(effect="once")
    async def refund(number: str, call: Call) -> Paid:
        """Pay back."""
        call.progress(1, 2, "half")
        if number == "?":
            raise ToolFailed("no such order")
        return Paid(cents=len(call.key))

    bench = ToolBench(tools)

    assert await bench.call("refund", {"number": "A-1"}, key="k/1") == Result(structured={"cents": 3})
    assert (await bench.call("refund", {"number": "?"})).error == "no such order"
    assert "number" in ((await bench.call("refund", {"numbr": "A-1"})).error or "")
    assert bench.progress == [Progress(1, 2, "half")] * 2
    with pytest.raises(KeyError, match="no tool 'pay'"):
        await bench.call("pay")


async def test_what_a_tool_raises_is_told_by_its_effect(tools: Tools):
    @tools.tool(effect="once")
    async def pay() -> str:
        """Pay."""
        raise OSError("cut")

    @tools.tool(effect="read")
    async def look() -> str:
        """Look."""
        raise OSError("cut")

    @tools.tool()
    async def later() -> str:
        """Do it later."""
        raise TryLater("busy")

    bench = ToolBench(tools)

    with pytest.raises(OutcomeUnknown):
        await bench.call("pay")
    assert (await bench.call("look")).error == "the tool failed (OSError)"
    with pytest.raises(Unavailable):
        await bench.call("later")


async def test_a_reconcile_tool_is_asked_for_its_outcome(tools: Tools):
    async def done(call: Call) -> str | None:
        return "booked" if call.key == "k/1" else None

    @tools.tool(effect="reconcile", outcome=done)
    async def book() -> str:
        """Book."""
        return "booked"

    bench = ToolBench(tools)

    assert (await bench.outcome("book", key="k/1"), await bench.outcome("book", key="k/2")) == ("booked", None)


async def test_a_cancelled_call_can_end_early_and_its_result_counts(tools: Tools):
    begun = asyncio.Event()

    @tools.tool(effect="once")
    async def watch(call: Call) -> str:
        """Watch until it is cancelled."""
        assert not call.cancelled
        begun.set()
        await call.until_cancelled()
        return f"ended early: {call.cancelled}"

    bench = ToolBench(tools)
    watching = asyncio.create_task(bench.call("watch", key="k/1"))
    await begun.wait()
    bench.cancel("k/2")
    bench.cancel("k/1")

    assert (await watching).text == "ended early: True"


async def test_each_of_two_calls_with_one_key_hears_its_cancel(tools: Tools):
    begun = asyncio.Semaphore(0)

    @tools.tool(effect="read")
    async def watch(call: Call) -> str:
        """Watch until it is cancelled."""
        begun.release()
        await call.until_cancelled()
        return "ended"

    bench = ToolBench(tools)
    watching = [asyncio.create_task(bench.call("watch", key="k/1")) for _ in range(2)]
    await begun.acquire()
    await begun.acquire()
    bench.cancel("k/1")

    async with asyncio.timeout(10):
        assert [(await one).text for one in watching] == ["ended", "ended"]


async def test_a_thread_is_told_that_its_time_is_over(tools: Tools):
    given: list[Call] = []

    @tools.tool(effect="once", timeout_s=0.05)
    async def slow(call: Call) -> str:
        """Take too long."""
        given.append(call)
        await asyncio.Event().wait()
        return "never"

    with pytest.raises(TimeoutError):
        await ToolBench(tools).call("slow")

    assert given[0].cancelled


@pytest.mark.parametrize(
    ("returns", "properties"),
    [(Paid, {"cents"}), (Seat, {"row"}), (Point, {"x"}), (str, None), (list[Paid], None), (Result, None), (Any, None)],
    ids=["model", "typed dict", "dataclass", "text", "list", "result", "any"],
)
def test_a_type_that_is_an_object_is_the_output_schema(tools: Tools, returns: Any, properties: set[str] | None):
    async def find() -> Any:
        """Find."""

    find.__annotations__["return"] = returns
    tools.tool()(find)

    offered = tools.offered("find")
    schema = None if offered is None else offered.output_schema
    assert (schema and set(schema["properties"])) == properties


def clerk() -> str:
    return "ann"


async def by_default(who: str = Depends(clerk)) -> str:
    return who


async def annotated(who: Annotated[str, Depends(clerk)]) -> str:
    return who


async def from_context(who: str = Context("who")) -> str:
    return who


async def message(raw: NatsMessage) -> str:
    return str(raw)


@pytest.mark.parametrize("function", [by_default, annotated, from_context, message])
def test_what_faststream_fills_is_refused_with_what_to_do(tools: Tools, function: Any):
    with pytest.raises(TypeError, match="which FastStream fills for subscribers and not for tools: call the function"):
        tools.tool()(function)
