"""A redrive: every job that failed of one cause goes on from its failed step, once, and nothing before is repeated."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from wayline.chassis import Delivery
from wayline.contracts import events as e
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import Platform, until
from wayline.testkit.mcp_servers import serving
from wayline.tracing.settings import Settings as TracingSettings

from .conftest import chatting, with_tools

JOBS = 20
BROKEN_AT = 3
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class BreakableServer:
    """An MCP server with one tool that works and one that can be broken."""

    def __init__(self) -> None:
        self.broken = True
        self.looked = 0
        self.shipped = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        mcp = MCPServer("desk")

        @mcp.tool()
        def look(number: int) -> str:
            """Look something up."""
            self.looked += 1
            return f"row {number}"

        @mcp.tool()
        def ship(number: int) -> str:
            """Ship it."""
            if self.broken:
                raise ToolError(f"printer {number} is on fire")
            self.shipped += 1
            return "shipped"

        async with serving(mcp) as url:
            yield url


def clerk(body) -> Say:
    """Look twice, ship at the third step, then answer: in words where that failed, which is no answer."""
    results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    if len(results) < BROKEN_AT - 1:
        return Say(tools=(("desk__look", {"number": len(results) + 1}),))
    if len(results) == BROKEN_AT - 1:
        return Say(tools=(("desk__ship", {"number": 1}),))
    return Say(text='{"n": 1}' if "shipped" in results[-1] else "it cannot be shipped")


async def test_twenty_jobs_of_one_broken_tool_finish_after_one_redrive(platform: Platform):
    mcp_server = BreakableServer()
    async with mcp_server.open() as url, ChatServer(clerk) as chat:
        server = {"name": "desk", "url": url, "effects": {"look": "read", "ship": "once"}}
        await platform.start(
            "router",
            "executor",
            "tool_registry",
            "tracing",
            "gateway",
            executor=chatting(chat),
            tool_registry=with_tools(server),
            tracing=TracingSettings(),
        )
        await platform.put_agent("clerk", tools=("desk__*",), output_schema=SCHEMA, max_steps=20)
        for number in range(JOBS):
            await platform.submit(f"j{number}", f"order {number}", agent="clerk", model="chat/m")
        ended = [await platform.wait_for(f"j{number}", within=110) for number in range(JOBS)]
        assert {(job.status, job.error and job.error.code) for job in ended} == {("failed", "invalid_output")}
        [fingerprint] = {job.fingerprint for job in ended}
        http = await platform.http()

        async def grouped() -> bool:
            groups = (await http.get("/v1/dead-letters/groups")).json()["groups"]
            return [(one["fingerprint"], one["jobs"]) for one in groups] == [(fingerprint, JOBS)]

        await until(grouped, why="all failed jobs are in one group")
        page = (await http.get("/v1/jobs", params={"fingerprint": fingerprint, "limit": 200})).json()
        assert len(page["jobs"]) == JOBS
        mcp_server.broken = False
        asked, looked = len(chat.calls), mcp_server.looked

        body = {"fingerprint": fingerprint}
        planned = (await http.post("/v1/dead-letters/redrive", json={**body, "dry_run": True})).json()
        assert [one["outcome"] for one in planned["jobs"]] == ["forked"] * JOBS
        assert len(chat.calls) == asked
        redriven = (await http.post("/v1/dead-letters/redrive", json=body)).json()
        forks = [one["fork_id"] for one in redriven["jobs"]]
        again = [await platform.wait_for(fork) for fork in forks]

        assert {(job.status, job.answer) for job in again} == {("completed", '{"n": 1}')}
        assert (mcp_server.shipped, mcp_server.looked) == (JOBS, looked)
        # One answer each, after the tool worked; no call of the steps before, nor of the one that failed.
        assert sorted(call[0] for call in chat.calls[asked:]) == sorted(
            f"default/{fork}/{BROKEN_AT + 1}/m1" for fork in forks
        )
        second = (await http.post("/v1/dead-letters/redrive", json=body)).json()
        assert [(one["outcome"], one["fork_id"]) for one in second["jobs"]] == [("already", fork) for fork in forks]
        assert len(chat.calls) == asked + JOBS
        past = (await http.get("/v1/dead-letters/redrives")).json()["redrives"]
        counts = [(one["jobs"], one["forked"], one["already"], one["refused"]) for one in past]
        assert counts == [(JOBS, 0, JOBS, 0), (JOBS, JOBS, 0, 0)]
        assert {one["redriven_by"] for one in past} != {""}
        assert len(await platform.events_of(forks[0], e.JobForked)) == 1
        missing = await http.post("/v1/dead-letters/redrive", json={"fingerprint": "0" * 16})
        assert missing.status_code == 404


async def test_a_redrive_goes_on_behind_the_jobs_already_redriven(platform: Platform):
    mcp_server = BreakableServer()
    async with mcp_server.open() as url, ChatServer(clerk) as chat:
        server = {"name": "desk", "url": url, "effects": {"look": "read", "ship": "once"}}
        settings = {"executor": chatting(chat), "tool_registry": with_tools(server), "tracing": TracingSettings()}
        await platform.start("router", "executor", "tool_registry", "tracing", "gateway", **settings)
        await platform.put_agent("clerk", tools=("desk__*",), output_schema=SCHEMA, max_steps=20)
        for number in range(3):
            await platform.submit(f"j{number}", f"order {number}", agent="clerk", model="chat/m")
        [fingerprint] = {(await platform.wait_for(f"j{number}")).fingerprint for number in range(3)}
        http = await platform.http()

        async def listed() -> bool:
            page = (await http.get("/v1/jobs", params={"fingerprint": fingerprint})).json()
            return len(page["jobs"]) == 3

        await until(listed, why="all failed jobs are listed")
        mcp_server.broken = False
        body, seen = {"fingerprint": fingerprint, "limit": 2}, []
        for _ in range(2):
            redriven = (await http.post("/v1/dead-letters/redrive", json=body)).json()
            seen.append(([one["outcome"] for one in redriven["jobs"]], redriven["more"]))
            for one in redriven["jobs"]:
                await platform.wait_for(one["fork_id"])

        assert seen == [(["forked", "forked"], True), (["already", "already", "forked"], False)]
        assert mcp_server.shipped == 3


async def test_letters_of_submissions_are_submitted_again_and_others_refused(platform: Platform):
    gave_up = {"code": "undeliverable", "reason": "20 deliveries ended without an ack"}
    own = orjson.dumps({"agent": "plain", "input": "hello", "job_id": "j1", "options": {"model": "chat/m"}})
    nameless = orjson.dumps({"agent": "plain", "input": "hello", "options": {"model": "chat/m"}})
    async with ChatServer(lambda _: Say(text="done")) as chat:
        await platform.start("router", "executor", "tracing", "gateway", executor=chatting(chat))
        await platform.put_agent("plain", tools=())
        for sequence, (stream, subject, body) in enumerate(
            (
                ("SUBMIT", "jobs.submit.default", own),
                ("SUBMIT", "jobs.submit.default", nameless),
                ("SUBMIT", "jobs.submit.default", b"{"),
                ("SIGNALS", "signals.default.j1", b"{}"),
            ),
            1,
        ):
            letter = Delivery(stream, "router", sequence, 20, subject, headers={}, body=body)
            await platform.bus.put_aside(letter, **gave_up)
        http = await platform.http()
        [group] = (await http.get("/v1/dead-letters/groups")).json()["groups"]
        assert (group["jobs"], group["letters"]) == (0, 4)
        body = {"fingerprint": group["fingerprint"]}

        planned = (await http.post("/v1/dead-letters/redrive", json={**body, "dry_run": True})).json()
        assert len(chat.calls) == 0
        redriven = (await http.post("/v1/dead-letters/redrive", json=body)).json()
        sent = {one["job_id"] for one in redriven["letters"] if one["outcome"] == "resubmitted"}
        ended = [await platform.wait_for(job_id) for job_id in sent]
        again = (await http.post("/v1/dead-letters/redrive", json=body)).json()

        outcomes = [(one["sequence"], one["outcome"]) for one in redriven["letters"]]
        assert outcomes == [(4, "refused"), (3, "refused"), (2, "resubmitted"), (1, "resubmitted")]
        assert [(one["sequence"], one["outcome"]) for one in planned["letters"]] == outcomes
        reasons = [one["reason"] for one in redriven["letters"]]
        assert "a message of SIGNALS is not sent again" in reasons[0]
        assert "the body is not JSON" in reasons[1]
        assert "j1" in sent
        assert [(job.status, job.answer) for job in ended] == [("completed", "done")] * 2
        assert [(one["sequence"], one["outcome"]) for one in again["letters"]] == [(4, "refused"), (3, "refused")]
        assert len(chat.calls) == 2
        dismissed = (await http.get("/v1/dead-letters/dismissed")).json()["dismissed"]
        assert {one["reason"] for one in dismissed} == {f"redriven: submitted again as job {job_id}" for job_id in sent}
        past = (await http.get("/v1/dead-letters/redrives")).json()["redrives"]
        assert [(one["jobs"], one["forked"], one["refused"]) for one in past] == [(2, 0, 2), (4, 2, 2)]
