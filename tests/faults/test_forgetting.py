"""A router killed while it forgets a user: another goes on, nothing is left, and the receipt misses no count."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import pytest_asyncio

from wayline.chassis import Failpoint
from wayline.contracts import headers as h
from wayline.contracts.errors import Retry
from wayline.contracts.forgetting import Forget, Forgetting, GetForgetting
from wayline.contracts.jobs import JobOptions, SubmitJob
from wayline.testkit import until

from .conftest import MakePlatform
from .kill_points import kill_points
from .platform import TENANT, FaultPlatform, encode_plan, says
from .test_service_failpoints import FORGETTING

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

JOBS = 2
NTH = {Failpoint.ROUTER_FORGET_COUNT_AFTER: (1, 3), Failpoint.ROUTER_FORGET_ERASE_AFTER: (1, 4)}
"""At the first store, and at a later one: each is counted and erased by itself."""
QUICK = {Failpoint.ROUTER_FORGET_ERASE_AFTER}
"""What `make test` runs of them."""
PASSAGES = [(point, nth) for point in sorted(FORGETTING) for nth in NTH.get(point, (1,))]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform) -> FaultPlatform:
    platform = await make_platform("gateway", "retrieval", "tracing", "notifier")
    # Nobody calls it: any port will do.
    platform.fleet.set("gateway", WAYLINE_HTTP_PORT="0")
    await platform.fleet.ensure("router", "executor", "tool_registry", "tracing", "retrieval", "notifier", "gateway")
    return platform


async def run_jobs(platform: FaultPlatform, user: str) -> int:
    """Let jobs of a user end, and return how many records their logs have."""
    jobs = [f"{user}-{number}" for number in range(JOBS)]
    for job_id in jobs:
        plan = encode_plan([says(f"What {user} was told.")])
        named = {"agent": "assistant", "job_id": job_id, "user_id": user}
        asked = SubmitJob(tenant=TENANT, input=plan, options=JobOptions(model="chat/x"), **named)
        await platform.bus.store(asked.subject, asked.to_wire(), {h.MSG_ID: job_id})
    await platform.until_ended(*jobs)
    await platform.until_quiet()
    await platform.until_traced(*jobs)
    return sum([len(await platform.records(job_id)) for job_id in jobs])


async def answered(
    platform: FaultPlatform, asked: Forget | GetForgetting, test: Callable[[Forgetting], bool]
) -> Forgetting:
    """Ask until there is an answer that passes a test."""

    async def told() -> Forgetting | None:
        try:
            found = await platform.bus.ask(asked, Forgetting)
        except Retry:
            return None
        return found if test(found) else None

    found = await until(told, within=60, why="the router answers")
    assert found is not None
    return found


@pytest.mark.parametrize(("point", "nth"), kill_points(PASSAGES, QUICK))
async def test_a_router_killed_while_it_forgets_leaves_a_whole_receipt(
    platform: FaultPlatform, point: Failpoint, nth: int
):
    user = f"{point}-{nth}".replace(".", "-").replace("_", "-")
    records = await run_jobs(platform, user)
    await platform.fleet.stop("router")
    doomed = await platform.fleet.start("router", point, nth=nth)

    asked = Forget(tenant=TENANT, user_id=user)
    begun = await answered(platform, asked, lambda _: True)
    await platform.until_dead(doomed)
    await platform.fleet.start("router")
    if point is not Failpoint.ROUTER_FORGET_END_AFTER:
        assert (await answered(platform, asked, lambda _: True)).forget_id == begun.forget_id
    get = GetForgetting(tenant=TENANT, forget_id=begun.forget_id)
    done = await answered(platform, get, lambda told: told.is_done)

    counts = {one.store: one.counts for one in done.receipt}
    assert (done.left, done.jobs, done.user_id) == ({}, JOBS, None)
    assert counts["logs"] == {"log_records": records}
    assert counts["tracing"]["jobs"] == JOBS and counts["router"]["latest_results"] == 1
    for table in ("router.latest_results", "router.reservations", "tracing.jobs", "tracing.ledger", "router.forgets"):
        assert await platform.sql(f"SELECT 1 FROM {table} WHERE user_id = $1", user) == [], table
    assert [await platform.records(f"{user}-{number}") for number in range(JOBS)] == [[]] * JOBS
