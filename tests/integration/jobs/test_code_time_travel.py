"""Forks and redrives inside a program: it runs again from its recorded results, and nothing recorded is repeated."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
import pytest_asyncio
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.tools import RUN_CODE
from wayline.executor.replay import replay
from wayline.journal import read_export
from wayline.simulator.chat_server import Say, Script
from wayline.testkit import Platform
from wayline.testkit.mcp_servers import serving

from .conftest import http_with_key, until_listed
from .stage import Stage, open_stage
from .test_approvals import waiting
from .test_code import KEYS

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
PAY_BETWEEN = """
first = await effects__look_read(query="first")
try:
    paid = await effects__pay_once(amount=5)
except RuntimeError as error:
    paid = f"not paid: {error}"
last = await effects__look_read(query=paid)
[first, paid, last]
"""
GATHERED = """
import asyncio
paid, looked = await asyncio.gather(effects__pay_once(amount=5), effects__look_read(query="beside"))
last = await effects__look_read(query=paid)
[paid, looked, last]
"""
PAY_THEN_SHIP = """
paid = await effects__pay_once(amount=5)
shipped = await desk__ship(number=1)
[paid, shipped]
"""


def writing(code: str):
    """Return a model that writes one program, then says what came of it: as JSON only where it was shipped."""

    def say(body: dict[str, Any]) -> Say:
        results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
        if not results:
            return Say(tools=((RUN_CODE, {"code": code}),))
        return Say(text='{"n": 1}' if '"shipped"' in results[-1] else f"came to {results[-1]}")

    return say


class Desk:
    """An MCP server whose one tool can be broken."""

    def __init__(self) -> None:
        self.broken = True
        self.shipped = 0

    def begin(self) -> None:
        """Be broken, and have shipped nothing."""
        self.broken, self.shipped = True, 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[dict[str, Any]]:
        mcp = MCPServer("desk")

        @mcp.tool()
        def ship(number: int) -> str:
            """Ship it."""
            if self.broken:
                raise ToolError(f"printer {number} is on fire")
            self.shipped += 1
            return "shipped"

        async with serving(mcp) as url:
            yield {"name": "desk", "url": url, "effects": {"ship": "once"}}


@dataclass
class CodeStage(Stage):
    """One stage for all tests, with a desk."""

    desk: Desk

    async def play(self, script: Script, **agent: Any) -> Platform:
        """Have the model follow a script for an agent that writes programs."""
        platform = await super().play(script)
        self.desk.begin()
        agent = {"code": True, "tools": ["effects__*", "desk__*"], "max_steps": 8, **agent}
        await platform.put_agent("coder", **agent)
        return platform


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(module_platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CodeStage]:
    directory, desk = tmp_path_factory.mktemp("effects"), Desk()
    async with desk.open() as server:
        async with open_stage(module_platform, directory, server, services=("gateway",), snapshot_keys=KEYS) as stage:
            await until_listed(module_platform, "desk__ship")
            yield CodeStage(stage.platform, stage.effects, stage.chat, desk)


def ended(events: list[e.Event], call: str) -> e.ToolCompleted:
    """Return the end of a call."""
    return next(event for event in events if isinstance(event, e.ToolCompleted) and event.call == call)


async def fork(platform: Platform, **body: Any) -> dict[str, Any]:
    """Fork the job `j1` as `f1` and return it once it has ended."""
    http = await http_with_key(platform)
    answer = await http.post("/v1/jobs/j1/fork", params={"wait": 30}, json={"job_id": "f1", **body})
    assert answer.status_code == 200, answer.text
    file = (await http.get("/v1/jobs/f1/export")).json()
    assert replay(read_export(file)).divergence is None
    return answer.json()


@pytest.mark.parametrize(
    ("result", "paid"),
    [
        ({"content": "paid by hand"}, "paid by hand"),
        ({"content": "no funds", "failed": True}, "not paid: no funds"),
    ],
)
async def test_a_fork_inside_a_program_goes_on_with_another_result(stage: CodeStage, result: dict[str, Any], paid: str):
    platform = await stage.play(writing(PAY_BETWEEN))
    await platform.submit("j1", agent="coder", model="chat/m")
    assert (await platform.wait_for("j1")).status == "completed"
    after = ended(await platform.events("j1"), "c2").seq

    job = await fork(platform, after=after, tool_result=result)

    assert job["answer"] == f'came to ["look_read done","{paid}","look_read done"]'
    assert [key for tool, key in stage.effects.calls() if tool == "pay_once"] == [f"{platform.tenant}/j1/1/c2"]
    assert stage.effects.calls()[3:] == [("look_read", f"{platform.tenant}/f1/1/c3")]
    assert [call[0] for call in stage.chat.calls[2:]] == [f"{platform.tenant}/f1/2/m1"]
    assert job["costs"]["tool"] == {}
    log = await platform.events("f1")
    [completed] = [event for event in log if isinstance(event, e.CodeCompleted)]
    assert [(call.call, call.arguments) for call in completed.calls] == [
        ("c1", {"query": "first"}),
        ("c2", {"amount": 5}),
        ("c3", {"query": paid}),
    ]
    assert {event.trace.trace_id for event in log} == {ids.trace_id(platform.tenant, "f1")}


async def test_a_fork_keeps_a_gathered_call_that_ended_later(stage: CodeStage):
    platform = await stage.play(writing(GATHERED))
    await platform.submit("j1", agent="coder", model="chat/m")
    assert (await platform.wait_for("j1")).status == "completed"
    events = await platform.events("j1")
    after = min(ended(events, call).seq for call in ("c1", "c2"))

    job = await fork(platform, after=after)

    assert job["answer"] == 'came to ["pay_once done","look_read done","look_read done"]'
    assert stage.effects.calls()[3:] == [("look_read", f"{platform.tenant}/f1/1/c3")]


@pytest.mark.parametrize("at", [e.ToolRequested, e.CodeCompleted])
async def test_a_fork_at_either_end_of_a_program_runs_it_again(stage: CodeStage, at: type[e.Event]):
    """Where no call of it is shared the program begins anew, under the fork's own keys."""
    platform = await stage.play(writing(PAY_BETWEEN))
    await platform.submit("j1", agent="coder", model="chat/m")
    assert (await platform.wait_for("j1")).status == "completed"
    after = next(event for event in await platform.events("j1") if isinstance(event, at)).seq

    job = await fork(platform, after=after)

    assert job["answer"] == 'came to ["look_read done","pay_once done","look_read done"]'
    anew = [f"{platform.tenant}/f1/1/c{n}" for n in (1, 2, 3)] if at is e.ToolRequested else []
    assert [key for _, key in stage.effects.calls()[3:]] == anew
    assert len(stage.chat.calls) == 3


