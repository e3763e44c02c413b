"""The examples of the pages about tools, programs and services of one's own do what the pages say of them."""

from __future__ import annotations

import ast
import asyncio
import re
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from mcp.server import MCPServer

from wayline.contracts import events as e
from wayline.contracts.tools import RUN_CODE
from wayline.contracts.working_context import Entity
from wayline.journal import record_read
from wayline.simulator.chat_server import ChatServer, Say, turns
from wayline.testkit import Platform
from wayline.testkit.mcp_servers import serving

from .conftest import chatting, until_listed, with_tools

DOCS = Path(__file__).parents[3] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
MODEL = "chat/gemini-3.5-flash-lite"
RUNS = re.compile(r"^\w+\.run\(\)\n", re.MULTILINE)
"""The last line of a program that serves until it is told to stop."""


def examples(page: str) -> list[str]:
    """Return the programs of a page, in order, without the line that serves for ever."""
    return [RUNS.sub("", block) for block in BLOCK.findall((DOCS / page).read_text())]


def shop() -> MCPServer:
    """A server as docs/tools.md teaches to write one, with the tools that the program of docs/code.md calls."""
    server = MCPServer("shop")

    @server.tool()
    def orders() -> list[dict]:  # pyright: ignore[reportMissingTypeArgument]
        """List the orders."""
        return [
            {"order": "A-1", "due": "2026-10-01", "amount": 5, "customer": "c1"},
            {"order": "A-2", "due": "2026-10-02", "amount": 9, "customer": "c2"},
            {"order": "A-3", "due": "2026-12-01", "amount": 7, "customer": "c1"},
        ]

    @server.tool()
    def customer(customer: str) -> dict:  # pyright: ignore[reportMissingTypeArgument]
        """Find a customer."""
        return {"name": f"Ms. {customer}"}

    return server


async def test_documented_examples_do_what_their_pages_say(
    platform: Platform, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("WAYLINE_NATS_URL", platform.nats.url)
    bank, till = dict[str, Any](), dict[str, Any]()
    for block in examples("tools.md"):
        exec(block, bank)
    refund, harness, jobs, *_ = examples("sdk.md")
    exec(refund + harness, till)
    await till["test_a_refund_says_what_was_paid_back"]()
    calls = Say(
        tools=(
            ("bank__rate", {"currency": "CHF"}),
            ("bank__find_order", {"number": "A-17"}),
            ("till__refund", {"number": "A-1001"}),
        )
    )
    plan = turns(calls, Say(tools=((RUN_CODE, {"code": examples("code.md")[0]}),)), Say(text="all done"))
    async with AsyncExitStack() as stack:
        chat = await stack.enter_async_context(ChatServer(plan))
        servers = [
            {"name": name, "url": await stack.enter_async_context(serving(server)), "effects": effects}
            for name, server, effects in (
                ("bank", bank["server"], {"rate": "read", "find_order": "read"}),
                ("shop", shop(), {"orders": "read", "customer": "read"}),
            )
        ]
        await platform.start(
            "router", "executor", "tool_registry", executor=chatting(chat), tool_registry=with_tools(*servers)
        )
        service = till["tools"].application()
        await service.start()
        stack.push_async_callback(service.stop)
        for tool in ("bank__rate", "shop__orders", "till__refund"):
            await until_listed(platform, tool)
        await platform.put_agent("assistant", model=MODEL, code=True, tools=["bank__*", "shop__*", "till__*"])

        await asyncio.to_thread(exec, jobs, {})

    assert "all done" in capsys.readouterr().out.splitlines()
    subjects = {(one.headers or {})["Nats-Subject"] async for one in record_read(platform.bus, "events.>")}
    [job_id] = {subject.rpartition(".")[2] for subject in subjects}
    ends = [end for end in await platform.events_of(job_id, e.ToolCompleted) if end.status == "success"]
    said = {end.tool: end.content for end in ends}
    assert said["bank__rate"] == "1 CHF is 1.10 USD"
    assert said["till__refund"].startswith("4200 cents paid back, under default/")
    order = Entity(type="order", id="A-17", name="Two pairs of shoes")
    assert {end.tool: end.entities for end in ends}["bank__find_order"] == (order,)
    assert said[RUN_CODE] == '[{"order":"A-2","customer":"Ms. c2"},{"order":"A-1","customer":"Ms. c1"}]'


async def test_the_documented_ranking_puts_the_best_passage_first():
    passages = {"tides": "High tide is at noon.", "cats": "A cat sleeps.", "sea": "The sea is high today."}

    async def ask(question: str) -> str:
        return "[2]"

    names: dict[str, Any] = {"query": "high tide", "passages": passages, "by_vector": ["sea", "tides"], "ask": ask}
    await eval(compile(examples("sdk.md")[-1], "sdk.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)

    assert names["by_words"] == ["tides", "sea"]
    assert names["best"].reranked and names["best"].order[0] == 1
