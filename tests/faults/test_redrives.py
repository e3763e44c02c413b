"""A gateway killed while failed jobs go on, or a job is forked: the same request again leaves one fork of each."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from wayline.chassis import Failpoint
from wayline.contracts.agents import Agent, AgentConfig, PutAgent
from wayline.contracts.errors import Retry
from wayline.contracts.tools import ListTools, ToolList
from wayline.embedded.ports import free_port
from wayline.gateway.handlers.recovery.perform_actions import fork_id
from wayline.journal import failure_fingerprint
from wayline.simulator.chat_server import Say
from wayline.testkit import until
from wayline.testkit.mcp_servers import serving

from .conftest import MakePlatform
from .kill_points import kill_points
from .platform import TENANT, FaultPlatform

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

JOBS = 3
BROKEN_AT = 3
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
PASSAGES = [
    (Failpoint.GATEWAY_REDRIVE_BEFORE, 1),
    (Failpoint.GATEWAY_REDRIVE_BEFORE, 2),
    (Failpoint.GATEWAY_SUBMIT_BEFORE, 2),
    (Failpoint.GATEWAY_SUBMIT_AFTER, 2),
    (Failpoint.GATEWAY_REDRIVE_AFTER, 2),
    (Failpoint.GATEWAY_REDRIVE_AFTER, JOBS),
    (Failpoint.GATEWAY_REDRIVEN_BEFORE, 1),
    (Failpoint.GATEWAY_REDRIVEN_AFTER, 1),
]
"""Each with how often it is reached: the first and a later job of a redrive."""
QUICK = {Failpoint.GATEWAY_REDRIVE_AFTER}
"""What `make test` runs of them."""
FORKED = {Failpoint.GATEWAY_SUBMIT_BEFORE, Failpoint.GATEWAY_SUBMIT_AFTER}


class BreakableServer:
    """An MCP server with a tool that works, and one that fails while it is broken, of the cause that it is told."""

    def __init__(self) -> None:
        self.broken = True
        self.shipped: list[str] = []
        self.mcp = MCPServer("desk")
        self.mcp.tool()(self.look)
        self.mcp.tool()(self.ship)

    def look(self, number: int) -> str:
        """Look something up."""
        return f"row {number}"

    def ship(self, order: str, cause: str) -> str:
        """Ship it."""
        if self.broken:
            raise ToolError(f"the {cause} printer is on fire")
        self.shipped.append(order)
        return "shipped"


def clerk(body: dict[str, Any]) -> Say:
    """Look twice, ship at the third step, then answer: in words where that failed, which is no answer."""
    order, cause = next(message["content"] for message in body["messages"] if message["role"] == "user").split()[:2]
    results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    if len(results) < BROKEN_AT - 1:
        return Say(tools=(("desk__look", {"number": len(results) + 1}),))
    if len(results) == BROKEN_AT - 1:
        return Say(tools=(("desk__ship", {"order": order, "cause": cause}),))
    return Say(text='{"n": 1}' if "shipped" in results[-1] else "it cannot be shipped")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def mcp_server() -> AsyncIterator[tuple[BreakableServer, str]]:
    mcp_server = BreakableServer()
    async with serving(mcp_server.mcp) as url:
        yield mcp_server, url


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform, mcp_server: tuple[BreakableServer, str]) -> FaultPlatform:
    platform = await make_platform("gateway", "tracing")
    platform.chat.script = clerk
    platform.port = free_port()
    server = {"name": "desk", "url": mcp_server[1], "effects": {"look": "read", "ship": "once"}}
    platform.fleet.set("tool_registry", WAYLINE_TOOL_REGISTRY_SERVERS=[server])
    platform.fleet.set("gateway", WAYLINE_HTTP_PORT=str(platform.port))
    await platform.fleet.ensure("router", "executor", "tool_registry", "tracing", "gateway")

    async def listed() -> bool:
        try:
            found = await platform.bus.ask(ListTools(tenant=TENANT), ToolList)
        except Retry:
            return False
        return "desk__ship" in {tool.name for tool in found.tools}

    await until(listed, within=60, why="the desk is connected")
    config = AgentConfig(tools=("desk__*",), output_schema=SCHEMA, max_steps=20)
    await platform.bus.ask(PutAgent(tenant=TENANT, name="clerk", config=config), Agent)
    return platform


async def failed_jobs(
    platform: FaultPlatform, mcp_server: BreakableServer, name: str, jobs: int
) -> tuple[list[str], str]:
    """Let jobs fail of one cause when they ship, then mend it; return their ids and their fingerprint."""
    mcp_server.broken = True
    failed = [f"{name}-{number}" for number in range(jobs)]
    for job_id in failed:
        body = {"agent": "clerk", "input": f"{job_id} {name}", "job_id": job_id, "options": {"model": "chat/x"}}
        await platform.publish(body)
    await platform.until_ended(*failed)
    [fingerprint] = {failure_fingerprint(await platform.job(job_id)) for job_id in failed}

    async def listed() -> bool:
        rows = await platform.sql("SELECT job_id FROM tracing.jobs WHERE fingerprint = $1", fingerprint)
        return len(rows) == jobs

    await until(listed, why="tracing lists the failed jobs")
    mcp_server.broken = False
    return failed, str(fingerprint)


async def post(platform: FaultPlatform, path: str, body: dict[str, Any]) -> httpx2.Response:
    async with httpx2.AsyncClient(timeout=60) as client:
        return await client.post(f"http://127.0.0.1:{platform.port}{path}", json=body)


async def check_forks(
    platform: FaultPlatform, mcp_server: BreakableServer, failed: list[str], forks: list[str], asked: int
) -> None:
    """Check that each failed job went on once, with no model call of the steps before."""
    await platform.until_ended(*forks)
    await platform.until_quiet()
    await platform.check(*failed, *forks)
    assert [(await platform.job(fork)).life.status for fork in forks] == ["completed"] * len(failed)
    # The one call of each fork: after the tool worked.
    assert sorted(call[0] for call in platform.chat.calls[asked:]) == sorted(
        f"{TENANT}/{fork}/{BROKEN_AT + 1}/m1" for fork in forks
    )
    assert sorted(order for order in mcp_server.shipped if order in failed) == sorted(failed)
    assert await platform.dead_letters() == []


@pytest.mark.parametrize(("point", "nth"), kill_points(PASSAGES, QUICK))
async def test_a_gateway_killed_there_and_asked_again_redrives_each_once(
    platform: FaultPlatform, mcp_server: tuple[BreakableServer, str], point: Failpoint, nth: int
):
    # In letters: numbers make no other cause.
    name = f"{point}-{'abc'[nth - 1]}".replace(".", "-")
    failed, fingerprint = await failed_jobs(platform, mcp_server[0], name, JOBS)
    asked, body = len(platform.chat.calls), {"fingerprint": fingerprint}
    await platform.fleet.stop("gateway")
    doomed = await platform.fleet.start("gateway", point, nth=nth)

    with pytest.raises(httpx2.TransportError):
        await post(platform, "/v1/dead-letters/redrive", body)
    await platform.until_dead(doomed)
    await platform.fleet.start("gateway")
    redriven = (await post(platform, "/v1/dead-letters/redrive", body)).json()
    assert sorted(one["job_id"] for one in redriven["jobs"]) == failed
    assert {one["outcome"] for one in redriven["jobs"]} <= {"forked", "already"}
    assert redriven["more"] is False

    forks = [one["fork_id"] for one in redriven["jobs"]]
    assert len(set(forks)) == JOBS
    await check_forks(platform, mcp_server[0], failed, forks, asked)
    rows = await platform.sql(
        "SELECT jobs, forked + already AS told FROM gateway.redrives WHERE fingerprint = $1 ORDER BY begun_at",
        fingerprint,
    )
    cut = None if point is not Failpoint.GATEWAY_REDRIVEN_AFTER else JOBS
    assert [tuple(row) for row in rows] == [(JOBS, cut), (JOBS, JOBS)]


@pytest.mark.parametrize("point", kill_points(((point,) for point in sorted(FORKED)), {Failpoint.GATEWAY_SUBMIT_AFTER}))
async def test_a_gateway_killed_there_and_asked_again_forks_once(
    platform: FaultPlatform, mcp_server: tuple[BreakableServer, str], point: Failpoint
):
    name = f"fork-{point}".replace(".", "-")
    failed, _ = await failed_jobs(platform, mcp_server[0], name, 1)
    asked, body = len(platform.chat.calls), {"job_id": f"{name}-again"}
    await platform.fleet.stop("gateway")
    doomed = await platform.fleet.start("gateway", point)

    with pytest.raises(httpx2.TransportError):
        await post(platform, f"/v1/jobs/{failed[0]}/fork", body)
    await platform.until_dead(doomed)
    await platform.fleet.start("gateway")
    answers = [await post(platform, f"/v1/jobs/{failed[0]}/fork", body) for _ in range(2)]

    assert {one.json()["job_id"] for one in answers} == {body["job_id"]}
    await check_forks(platform, mcp_server[0], failed, [body["job_id"]], asked)


ACTED = [
    (Failpoint.GATEWAY_SUBMIT_BEFORE, 2),
    (Failpoint.GATEWAY_SUBMIT_AFTER, 2),
    (Failpoint.GATEWAY_ACTION_BEFORE, 1),
]


@pytest.mark.parametrize(("point", "nth"), kill_points(ACTED, {Failpoint.GATEWAY_SUBMIT_AFTER}))
async def test_an_action_goes_on_after_a_kill_and_forks_each_once(
    platform: FaultPlatform, mcp_server: tuple[BreakableServer, str], point: Failpoint, nth: int
):
    name = f"act-{point}".replace(".", "-")
    failed, _ = await failed_jobs(platform, mcp_server[0], name, JOBS)
    asked = len(platform.chat.calls)
    await platform.fleet.stop("gateway")
    doomed = await platform.fleet.start("gateway", point, nth=nth)

    with suppress(httpx2.TransportError):
        await post(platform, "/v1/jobs/actions", {"action": "fork", "job_ids": failed})
    await platform.until_dead(doomed)
    # Another gateway takes it a minute later.
    await platform.sql("UPDATE gateway.job_actions SET free_at = now()")
    await platform.fleet.start("gateway")

    async def done() -> bool:
        rows = await platform.sql(
            "SELECT counts FROM gateway.job_actions WHERE state = 'done' AND asked::text LIKE $1", f"%{name}%"
        )
        return [json.loads(row["counts"]) for row in rows] == [{"done": JOBS}]

    await until(done, why="the action is done to every job")
    rows = await platform.sql("SELECT action_id FROM gateway.job_actions WHERE asked::text LIKE $1", f"%{name}%")
    forks = [fork_id(TENANT, rows[0]["action_id"], job_id) for job_id in failed]
    await check_forks(platform, mcp_server[0], failed, forks, asked)
