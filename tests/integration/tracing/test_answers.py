"""What tracing answers: for one tenant, page by page, dollar by dollar."""

from decimal import Decimal

import pytest
from prometheus_client import REGISTRY

from wayline.chassis.claim_check.claims import MESSAGE_MAX
from wayline.contracts.errors import Refused
from wayline.contracts.jobs import Complexity, QueuePlace, Route, Status, Waiting
from wayline.contracts.money import Usage
from wayline.contracts.traces import (
    CostTable,
    FindQueuePlaces,
    GetCosts,
    GetSteps,
    GetTrace,
    JobPage,
    ListJobs,
    QueuePlaces,
    StepList,
    Trace,
)
from wayline.journal import view
from wayline.testkit import until
from wayline.tracing.upkeep.gauges import Gauges

from .conftest import QUICK, Log, Start, TracingPlatform


async def test_another_tenants_ids_are_not_found(platform: TracingPlatform, start: Start):
    await start()
    await Log(platform.bus).whole()
    await Log(platform.bus, tenant="globex", job_id="theirs").whole()
    await platform.wait_until_read()
    ours = (await platform.trace("j1")).trace_id

    for asked, replies in (
        (GetTrace(tenant="globex", job_id="j1"), Trace),
        (GetTrace(tenant="globex", trace_id=ours), Trace),
        (GetSteps(tenant="globex", job_id="j1"), StepList),
    ):
        with pytest.raises(Refused) as refused:
            await platform.bus.ask(asked, replies)
        assert refused.value.code == "not_found"
    page = await platform.bus.ask(ListJobs(tenant="globex"), JobPage)
    assert [job.job_id for job in page.jobs] == ["theirs"]
    costs = await platform.bus.ask(GetCosts(tenant="globex"), CostTable)
    assert sum(row.calls for row in costs.rows) == 3


async def test_two_tenants_jobs_of_one_name_are_two_jobs(platform: TracingPlatform, start: Start):
    await start()
    await Log(platform.bus).whole()
    await Log(platform.bus, tenant="globex").whole()
    await platform.wait_until_read()

    ours, theirs = await platform.trace("j1"), await platform.trace("j1", tenant="globex")
    assert ours.trace_id != theirs.trace_id
    assert (ours.totals.spans, theirs.totals.spans) == (6, 6)


async def test_jobs_are_listed_newest_first_page_by_page(platform: TracingPlatform, start: Start):
    await start()
    for number in range(5):
        log = Log(platform.bus, job_id=f"j{number}")
        # Three of them began at the same moment: the id decides.
        log.at = log.at.replace(second=0) if number < 3 else log.at
        await log.append(log.submitted(), log.failed() if number == 4 else log.routed())
    await platform.wait_until_read()

    seen: list[str] = []
    cursor = None
    while True:
        page = await platform.bus.ask(ListJobs(tenant="acme", limit=2, cursor=cursor), JobPage)
        seen += [job.job_id for job in page.jobs]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert sorted(seen) == ["j0", "j1", "j2", "j3", "j4"]
    assert [job for job in seen if job < "j3"] == ["j2", "j1", "j0"]

    failed = await platform.bus.ask(ListJobs(tenant="acme", status=Status.FAILED), JobPage)
    assert [(job.job_id, job.error and job.error.code) for job in failed.jobs] == [("j4", "unknown_agent")]
    with pytest.raises(Refused) as refused:
        await platform.bus.ask(ListJobs(tenant="acme", cursor="nonsense!"), JobPage)
    assert refused.value.code == "invalid_cursor"


