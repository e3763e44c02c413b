"""One acceptance test for each kind of client of `/mcp`: how it finds the door, what it shows, what it calls."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client

from wayline.contracts.schedules import PutSchedule, Schedule, ScheduleConfig
from wayline.gateway.adapters.keys import create_key
from wayline.testkit import Platform, until

from .conftest import Door, open_door

ACCEPT = {"Accept": "application/json, text/event-stream"}
PAGE = "https://chat.example"
SHAKE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


def request(number: int, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


async def first_key(platform: Platform) -> str:
    """Create a key before there is a gateway, which asks for one from its start then."""
    return await create_key(await platform.store("gateway"), "default", "client", scopes=("read", "write"))


async def test_a_web_page_that_is_named_asks_first_and_then_calls(platform: Platform):
    key = await first_key(platform)
    door = await open_door(platform, mcp_origins=(PAGE,))
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"}

    async with httpx2.AsyncClient() as http:
        named = await http.options(door.url, headers={"Origin": PAGE, **asks})
        other = await http.options(door.url, headers={"Origin": "https://evil.example", **asks})
        headers = {**ACCEPT, "Origin": PAGE, "Authorization": f"Bearer {key}"}
        called = await http.post(door.url, json=SHAKE, headers=headers)
        refused = await http.post(door.url, json=SHAKE, headers={**ACCEPT, "Origin": PAGE})

    assert (named.status_code, named.headers["access-control-allow-origin"]) == (204, PAGE)
    assert "authorization" in named.headers["access-control-allow-headers"].lower()
    assert "access-control-allow-origin" not in other.headers
    assert (called.status_code, called.headers["access-control-allow-origin"]) == (200, PAGE)
    assert "Mcp-Session-Id" in called.headers["access-control-expose-headers"]
    # A page reads why it was refused, too.
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, PAGE)


async def test_a_client_that_knows_oauth_finds_its_way_from_a_401(platform: Platform):
    key = await first_key(platform)
    door = await open_door(platform)

    async with httpx2.AsyncClient() as http:
        refused = await http.post(door.url, json=SHAKE, headers=ACCEPT)
        challenge = refused.headers["www-authenticate"]
        resource = (await http.get(challenge.partition('resource_metadata="')[2].rstrip('"'))).json()
        [server] = resource["authorization_servers"]
        described = (await http.get(f"{server}/.well-known/oauth-authorization-server")).json()
        form = {"grant_type": "client_credentials", "client_id": key.split("_")[1], "client_secret": key}
        granted = await http.post(described["token_endpoint"], data=form)
        wrong = await http.post(described["token_endpoint"], data={**form, "client_secret": "wl_no"})
        many = await http.post(described["token_endpoint"], data={**form, **{f"f{n}": "x" for n in range(20)}})
        odd = await http.post(described["token_endpoint"], data=form, headers={"Authorization": b"Basic \xe9"})
        token = granted.json()
        called = await http.post(
            door.url, json=SHAKE, headers={**ACCEPT, "Authorization": f"Bearer {token['access_token']}"}
        )

    assert refused.status_code == 401
    assert (resource["resource"], described["issuer"]) == (door.url, server)
    assert (token["token_type"], granted.headers["cache-control"]) == ("Bearer", "no-store")
    assert (wrong.status_code, wrong.json()["error"]) == (401, "invalid_client")
    assert (many.status_code, odd.status_code) == (400, 401)
    assert called.status_code == 200


async def test_a_client_of_2025_03_26_sends_several_messages_at_once(platform: Platform):
    door = await open_door(platform)
    batch = [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        request(1, "tools/list"),
        request(2, "tools/call", name="get_current_time", arguments={}),
        request(3, "no/such/method"),
    ]

    async with httpx2.AsyncClient() as http:
        session = (await http.post(door.url, json=SHAKE, headers=ACCEPT)).headers["mcp-session-id"]
        headers = {**ACCEPT, "Mcp-Session-Id": session}
        answered = await http.post(door.url, json=batch, headers=headers)
        told = await http.post(door.url, json=batch[:1], headers=headers)
        later = await http.post(door.url, json=batch, headers={**headers, "MCP-Protocol-Version": "2025-06-18"})
        many = await http.post(door.url, json=batch[1:2] * 21, headers=headers)

    found = {one["id"]: one for one in answered.json()}
    assert sorted(found) == [1, 2, 3]
    assert found[1]["result"]["tools"] and not found[2]["result"].get("isError")
    assert found[3]["error"]["code"] == -32601
    assert (told.status_code, later.status_code, many.status_code) == (202, 400, 400)


async def test_a_desktop_client_starts_the_bridge_as_a_program(platform: Platform):
    door = await open_door(platform)
    key = await door.key("read")
    environment = {**os.environ, "WAYLINE_URL": door.url.removesuffix("/mcp"), "WAYLINE_API_KEY": key}
    program = StdioServerParameters(
        command=sys.executable, args=["-m", "wayline.standalone", "mcp", "bridge"], env=environment
    )

    async with Client(stdio_client(program, errlog=sys.stderr), mode="legacy") as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
        told = await client.call_tool("get_current_time", {"timezone": "Asia/Tokyo"})
        with pytest.raises(MCPError, match="no tool is called"):
            await client.call_tool("nonsense", {})

    assert "search_knowledge" in listed
    assert "+09:00" in json.dumps(told.model_dump(mode="json"))


async def users_key(door: Door, user: str) -> str:
    store = await door.platform.store("gateway")
    return await create_key(store, "default", "alice's editor", scopes=("read", "write", "admin"), user_id=user)


EVERYBODYS = ScheduleConfig.model_validate(
    {"at": "2100-01-01T00:00:00Z", "job": {"agent": "assistant", "input": "hello"}}
)


async def test_a_key_of_one_user_acts_for_nobody_else(platform: Platform):
    door = await open_door(platform, "executor")
    key = await users_key(door, "alice")
    headers = {"Authorization": f"Bearer {key}"}
    job = {"agent": "assistant", "input": "hello"}

    async with httpx2.AsyncClient(base_url=door.url.removesuffix("/mcp"), headers=headers) as http:
        own = await http.post("/v1/jobs", json=job)
        other = await http.post("/v1/jobs", json={**job, "user_id": "bob"})
        latest = await http.get("/v1/agents/assistant/latest", params={"user_id": "bob"})
        plan = {"at": "2100-01-01T00:00:00Z", "job": {**job, "user_id": "bob"}}
        planned = await http.put("/v1/schedules/morning", json=plan)
        own_plan = await http.put("/v1/schedules/morning", json={**plan, "job": job})
        await door.platform.bus.ask(PutSchedule(tenant="default", name="everybodys", config=EVERYBODYS), Schedule)
        ran_own = await http.post("/v1/schedules/morning/run")
        ran_other = await http.post("/v1/schedules/everybodys/run")
        own_id = own.json()["job_id"]
        await door.platform.wait_for(own_id)
        fork = await http.post(f"/v1/jobs/{own_id}/fork", json={"after": 2, "input": "hello again"})
    async with door.client(key) as client:
        ran = await client.call_tool("run_agent", job)
        with pytest.raises(MCPError, match="acts for user 'alice'"):
            await client.call_tool("run_agent", job, meta={"wayline/user": "bob"})  # pyright: ignore

    assert (other.status_code, other.json()["code"]) == (403, "forbidden")
    assert latest.status_code == 403
    assert (planned.status_code, own_plan.json()["job"]["user_id"]) == (403, "alice")
    assert fork.status_code == 202, fork.text
    assert (ran_own.status_code, ran_other.status_code) == (202, 403)
    for job_id in (own.json()["job_id"], fork.json()["job_id"], ran.structured_content["job_id"]):  # pyright: ignore
        submitted = (await platform.job(job_id)).life.submitted
        assert submitted is not None and submitted.user_id == "alice"


async def test_a_key_of_one_user_reads_nobody_elses_jobs(platform: Platform):
    door = await open_door(platform, "executor", "tracing")
    headers = {"Authorization": f"Bearer {await users_key(door, 'alice')}"}
    everybody = {"Authorization": f"Bearer {await door.key('read', 'write')}"}
    bobs = {"agent": "assistant", "input": "hello", "job_id": "bobs", "user_id": "bob", "session_id": "bobs-talk"}
    paths = ["", "/events?after=0", "/trace", "/steps", "/export"]

    async with httpx2.AsyncClient(base_url=door.url.removesuffix("/mcp"), headers=everybody) as http:
        assert (await http.post("/v1/jobs", json=bobs, params={"wait": 60})).status_code == 200
        seen = [(await http.get(f"/v1/jobs/bobs{path}")).status_code for path in paths]
        trace_id = (await http.get("/v1/jobs/bobs/trace")).json()["trace_id"]
    async with httpx2.AsyncClient(base_url=door.url.removesuffix("/mcp"), headers=headers) as http:
        own = (await http.post("/v1/jobs", json={"agent": "assistant", "input": "hello"}, params={"wait": 60})).json()
        hidden = [(await http.get(f"/v1/jobs/bobs{path}")).status_code for path in paths]
        hidden += [(await http.get(path)).status_code for path in (f"/v1/traces/{trace_id}", "/v1/sessions/bobs-talk")]
        changed = [
            (await http.post("/v1/jobs/bobs/cancel")).status_code,
            (await http.post("/v1/jobs/bobs/fork", json={"after": 2, "input": "hello again"})).status_code,
        ]
        joined = await http.post("/v1/jobs", json={"agent": "assistant", "input": "hi", "session_id": "bobs-talk"})
        forgot = await http.delete("/v1/sessions/bobs-talk")
        named = (await http.get("/v1/jobs", params={"user_id": "bob"}), await http.get("/v1/costs"))
        listed = await until(lambda: _listed(http), why="the list has the user's own job")
        sessions = (await http.get("/v1/sessions")).json()
    async with door.client(headers["Authorization"].removeprefix("Bearer ")) as client:
        with pytest.raises(MCPError):
            await client.read_resource("job://bobs/result")
        waited = await client.call_tool("wait_for_job", {"job_id": "bobs"})

    assert seen == [200] * len(paths)
    assert (set(hidden), changed) == ({404}, [404, 404])
    assert [one.status_code for one in (joined, forgot, *named)] == [403] * 4
    assert [job["job_id"] for job in listed] == [own["job_id"]]
    assert sessions["sessions"] == [] and waited.is_error


async def _listed(http: httpx2.AsyncClient) -> list[Any]:
    return (await http.get("/v1/jobs")).json()["jobs"]
