"""Jobs on a cluster under every fault there is: each ends once, logs, money and event streams are exact."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress

import pytest
import pytest_asyncio

from wayline.chassis.service import SPANS_SUBJECT
from wayline.client import Address, ApiError, Client
from wayline.contracts import headers as h
from wayline.contracts.agents import AgentConfig, Routing
from wayline.contracts.events import Event
from wayline.embedded.ports import free_port
from wayline.journal import read_record
from wayline.simulator import Asked, Fault, Say
from wayline.testkit import until
from wayline.testkit.postgres_pair import PostgresPair

from .accidents import CHAT, metered, set_up
from .books import PAYMENT_USD, Books, calls_of
from .cluster_faults import ClusterFaults
from .clusters import SERVICES, ZONES, until_healed
from .conftest import MakePlatform
from .platform import EVERY_EFFECT, ONCE, TENANT, FaultPlatform
from .test_random_kills import seed_of_this_run

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow, pytest.mark.timeout(3_600)]

JOBS = int(os.environ.get("WAYLINE_CLUSTER_JOBS") or 60)
FAULTS = int(os.environ.get("WAYLINE_CLUSTER_FAULTS") or 24)
"""`make cluster` has 500 jobs under 200 faults."""
AT_ONCE = 25
"""Jobs at work before the first fault; more begin as faults are done, so that the last fault meets some too."""
WATCHED_EACH = 5
ALL = (*SERVICES, "tracing", "gateway")
AGENT = "steady"
WORK_WITHIN_S = 2_400.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform, pair: PostgresPair) -> AsyncIterator[FaultPlatform]:
    platform = await make_platform("tracing", "gateway", clustered=True, zones=ZONES, postgres=pair)
    platform.reads_overlap = True
    platform.provider = await platform.simulate(models=metered())
    fleet = platform.fleet
    paid = platform.effects.settings(tools={"pay_once": {"charge": {"usd": str(PAYMENT_USD)}}})
    fleet.set("tool_registry", WAYLINE_TOOL_REGISTRY_SERVERS=[paid])
    for name in ("router", "executor"):
        fleet.set(name, **platform.provider.environment)
    platform.ports = {zone: free_port() for zone in ZONES}
    for zone in ZONES:
        for name in ALL:
            platform.spawn_in(zone, name)
    for process in fleet.processes:
        await process.ready()
    await set_up(platform)
    routing = Routing(mode="locked", primary=CHAT[0])
    await platform.put_agent(
        AGENT, AgentConfig(instructions="Do it.", routing=routing, tools=EVERY_EFFECT, ask="never")
    )
    yield platform
    await fleet.stop()


def script(seed: int, platform: FaultPlatform) -> None:
    """Have the model call each effect once and then answer, each time after a moment that is drawn."""

    def say(asked: Asked) -> Say:
        if any(turn.calls for turn in asked.turns):
            return Say(text="done")
        return Say(tools=tuple((tool, {}) for tool in EVERY_EFFECT))

    def fault(asked: Asked) -> Fault:
        return Fault(latency_s=random.Random(f"{seed}:{asked.attempt}").random() / 2)

    platform.provider.script, platform.provider.faults = say, fault


async def submit(platform: FaultPlatform, draw: random.Random, job_id: str) -> None:
    """Submit over the gateway of some zone, and over the other's while that one does not take it."""
    body = {"agent": AGENT, "input": job_id, "job_id": job_id}
    zones, refused = draw.sample(ZONES, len(ZONES)), Counter[str]()

    async def accepted() -> bool:
        zones.reverse()
        async with Client(Address(f"http://127.0.0.1:{platform.ports[zones[0]]}")) as client:
            try:
                async with asyncio.timeout(20):
                    await client.post("/v1/jobs", body)
                    return True
            except (ApiError, TimeoutError) as error:
                refused[f"{zones[0]}: {type(error).__name__} {error}"] += 1
        return False

    try:
        await until(accepted, within=180, why=f"{job_id} is accepted")
    except AssertionError as error:
        raise AssertionError(f"{error}: {dict(refused)}") from None