async def test_a_place_counts_queued_jobs_of_the_same_tenant_and_lane(platform: TracingPlatform, start: Start):
    await start()
    for number, (tenant, lane) in enumerate(
        [("acme", "interactive"), ("globex", "interactive"), ("acme", "batch"), *[("acme", "interactive")] * 3]
    ):
        log = Log(platform.bus, tenant=tenant, job_id=f"j{number}")
        log.at = log.at.replace(second=number)
        begun = [log.submitted(lane=lane), log.routed()]  # pyright: ignore[reportArgumentType]
        await log.append(*begun, *([log.claimed()] if number == 3 else []))
    await platform.wait_until_read()

    asked = FindQueuePlaces(tenant="acme", job_ids=("j0", "j1", "j2", "j3", "j5"))
    found = await platform.bus.ask(asked, QueuePlaces)

    assert {place.job_id: place for place in found.places} == {
        "j0": QueuePlace(job_id="j0", lane="interactive", position=1, queued=3),
        "j2": QueuePlace(job_id="j2", lane="batch", position=1, queued=1),
        "j5": QueuePlace(job_id="j5", lane="interactive", position=3, queued=3),
    }


async def test_a_listed_job_is_what_the_fold_says(platform: TracingPlatform, start: Start):
    await start()
    await Log(platform.bus).whole()
    await platform.wait_until_read()

    (job,) = (await platform.bus.ask(ListJobs(tenant="acme"), JobPage)).jobs
    assert job.status == Status.COMPLETED
    assert (job.agent, job.agent_version, job.session_id, job.user_id) == ("assistant", 3, "s1", "u1")
    assert job.route is not None
    assert job.route.reason == "it is a question"
    assert (job.steps, job.usage, job.cost_usd) == (2, Usage(input=20, cache_read=8, output=10), Decimal("0.012"))
    assert (job.answer, job.partial, job.reason) == ("because", False, None)


async def test_a_listed_job_says_what_the_single_job_says(platform: TracingPlatform, start: Start):
    await start()
    route = Route(
        provider="anthropic",
        model="claude",
        tier="standard",
        reason="it is hard",
        slot="reasoning",
        task_type="code",
        complexity=Complexity(level="complex", score=0.9),
    )
    told = Log(platform.bus)
    routed = told.submitted(), told.routed().model_copy(update={"route": route})
    await told.append(*routed)
    await told.append(told.claimed(), told.asked_model(1))
    await told.append(told.model_answered(1, "because"), told.completed("because"))
    await platform.wait_until_read()

    (listed,) = (await platform.bus.ask(ListJobs(tenant="acme"), JobPage)).jobs

    assert listed == view(await platform.job("j1", "acme"))


async def test_a_page_is_one_message_and_holds_no_whole_answers(platform: TracingPlatform, start: Start):
    await start()
    for number in range(4):
        told = Log(platform.bus, job_id=f"j{number}")
        submitted = told.submitted()
        waiting = Waiting(why="needs_decision", wait_id="w1", question="?", tool="t", arguments={"text": "x" * 100_000})
        parked = told.parked().model_copy(update={"waiting": waiting})
        await told.append(submitted, told.routed(), parked)
    long = Log(platform.bus, job_id="long")
    await long.append(long.submitted(), long.routed(), long.completed("a" * 5_000))
    await platform.wait_until_read()

    pages: list[JobPage] = []
    cursor = None
    while not pages or cursor:
        pages.append(await platform.bus.ask(ListJobs(tenant="acme", cursor=cursor), JobPage))
        cursor = pages[-1].next_cursor

    assert all(len(page.model_dump_json()) < MESSAGE_MAX for page in pages)
    jobs = {job.job_id: job for page in pages for job in page.jobs}
    assert set(jobs) == {"j0", "j1", "j2", "j3", "long"}
    assert (len(jobs["long"].answer or ""), jobs["long"].answer_cut) == (1_000, True)


async def test_jobs_are_listed_by_session_and_user(platform: TracingPlatform, start: Start):
    await start()
    for number, user in enumerate(("ann", "bob")):
        told = Log(platform.bus, job_id=f"j{number}")
        await told.append(told.submitted(user_id=user), told.routed())
    await platform.wait_until_read()

    async def listed(**filters: str) -> list[str]:
        page = await platform.bus.ask(ListJobs(tenant="acme").model_copy(update=filters), JobPage)
        return sorted(job.job_id for job in page.jobs)

    assert await listed(user_id="bob") == ["j1"]
    assert await listed(session_id="s1") == ["j0", "j1"]
    assert await listed(session_id="other") == []


