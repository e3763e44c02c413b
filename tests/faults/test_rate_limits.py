"""Ten gateways, one after the other killed, hold a tenant at ten times its rate to that rate."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from statistics import quantiles

import httpx2
import pytest
import pytest_asyncio

from wayline.contracts.tenants import CreateTenant, Tenant
from wayline.embedded.ports import free_port
from wayline.gateway.adapters.keys import create_key
from wayline.gateway.adapters.rate_limits import RateLimits
from wayline.gateway.shapes.limits import LimitsBody
from wayline.testkit.processes import ServiceProcess

from .conftest import MakePlatform
from .platform import FaultPlatform

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow, pytest.mark.timeout(300)]

GATEWAYS, KILLS = 10, 5
PER_MINUTE, BURST = 300, 20
SECONDS = 40
LIMITS = LimitsBody.model_validate({"tenant": {"requests": {"per_minute": PER_MINUTE, "burst": BURST}}})


@pytest_asyncio.fixture(loop_scope="module")
async def platform(make_platform: MakePlatform) -> AsyncIterator[FaultPlatform]:
    platform = await make_platform("gateway")
    await platform.fleet.ensure("router")
    yield platform
    await platform.fleet.stop()


class Load:
    """Requests of one tenant to all gateways, so many a second, and what became of them."""

    def __init__(self, key: str, ports: list[int], *, per_s: float) -> None:
        self._client = httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=20, trust_env=False)
        self._ports = ports
        self._pause_s = len(ports) / per_s
        self.statuses: Counter[int] = Counter()
        self.seconds: list[float] = []

    async def run(self) -> None:
        """Send requests for the time of the test."""
        async with self._client:
            await asyncio.gather(*(self._at(port) for port in self._ports))

    async def _at(self, port: int) -> None:
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            began = time.monotonic()
            try:
                answer = await self._client.get(f"http://127.0.0.1:{port}/v1/me")
                self.statuses[answer.status_code] += 1
                self.seconds.append(time.monotonic() - began)
            except httpx2.HTTPError:
                # Its gateway was killed.
                self.statuses[0] += 1
            await asyncio.sleep(max(0.0, began + self._pause_s - time.monotonic()))


async def kill_some(platform: FaultPlatform, gateways: list[ServiceProcess], ports: list[int]) -> None:
    """Kill one gateway after the other, and start another in its place."""
    for _ in range(KILLS):
        await asyncio.sleep(SECONDS / (KILLS + 1))
        place = random.randrange(GATEWAYS)
        gateways[place].kill()
        gateways[place] = platform.fleet.spawn("gateway", env={"WAYLINE_HTTP_PORT": str(ports[place])})


async def test_ten_gateways_that_are_killed_accept_what_one_may(
    platform: FaultPlatform, record_property: Callable[[str, object], None]
):
    store = await platform.store("gateway")
    keys = {}
    for tenant in ("acme", "globex"):
        await platform.bus.ask(CreateTenant(tenant=tenant), Tenant)
        await RateLimits(store).put(tenant, LIMITS)
        keys[tenant] = await create_key(store, tenant, "load")
    await store.close()
    ports = [free_port() for _ in range(GATEWAYS)]
    gateways = [platform.fleet.spawn("gateway", env={"WAYLINE_HTTP_PORT": str(port)}) for port in ports]
    for gateway in gateways:
        await gateway.ready()
    # The neighbour alone, and then beside the tenant at ten times its rate.
    quiet = Load(keys["globex"], ports, per_s=2)
    await quiet.run()
    loud, beside = Load(keys["acme"], ports, per_s=PER_MINUTE / 60 * 10), Load(keys["globex"], ports, per_s=2)
    began = time.monotonic()
    await asyncio.gather(loud.run(), beside.run(), kill_some(platform, gateways, ports))
    took_s = time.monotonic() - began

    p99 = {name: quantiles(load.seconds, n=100)[98] for name, load in (("quiet", quiet), ("beside", beside))}
    for name, seconds in p99.items():
        record_property(f"neighbour_p99_ms_{name}", round(seconds * 1_000, 1))
    limit = BURST + PER_MINUTE / 60 * min(took_s, SECONDS)
    print(f"{loud.statuses} of {limit:g}, {beside.statuses}, {p99}")
    assert loud.statuses[429] > 3 * loud.statuses[200]
    assert loud.statuses[200] == pytest.approx(limit, rel=0.05)
    assert set(beside.statuses) <= {200, 0} and set(quiet.statuses) == {200}
