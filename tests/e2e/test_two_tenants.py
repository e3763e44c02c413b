"""Two tenants made by the commands, used over HTTP and over the bus: neither sees or stops the other."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2
import nats
import pytest
from nats.aio.client import Client
from nats.errors import Error as NatsError

from wayline.testkit import until
from wayline.testkit.fork_server import fork

from ..integration.standalone.conftest import Installed

WITHIN_S = 60.0
MCP = "2026-07-28"
ORDER_DESK = Path(__file__).parents[2] / "examples" / "order_desk" / "order_desk.py"


@dataclass
class Tenant:
    """What `wayline` gave a tenant's developers."""

    name: str
    key: str
    seed: str
    installed: Installed
    refusals: list[str] = field(default_factory=list)
    """What the bus refused to this tenant's client."""

    async def http(self, method: str, path: str, more: dict[str, str] | None = None, **how: Any) -> httpx2.Response:
        url = f"http://127.0.0.1:{self.installed.http_port}{path}"
        async with httpx2.AsyncClient(timeout=WITHIN_S, trust_env=False) as http:
            return await http.request(
                method, url, headers={"Authorization": f"Bearer {self.key}"} | (more or {}), **how
            )

    @asynccontextmanager
    async def bus(self) -> AsyncIterator[Client]:
        url = f"nats://127.0.0.1:{self.installed.nats_port}"

        async def note(error: Exception) -> None:
            self.refusals.append(str(error))

        nc = await nats.connect(url, nkeys_seed_str=self.seed, allow_reconnect=False, error_cb=note)
        try:
            yield nc
        finally:
            await nc.close()


@pytest.fixture(scope="module")
def installed(shared: Installed) -> Installed:
    shared.start()
    return shared


def create_tenant(installed: Installed, name: str) -> Tenant:
    installed.run_json("tenants", "create", name)
    key = installed.run_json("keys", "create", "--tenant", name, "--name", "app")["key"]
    scopes = ("--scopes", "submit,signal,follow")
    seed = installed.run_json("credentials", "create", f"{name}-app", "--tenant", name, *scopes)["seed"]
    return Tenant(name, key, seed, installed)


@pytest.fixture(scope="module")
def acme(installed: Installed) -> Tenant:
    return create_tenant(installed, "acme")


@pytest.fixture(scope="module")
def globex(installed: Installed) -> Tenant:
    return create_tenant(installed, "globex")


async def test_two_tenants_with_one_job_id_see_only_their_own_job(installed: Installed, acme: Tenant, globex: Tenant):
    async with acme.bus() as at_acme, globex.bus() as at_globex:
        live = await at_globex.subscribe("live.globex.*")
        everybody = await at_globex.subscribe("_INBOX.>")
        result = await at_acme.subscribe(reply := at_acme.new_inbox())
        job = {"agent": "assistant", "input": "What is a job?", "job_id": "order-1"}
        await at_acme.publish("jobs.submit.acme", json.dumps(job).encode(), headers={"Wayline-Reply-To": reply})
        over_bus = json.loads((await result.next_msg(timeout=WITHIN_S)).data)["job"]
        await at_globex.publish("signals.acme.order-1", b'{"type": "cancel"}')
        await at_globex.publish("jobs.submit.acme", json.dumps({**job, "job_id": "planted"}).encode())
        await until(lambda: len(globex.refusals) == 2, why="the bus refuses both")
        over_http = (await globex.http("POST", "/v1/jobs?wait=30", json=job)).json()
        own = await acme.http("GET", "/v1/jobs/order-1")
        planted = await acme.http("GET", "/v1/jobs/planted")
        only = (await acme.http("POST", "/v1/jobs?wait=30", json={**job, "job_id": "only-acmes"})).json()
        foreign = await globex.http("GET", "/v1/jobs/only-acmes")
        first = await live.next_msg(timeout=WITHIN_S)

    assert (over_bus["status"], over_bus["job_id"]) == ("completed", "order-1")
    assert (over_http["status"], over_http["job_id"]) == ("completed", "order-1")
    assert (own.json()["status"], only["status"]) == ("completed", "completed")
    assert (planted.status_code, foreign.status_code) == (404, 404)
    assert first.subject == "live.globex.order-1"
    assert everybody.pending_msgs == 0
    assert ["signals.acme.order-1" in globex.refusals[0], "jobs.submit.acme" in globex.refusals[1]] == [True, True]
    await asyncio.to_thread(installed.run_json, "credentials", "revoke", "globex-app")
    with pytest.raises(NatsError):
        async with globex.bus():
            pass
    async with acme.bus() as still:
        assert (await still.jetstream().publish("signals.acme.order-1", b"{}")).stream == "SIGNALS"


async def test_a_services_credential_offers_its_tools_to_its_tenant_alone(
    installed: Installed, acme: Tenant, globex: Tenant, tmp_path: Path
):
    made = await asyncio.to_thread(
        installed.run_json, "credentials", "create", "orders", "--tenant", "acme", "--scopes", "tools"
    )
    environment = {
        **os.environ,
        "WAYLINE_NATS_URL": f"nats://127.0.0.1:{installed.nats_port}",
        "WAYLINE_NATS_SEED": made["seed"],
        "WAYLINE_TENANT": "acme",
        "ORDER_DESK_REFUNDS": str(tmp_path / "refunds.txt"),
    }
    log = tmp_path / "orders.log"
    program = ("runpy:run_path", str(ORDER_DESK), None, "__main__")
    desk = fork(*program, imports=["wayline.sdk"], cwd=tmp_path, log=log, env=environment)
    try:

        async def tools_of(tenant: Tenant) -> set[str]:
            return {tool["name"] for tool in (await tenant.http("GET", "/v1/tools")).json()["tools"]}

        async def offered() -> bool:
            return {"orders__find_order", "orders__refund"} <= await tools_of(acme)

        await until(offered, within=WITHIN_S, why="the desk's tools are listed")
        paid = await called_at_mcp(acme, "orders__refund", number="A-1001")
        refused = await called_at_mcp(globex, "orders__refund", number="A-1002")

        assert paid["result"]["content"][0]["text"] == "42.00 paid back for A-1001"
        assert "no tool is called 'orders__refund'" in refused["error"]["message"]
        assert "orders__refund" not in await tools_of(globex)
        assert (tmp_path / "refunds.txt").read_text().count("\n") == 1
        assert "violation" not in log.read_text().lower()
    finally:
        await desk.kill()


async def called_at_mcp(tenant: Tenant, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool as an MCP client of the newest protocol does, with a key that may; return its answer."""
    scopes = ("--scopes", "read,write,tools")
    made = await asyncio.to_thread(
        tenant.installed.run_json, "keys", "create", "--tenant", tenant.name, "--name", "mcp", *scopes
    )
    about = {
        "io.modelcontextprotocol/protocolVersion": MCP,
        "io.modelcontextprotocol/clientInfo": {"name": "a test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments, "_meta": about},
    }
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": MCP}
    headers |= {"Mcp-Method": "tools/call", "Mcp-Name": tool}
    answer = await replace(tenant, key=made["key"]).http("POST", "/mcp", json=body, more=headers)
    return answer.json()