async def test_a_listed_job_has_the_reason_of_its_partial_answer(platform: TracingPlatform, start: Start):
    await start()
    cut, cancelled = Log(platform.bus, job_id="j1"), Log(platform.bus, job_id="j2")
    await cut.append(cut.submitted(), cut.routed(), cut.completed("half", partial=True, reason="3 steps are used up"))
    await cancelled.append(cancelled.submitted(), cancelled.routed(), cancelled.cancelled())
    await platform.wait_until_read()

    page = await platform.bus.ask(ListJobs(tenant="acme"), JobPage)
    assert {(job.job_id, job.partial, job.reason) for job in page.jobs} == {
        ("j1", True, "3 steps are used up"),
        ("j2", False, "enough"),
    }


async def test_costs_are_grouped_and_unknown_ones_are_counted_not_added(platform: TracingPlatform, start: Start):
    await start()
    await Log(platform.bus).whole()
    log = Log(platform.bus, job_id="j2")
    await log.append(log.submitted(user_id="u2"), log.routed())
    await log.append(log.claimed(), log.asked_model(1), log.model_answered(1, "so", cost=None), log.completed())
    running = Log(platform.bus, job_id="j3")
    await running.append(running.submitted(), running.routed(), running.claimed(), running.asked_model(1))
    await platform.wait_until_read()

    async def table(*group_by: str) -> list[tuple[tuple[str, ...], int, int, Decimal]]:
        asked = GetCosts.model_validate({"tenant": "acme", "group_by": group_by})
        rows = (await platform.bus.ask(asked, CostTable)).rows
        return sorted((tuple(row.group.values()), row.calls, row.calls_unknown, row.cost_usd) for row in rows)

    assert await table("model", "tool") == [
        (("-", "search"), 1, 0, Decimal("0.01")),
        (("claude", "-"), 3, 1, Decimal("0.002")),
    ]
    assert await table("agent") == [(("assistant",), 4, 1, Decimal("0.012"))]
    assert await table("user") == [(("u1",), 3, 0, Decimal("0.012")), (("u2",), 1, 1, Decimal("0"))]
    assert (await platform.trace("j2")).totals.cost_usd is None


async def test_beyond_the_limit_the_ledgers_gauges_add_up_under_other(platform: TracingPlatform, start: Start):
    await start(QUICK.model_copy(update={"gauges_every_s": 3_600}))
    await Log(platform.bus).whole()
    await platform.wait_until_read()

    await Gauges(platform.bus, platform.tables, labels_max=1).read_ledger()

    [family] = [one for one in REGISTRY.collect() if one.name == "wayline_ledger_cost_usd"]
    shown = {(sample.labels["model"], sample.labels["agent"]): sample.value for sample in family.samples}
    assert len(shown) == 2 and ("other", "other") in shown
    assert sum(shown.values()) == pytest.approx(0.012)


async def test_the_gauges_say_what_the_ledger_and_the_bus_say(platform: TracingPlatform, start: Start):
    await start()
    await Log(platform.bus).whole()

    def spent(model: str) -> float | None:
        return REGISTRY.get_sample_value("wayline_ledger_cost_usd", {"model": model, "agent": "assistant"})

    await until(lambda: spent("claude") == 0.002, why="the gauge has read the ledger")
    await until(lambda: spent("tool search") == 0.01, why="it has read the tool's charge, too")

    def stored() -> float | None:
        return REGISTRY.get_sample_value("jetstream_stream_total_messages", {"stream_name": "EVENTS"})

    await until(lambda: stored() == 6, why="the gauge has asked the bus")
    await until(lambda: REGISTRY.get_sample_value("wayline_postgres_standbys") == 0, why="no standby is connected")
    labels = {"stream_name": "EVENTS", "consumer_name": "tracing"}
    assert REGISTRY.get_sample_value("jetstream_consumer_num_pending", labels) is not None
