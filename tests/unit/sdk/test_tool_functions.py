"""Functions that cannot be a tool are refused where they are offered, with what to do."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from wayline.sdk import Call, Tools


async def refund(number: str) -> str:
    """Pay an order back."""
    return number


async def stream(number: str) -> AsyncIterator[str]:
    yield number


def lines(number: str) -> Iterator[str]:
    yield number


async def talkative() -> None: ...


talkative.__doc__ = "x" * 9_000


def sync_outcome(call: Call) -> str | None: ...


@pytest.mark.parametrize(
    ("function", "options", "why"),
    [
        (stream, {}, "the tool stream: it must return its result once"),
        (lines, {}, "the tool lines: it must return its result once"),
        (functools.partial(refund, "A-1"), {}, "has no name: give the tool one with `name=`"),
        (refund, {"name": "pay back"}, "the tool pay back: name: "),
        (refund, {"timeout_s": 3_600}, "the tool refund: timeout_s: .* 600"),
        (talkative, {}, "the tool talkative: description: .* 8000"),
        (refund, {"effect": "reconcile", "outcome": sync_outcome}, "its `outcome` must be an async def"),
    ],
    ids=["async generator", "generator", "partial", "name", "timeout", "docstring", "outcome"],
)
def test_a_function_that_cannot_be_a_tool_is_named(function: Any, options: Any, why: str):
    with pytest.raises(TypeError, match=why):
        Tools("orders").tool(**options)(function)


def test_a_decorator_without_brackets_is_refused():
    with pytest.raises(TypeError, match=r"write @tools.tool\(\) with brackets"):
        Tools("orders").tool(refund)  # type: ignore[arg-type]


def test_a_service_with_more_tools_than_it_may_have_is_refused():
    tools = Tools("orders")
    for number in range(100):
        tools.tool(name=f"refund-{number}")(refund)

    with pytest.raises(TypeError, match="orders has 100 tools, the most of one service"):
        tools.tool()(refund)


async def test_a_service_without_tools_does_not_start():
    with pytest.raises(TypeError, match="orders has no tools"):
        await Tools("orders").start()


@pytest.mark.parametrize("options", [{"version": "1" * 65}, {"instructions": "x" * 4_001}], ids=["version", "words"])
def test_a_service_that_cannot_be_announced_is_refused(options: Any):
    with pytest.raises(ValueError, match="the service orders cannot be announced"):
        Tools("orders", **options)
