"""No key is answered when it was used for something else: the table of docs/keys.md, door by door."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, MCPError

from wayline.contracts import ids
from wayline.contracts.errors import Reject
from wayline.contracts.jobs import SubmitJob
from wayline.contracts.tools import CallTool, ToolReply
from wayline.testkit import Platform, until
from wayline.testkit.effects_server import EffectsServer

from .conftest import Door, with_effects
from .test_tools import PAY

PAGE = Path(__file__).parents[3] / "docs/keys.md"
JOB: dict[str, Any] = {"agent": "assistant", "input": "one"}
OTHER: dict[str, Any] = {"agent": "assistant", "input": "two"}


@dataclass
class Doors:
    """All that takes keys."""

    door: Door
    http: httpx2.AsyncClient
    effects: EffectsServer

    @property
    def platform(self) -> Platform:
        return self.door.platform


Answers = tuple[object, object, object]
"""What a key is answered for the first time, for the same again, and for something else."""


async def posted(doors: Doors, address: str, *bodies: Any, headers: dict[str, str] | None = None) -> Answers:
    answers = [await doors.http.post(address, json=body, headers=headers) for body in bodies]
    first, again, other = [
        answer.json()["code"] if answer.is_error else answer.json().get("job_id") for answer in answers
    ]
    return first, again, other


async def idempotency_key(doors: Doors) -> Answers:
    return await posted(doors, "/v1/jobs", JOB, JOB, OTHER, headers={"Idempotency-Key": "k1"})


async def idempotency_key_of_a_fork(doors: Doors) -> Answers:
    job_id = (await doors.http.post("/v1/jobs", json=JOB)).json()["job_id"]
    await doors.platform.wait_for(job_id)
    told = ({"after": 2, "max_steps": 3}, {"after": 2, "max_steps": 3}, {"after": 2, "max_steps": 4})
    return await posted(doors, f"/v1/jobs/{job_id}/fork", *told, headers={"Idempotency-Key": "k2"})


async def job_id(doors: Doors) -> Answers:
    jobs = ({**JOB, "job_id": "own"}, {**JOB, "job_id": "own"}, {**OTHER, "job_id": "own"})
    return await posted(doors, "/v1/jobs", *jobs)


async def job_id_on_the_bus(doors: Doors) -> Answers:
    platform = doors.platform
    for body in (JOB, JOB, OTHER):
        job = SubmitJob(tenant="default", job_id="told", **body)
        # Without an id of the message: the stream itself would take the second one for a repeat.
        await platform.bus.store(job.subject, job.to_wire(), {})
    await platform.wait_for("told")
    await until(lambda: _refused(platform), why="the other job is put aside")
    [letter] = await platform.dead_letters()
    return "told", "told", letter["Wayline-Dead-Code"]


async def _refused(platform: Platform) -> bool:
    return len(await platform.dead_letters()) == 1


async def tool_key(doors: Doors) -> Answers:
    answers: list[object] = []
    for amount in (1, 1, 2):
        ask = CallTool(
            tenant="default",
            key=ids.tool_key("default", "j1", 1, "1"),
            job_id="j1",
            step=1,
            call="1",
            tool=PAY,
            arguments={"amount": amount},
            deadline=datetime.now(UTC) + timedelta(seconds=30),
        )
        try:
            answers.append((await doors.platform.bus.ask(ask, ToolReply)).content)
        except Reject as error:
            answers.append(error.code)
    return answers[0], answers[1], answers[2]


async def called(client: Client, tool: str, calls: tuple[dict[str, Any], ...], key: str) -> Answers:
    answers: list[object] = []
    meta: Any = {"wayline/key": key}
    for arguments in calls:
        try:
            result = await client.call_tool(tool, arguments, meta=meta)
            answers.append((result.structured_content or {}).get("job_id") or repr(result.content))
        except MCPError as error:
            answers.append((error.error.data or {}).get("code"))
    return answers[0], answers[1], answers[2]


async def idempotency_key_of_a_tool_call(doors: Doors) -> Answers:
    answers = [
        await doors.http.post(
            f"/v1/tools/{PAY}/call", json={"arguments": {"amount": amount}}, headers={"Idempotency-Key": "order 3"}
        )
        for amount in (1, 1, 2)
    ]
    first, again, other = [answer.json()["code" if answer.is_error else "text"] for answer in answers]
    return first, again, other


async def mcp_key(doors: Doors) -> Answers:
    async with doors.door.client() as client:
        return await called(client, PAY, ({"amount": 1}, {"amount": 1}, {"amount": 2}), key="order 1")


async def mcp_key_of_an_agents_run(doors: Doors) -> Answers:
    async with doors.door.client() as client:
        return await called(client, "run_agent", (JOB, JOB, OTHER), key="order 2")


async def mcp_request_id(doors: Doors) -> Answers:
    shake = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    accepts = {"Accept": "application/json, text/event-stream"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": shake}
    session = (await doors.http.post("/mcp", json=body, headers=accepts)).headers["mcp-session-id"]
    answers: list[str] = []
    for amount in (1, 1, 2):
        called = {"name": PAY, "arguments": {"amount": amount}}
        body = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": called}
        answer = await doors.http.post("/mcp", json=body, headers={**accepts, "mcp-session-id": session})
        [found] = re.findall(r"pay_once done|key_reused", answer.text)[:1]
        answers.append(found)
    return answers[0], answers[1], answers[2]


KEYS: dict[Callable[[Doors], Awaitable[Answers]], str] = {
    idempotency_key: "idempotency_key_reused",
    idempotency_key_of_a_fork: "idempotency_key_reused",
    job_id: "job_id_conflict",
    job_id_on_the_bus: "job_id_conflict",
    tool_key: "tool_key_conflict",
    idempotency_key_of_a_tool_call: "key_reused",
    mcp_key: "key_reused",
    mcp_key_of_an_agents_run: "key_reused",
    mcp_request_id: "key_reused",
}
"""What takes a key, and the code of its answer where the key was used for something else."""


async def test_the_same_key_with_other_content_is_a_conflict(platform: Platform, effects: EffectsServer):
    door = await with_effects(platform, effects, "executor")
    seen: dict[str, Answers] = {}
    http = await platform.http()
    for ask in KEYS:
        seen[ask.__name__] = await ask(Doors(door, http, effects))

    assert {name: (first == again, other) for name, (first, again, other) in seen.items()} == {
        ask.__name__: (True, code) for ask, code in KEYS.items()
    }
    # Of the ledger's key, of those that clients gave over HTTP and `/mcp`, and of a session's request: once each.
    assert effects.amounts() == [1, 1, 1, 1]


def test_every_key_of_the_page_is_tried():
    tried = set(re.findall(r"`KEYS: (\w+)`", PAGE.read_text()))

    assert tried == {ask.__name__ for ask in KEYS}
