"""Two tenants made by the commands, used over HTTP and over the bus: neither sees or stops the other."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import nats
import pytest
from nats.aio.client import Client

from wayline.testkit import until

from ..integration.standalone.conftest import Installed

WITHIN_S = 60.0


@dataclass
class Tenant:
    """What `wayline` gave a tenant's developers."""

    name: str
    key: str
    seed: str
    installed: Installed
    refusals: list[str] = field(default_factory=list)
    """What the bus refused to this tenant's client."""

    async def http(self, method: str, path: str, **how: Any) -> httpx2.Response:
        url = f"http://127.0.0.1:{self.installed.http_port}{path}"
        async with httpx2.AsyncClient(timeout=WITHIN_S, trust_env=False) as http:
            return await http.request(method, url, headers={"Authorization": f"Bearer {self.key}"}, **how)

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


@pytest.fixture
def installed(server_dir: Path) -> Iterator[Installed]:
    home = server_dir / f"tenants-{secrets.token_hex(3)}"
    home.mkdir()
    installed = Installed(home / "data")
    yield installed
    installed.abandon()


def create_tenant(installed: Installed, name: str) -> Tenant:
    installed.run_json("tenants", "create", name)
    key = installed.run_json("keys", "create", "--tenant", name, "--name", "app")["key"]
    scopes = ("--scopes", "submit,signal,follow")
    seed = installed.run_json("credentials", "create", f"{name}-app", "--tenant", name, *scopes)["seed"]
    return Tenant(name, key, seed, installed)


async def test_two_tenants_with_one_job_id_see_only_their_own_job(installed: Installed):
    await asyncio.to_thread(installed.start)
    acme, globex = [await asyncio.to_thread(create_tenant, installed, name) for name in ("acme", "globex")]

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
    with pytest.raises(nats.errors.Error):
        async with globex.bus():
            pass
    async with acme.bus() as still:
        assert (await still.jetstream().publish("signals.acme.order-1", b"{}")).stream == "SIGNALS"