async def watch(platform: FaultPlatform, draw: random.Random, job_id: str, heard: list[tuple[int, str]]) -> None:
    """Follow a job as a client does that is cut again and again, and comes back with the last id that it has seen."""
    zones = draw.sample(ZONES, len(ZONES))
    while not heard or heard[-1][1] not in {"job.completed", "job.failed", "job.cancelled"}:
        zones.reverse()
        left = draw.randrange(1, 8)
        async with Client(Address(f"http://127.0.0.1:{platform.ports[zones[0]]}")) as client:
            with suppress(ApiError, TimeoutError):
                async with asyncio.timeout(10), aclosing(client.events(job_id, heard[-1][0] if heard else 0)) as events:
                    async for event in events:
                        if "seq" in event:
                            heard.append((event["seq"], event["type"]))
                            left -= 1
                        if not left:
                            break


async def test_every_job_ends_once_whatever_befalls_the_cluster(platform: FaultPlatform, pair: PostgresPair):
    seed = seed_of_this_run()
    print(f"{JOBS} jobs under {FAULTS} faults: WAYLINE_FAULT_SEED={seed}")
    draw = random.Random(seed)
    script(seed, platform)
    faults = ClusterFaults(platform, ALL, random.Random(seed), pair)
    names = [f"f{n}" for n in range(JOBS)]
    left = set(names)
    heard: dict[str, list[tuple[int, str]]] = {name: [] for name in names[::WATCHED_EACH]}

    def room() -> int:
        return AT_ONCE + JOBS * faults.done.total() // max(FAULTS, 1)

    async def work() -> None:
        for n, name in enumerate(names):
            await until(lambda n=n: n < room(), within=WORK_WITHIN_S, why=f"faults go on: {dict(faults.done)}")
            await submit(platform, draw, name)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(faults.run(FAULTS))
        tasks.create_task(work())
        for name, events in heard.items():
            tasks.create_task(watch(platform, random.Random(f"{seed}:{name}"), name, events))
        tasks.create_task(platform.until_ended(*left, within=WORK_WITHIN_S))
    await until_healed(platform)
    await platform.until_quiet(120)
    print(f"faults: {dict(faults.done)}")
    assert faults.done["postgres_promoted"] == 1

    await platform.check(*names)
    logs = {name: [e for record in await platform.records(name) for e in read_record(record.data)] for name in names}
    assert {name: log[-1].type for name, log in logs.items() if log[-1].type != "job.completed"} == {}
    told = {name: [(event.seq, event.type) for event in logs[name]] for name in heard}
    assert heard == told, "a watcher that came back again and again heard something else than the log says"
    # Spans are given up after three deliveries: tracing may have been killed with each of them in hand.
    letters = [letter for letter in await platform.dead_letters() if letter[h.DEAD_SUBJECT] != SPANS_SUBJECT]
    assert letters == []
    await check_books(platform, names, logs)
    claims = Counter(sum(event.type == "job.claimed" for event in log) for log in logs.values())
    print(f"claims of a job: {dict(sorted(claims.items()))}; {sum(map(len, heard.values()))} events watched")


async def check_books(platform: FaultPlatform, names: list[str], logs: dict[str, list[Event]]) -> None:
    """Check that the logs, the provider's bill, tracing and the reservations say the same of money."""
    bill = platform.provider.bill
    await until(
        lambda: {asked.number for asked in platform.provider.requests} <= {charge.number for charge in bill.charges},
        why="every request is on the bill",
    )
    calls = {key: call for name in names for key, call in calls_of(name, logs[name]).items()}
    await platform.until_traced(*names, within=180)
    acted = Counter(key for tool, key in platform.effects.calls() if tool == ONCE.removeprefix("effects__"))
    assert all(key.startswith(f"{TENANT}/") for key in acted)
    books = Books(calls, bill.charges, acted)
    books.against_the_bill()
    await books.against_tracing(platform)
    await books.against_the_reservations(platform)
    print(f"{len(books.calls)} calls, {len(books.unsettled)} unsettled; settled {books.total} USD")