async def test_a_redrive_goes_on_at_the_failed_call_of_a_program(stage: CodeStage):
    platform = await stage.play(writing(PAY_THEN_SHIP), output_schema=SCHEMA)
    await platform.submit("j1", agent="coder", model="chat/m")
    failed = await platform.wait_for("j1")
    assert (failed.status, failed.costs and failed.costs.tool) == ("failed", {"effects__pay_once": Decimal("0.01")})
    stage.desk.broken = False
    asked = len(stage.chat.calls)

    job = await fork(platform)

    assert (job["status"], job["answer"]) == ("completed", '{"n": 1}')
    assert stage.effects.calls() == [("pay_once", f"{platform.tenant}/j1/1/c1")]
    assert stage.desk.shipped == 1
    assert job["costs"]["tool"] == {}
    assert [call[0] for call in stage.chat.calls[asked:]] == [f"{platform.tenant}/f1/2/m1"]


async def test_a_redrive_keeps_a_programs_call_with_edited_arguments(stage: CodeStage):
    platform = await stage.play(writing(PAY_THEN_SHIP), output_schema=SCHEMA, ask_tools={"effects__pay_once": "always"})
    await platform.submit("j1", agent="coder", model="chat/m")
    [asked] = await waiting(platform)
    await platform.decide("j1", asked.approval_id, arguments={"amount": 3})
    assert (await platform.wait_for("j1")).status == "failed"
    stage.desk.broken = False

    job = await fork(platform)

    assert (job["status"], job["answer"]) == ("completed", '{"n": 1}')
    assert stage.effects.amounts() == [3]
