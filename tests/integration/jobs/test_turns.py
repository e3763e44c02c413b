"""The jobs of a session run one at a time, in the order of their turns, whatever becomes of each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from wayline.contracts import events as e
from wayline.contracts.errors import Refused, Retry
from wayline.contracts.jobs import TERMINAL, Status, Turn
from wayline.contracts.models import ModelCard, Prices, PutModel, Rates
from wayline.contracts.sessions import DeleteSession, SessionDeleted
from wayline.journal import JobLog
from wayline.router.sessions.turn_upkeep import TurnUpkeep
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator.chat_server import ChatServer
from wayline.testkit import Platform, until

from .conftest import chatting, http_with_key
from .held_session import Session

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

RATES = Rates(input=Decimal(1), output=Decimal(2), cache_read=Decimal("0.1"))
PRICED = ModelCard(provider="chat", model="m", tier="standard", prices=Prices(rates=RATES))


@pytest_asyncio.fixture(loop_scope="module")
async def session(module_platform: Platform, shared_chat: ChatServer) -> AsyncIterator[Session]:
    session = Session(await module_platform.new_tenant())
    shared_chat.script = session.say
    await session.platform.put_agent("talker", instructions="Talk.", tools=())
    yield session
    await session.end()


@pytest.fixture
async def own_session(platform: Platform) -> AsyncIterator[Session]:
    """A session on a platform of the test's own: it stops services or loses messages."""
    session = Session(platform)
    async with ChatServer(session.say) as chat:
        router = RouterSettings(chat_base_url=chat.url)
        await platform.start("router", "executor", "tool_registry", router=router, executor=chatting(chat))
        await platform.put_agent("talker", instructions="Talk.", tools=())
        yield session


async def test_a_second_job_of_a_session_runs_after_the_first(session: Session):
    await session.submit("j1", held=True)
    await session.running("j1")
    await session.submit("j2")
    await session.waiting("j2")
    assert (await session.state()).busy_with == "j1"

    session.gates["j1"].set()

    assert (await session.platform.wait_for("j2")).status is Status.COMPLETED
    await session.ran_in_order("j1", "j2")
    first, *others = await session.platform.events("j2")
    assert isinstance(first, e.JobSubmitted)
    assert first.turn == Turn(number=2, after="j1")
    kinds = [event.type for event in others]
    assert kinds[:4] == ["job.routed", "job.parked", "job.claimed", "job.resumed"]
    await session.platform.wait_until_empty("SUBMIT", "RUN")
    state = await session.state()
    assert (state.turns, state.tail_job, state.busy_with) == (2, "j2", None)


async def test_a_job_after_an_ended_one_runs_at_once_without_parking(session: Session):
    await session.submit("j1")
    await session.platform.wait_for("j1")
    await session.submit("j2")
    await session.platform.wait_for("j2")

    assert "job.parked" not in {event.type for event in await session.platform.events("j2")}


async def test_fifty_jobs_of_a_session_run_in_turn_order(session: Session):
    jobs = [f"j{n}" for n in range(50)]
    await asyncio.gather(*(session.submit(job) for job in jobs))
    for job in jobs:
        await session.platform.wait_for(job)

    async def turn(job_id: str) -> int:
        first = (await session.platform.events(job_id))[0]
        assert isinstance(first, e.JobSubmitted) and first.turn is not None
        return first.turn.number

    numbers = {job: await turn(job) for job in jobs}
    ordered = sorted(jobs, key=numbers.__getitem__)
    assert sorted(numbers.values()) == [*range(1, 51)]
    await session.ran_in_order(*ordered)


async def test_jobs_of_other_sessions_and_of_none_do_not_wait(session: Session):
    await session.submit("j1", held=True)
    await session.running("j1")
    await session.submit("k1", session="s2")
    await session.platform.publish({"agent": "talker", "input": "I am p .", "job_id": "p"})

    assert (await session.platform.wait_for("k1")).status is Status.COMPLETED
    assert (await session.platform.wait_for("p")).status in TERMINAL
    session.gates["j1"].set()


async def test_a_cancelled_waiting_job_ends_and_its_successor_waits_on(session: Session):
    await session.submit("j1", held=True)
    await session.running("j1")
    await session.submit("j2")
    await session.waiting("j2")
    await session.submit("j3")
    await session.waiting("j3")

    await session.platform.signal("j2", type="cancel")

    assert (await session.platform.wait_for("j2")).status is Status.CANCELLED
    await session.waiting("j3")
    session.gates["j1"].set()
    assert (await session.platform.wait_for("j3")).status is Status.COMPLETED
    await session.ran_in_order("j1", "j3")
    assert "j2" not in session.asked


async def test_a_cancel_before_its_submission_ends_a_waiting_job(session: Session):
    async def signals_are_handled() -> bool:
        consumer = await session.platform.bus.js.consumer_info("SIGNALS", "router")
        return consumer.num_pending == consumer.num_ack_pending == 0

    await session.submit("j1", held=True)
    await session.running("j1")
    await session.platform.signal("j2", type="cancel", reason="never mind", by="ann")
    await until(signals_are_handled, why="the router has handled the cancel")

    await session.submit("j2")

    assert (await session.platform.wait_for("j2")).status is Status.CANCELLED
    assert session.asked == ["j1"]
    session.gates["j1"].set()
    assert (await session.platform.wait_for("j1")).status is Status.COMPLETED


async def test_another_signal_does_not_start_a_job_before_its_turn(session: Session):
    await session.submit("j1", held=True)
    await session.running("j1")
    await session.submit("j2")
    await session.waiting("j2")

    await session.platform.signal("j2", type="budget", budget_usd="0.05")
    await session.submit("j3")
    await session.waiting("j3")
    assert session.asked == ["j1"]

    session.gates["j1"].set()
    await session.platform.wait_for("j3")
    [raised] = await session.platform.events_of("j2", e.BudgetRaised)
    assert str(raised.budget_usd) == "0.05"
    await session.ran_in_order("j1", "j2", "j3")


async def test_a_refused_job_between_two_turns_changes_no_order(session: Session):
    await session.submit("j1", held=True)
    await session.running("j1")
    await session.submit("j2", budget_usd="0")
    assert (await session.platform.wait_for("j2")).status is Status.FAILED
    await session.submit("j3")
    await session.waiting("j3")

    session.gates["j1"].set()

    assert (await session.platform.wait_for("j3")).status is Status.COMPLETED
    await session.ran_in_order("j1", "j3")


async def test_a_failed_or_cancelled_job_wakes_its_successor(session: Session):
    await session.submit("j1", held=True)
    await session.running("j1")
    await session.submit("j2", held=True)
    await session.waiting("j2")
    await session.submit("j3")
    await session.waiting("j3")

    await session.platform.signal("j1", type="cancel")
    await session.running("j2")
    assert (await session.platform.wait_for("j1")).status is Status.CANCELLED
    await session.platform.signal("j2", type="cancel")

    assert (await session.platform.wait_for("j3")).status is Status.COMPLETED


async def test_an_unwaiting_job_is_refused_by_a_busy_session(session: Session):
    await session.submit("j1", held=True)
    await session.running("j1")
    await session.submit("j2", when_busy="refuse")

    refused = await session.platform.wait_for("j2")
    assert refused.error is not None and refused.error.code == "session_busy"
    session.gates["j1"].set()
    await session.platform.wait_for("j1")
    # The end is in the log, whatever the tables know of it by now.
    await session.submit("j3", when_busy="refuse")
    assert (await session.platform.wait_for("j3")).status is Status.COMPLETED


async def test_a_job_that_interrupts_cancels_all_before_it_and_runs(session: Session):
    await session.submit("j1", held=True)
    await session.running("j1")
    await session.submit("j2")
    await session.waiting("j2")

    await session.submit("j3", when_busy="interrupt")

    assert (await session.platform.wait_for("j3")).status is Status.COMPLETED
    ended = [await session.platform.wait_for(job) for job in ("j1", "j2")]
    assert [(job.status, job.reason) for job in ended] == [(Status.CANCELLED, "interrupted by job j3")] * 2
    assert session.asked == ["j1", "j3"]


async def test_a_busy_session_is_not_forgotten_and_an_idle_one_is(session: Session):
    bus = session.platform.bus
    await session.submit("j1", held=True)
    await session.running("j1")

    with pytest.raises(Refused) as busy:
        await bus.ask(DeleteSession(tenant=session.platform.tenant, session_id="s1"), SessionDeleted)
    session.gates["j1"].set()
    await session.platform.wait_for("j1")
    deleted = await bus.ask(DeleteSession(tenant=session.platform.tenant, session_id="s1"), SessionDeleted)

    assert (busy.value.code, busy.value.status, deleted.deleted) == ("session_busy", 409, True)
    await session.submit("j2")
    await session.platform.wait_for("j2")
    first = (await session.platform.events("j2"))[0]
    assert isinstance(first, e.JobSubmitted)
    assert first.turn == Turn(number=1)


@pytest.mark.asyncio(loop_scope="function")
async def test_too_many_waiting_jobs_of_one_session_are_refused(own_session: Session):
    session = own_session
    await session.platform.stop("router")
    await session.platform.start("router", router=RouterSettings(turns_waiting_max=2))
    await session.submit("j1", held=True)
    await session.running("j1")
    await session.submit("j2")
    await session.waiting("j2")
    await session.submit("j3")

    refused = await session.platform.wait_for("j3")

    assert refused.error is not None and refused.error.code == "session_full"
    session.gates["j1"].set()
    await session.platform.wait_for("j2")


@pytest.mark.asyncio(loop_scope="function")
async def test_a_job_whose_submission_was_lost_fails_and_the_next_runs(
    own_session: Session, monkeypatch: pytest.MonkeyPatch
):
    session = own_session
    platform, begin = session.platform, JobLog.begin
    lost = True

    async def dying(log: JobLog, *args: Any, **more: Any) -> Any:
        if log.job_id == "j2" and lost:
            raise Retry("the router is gone", after_s=60)
        return await begin(log, *args, **more)

    monkeypatch.setattr(JobLog, "begin", dying)
    await session.submit("j1", held=True)
    await session.running("j1")
    await session.submit("j2")

    async def turns() -> bool:
        return (await session.state()).turns == 2

    await until(turns, why="j2 has its turn")
    await session.submit("j3")
    await session.waiting("j3")
    session.gates["j1"].set()
    await platform.wait_for("j1")
    [upkeep] = [part for part in platform.services["router"].parts if isinstance(part, TurnUpkeep)]
    monkeypatch.setattr(upkeep, "_within_s", 0.0)

    assert await upkeep.end_lost() == 0
    lost = False
    await platform.bus.js.purge_stream("SUBMIT")
    assert await upkeep.end_lost() == 1

    error = (await platform.wait_for("j2")).error
    assert error is not None and error.code == "submission_lost"
    assert (await platform.wait_for("j3")).status is Status.COMPLETED
    assert session.asked == ["j1", "j3"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(module_platform: Platform, shared_chat: ChatServer) -> None:
    """What the tests over HTTP need beside the other services."""
    await module_platform.start("tracing", "gateway")


@pytest_asyncio.fixture(loop_scope="module")
async def http(gateway: None, session: Session) -> httpx2.AsyncClient:
    return await http_with_key(session.platform)


async def until_paid(http: httpx2.AsyncClient, *jobs: str) -> None:
    """Wait until tracing has read what jobs cost."""

    async def known() -> bool:
        costs = (await http.get("/v1/costs", params={"group_by": "job"})).json()
        return {row["group"]["job"] for row in costs["rows"]} >= {*jobs}

    await until(known, why=f"the costs of {jobs} are read")


async def test_a_session_is_shown_over_http_with_what_its_turns_cost(session: Session, http: httpx2.AsyncClient):
    platform = session.platform
    await platform.bus.ask(PutModel(tenant=platform.tenant, card=PRICED), ModelCard)
    for job in ("j1", "j2"):
        await session.submit(job, session="a/b c")
        await platform.wait_for(job)
    await session.submit("k1", held=True)
    await session.running("k1")
    await until_paid(http, "j1", "j2")

    listed = (await http.get("/v1/sessions", params={"agent": "talker"})).json()
    shown = (await http.get("/v1/sessions/a%2Fb%20c", params={"limit": 1})).json()
    older = (await http.get("/v1/sessions/a%2Fb%20c", params={"cursor": shown["next_cursor"]})).json()
    busy = (await http.get("/v1/sessions/s1")).json()
    missing = await http.get("/v1/sessions/none")

    assert [(one["session_id"], one["turns"]) for one in listed["sessions"]] == [("s1", 1), ("a/b c", 2)]
    assert [(turn["number"], turn["after"], turn["job"]["job_id"]) for turn in shown["page"]] == [(2, "j1", "j2")]
    assert [(turn["number"], turn["job"]["status"]) for turn in older["page"]] == [(1, "completed")]
    assert older["page"][0]["job"]["usage"]["input"] > 0
    assert [Decimal(one["page"][0]["job"]["cost_usd"]) > 0 for one in (shown, older)] == [True, True]
    assert (busy["busy_with"], shown["busy_with"], missing.status_code) == ("k1", None, 404)
    session.gates["k1"].set()


async def test_a_session_is_shown_with_its_cost_and_cached_share(session: Session, http: httpx2.AsyncClient):
    platform = session.platform
    await platform.bus.ask(PutModel(tenant=platform.tenant, card=PRICED), ModelCard)
    await session.submit("j1")
    await platform.wait_for("j1")
    await http.delete("/v1/sessions/s1")
    for job in ("j2", "j3"):
        await session.submit(job)
        await platform.wait_for(job)

    await until_paid(http, "j1", "j2", "j3")

    found = (await http.get("/v1/sessions/s1")).json()

    jobs = [turn["job"] for turn in found["page"]]
    assert [job["job_id"] for job in jobs] == ["j3", "j2"]
    assert all(Decimal(job["cost_usd"]) > 0 for job in jobs)
    assert Decimal(found["cost_usd"]) == sum(Decimal(job["cost_usd"]) for job in jobs)
    cached, sent = [sum(job["usage"][name] for job in jobs) for name in ("cache_read", "input")]
    assert found["cache_read_share"] == round(cached / sent, 6)


async def test_the_gateway_refuses_what_a_busy_session_would_refuse(session: Session, http: httpx2.AsyncClient):
    await session.submit("j1", held=True)
    await session.running("j1")
    body = {"agent": "talker", "input": "I am j2 .", "session_id": "s1", "options": {"when_busy": "refuse"}}

    refused = await http.post("/v1/jobs", json=body)
    kept = await http.delete("/v1/sessions/s1")
    session.gates["j1"].set()
    await session.platform.wait_for("j1")
    accepted = await http.post("/v1/jobs", json=body)
    forgotten = await http.delete("/v1/sessions/other")

    assert (refused.status_code, refused.json()["code"]) == (409, "session_busy")
    assert (kept.status_code, kept.json()["code"]) == (409, "session_busy")
    assert (accepted.status_code, forgotten.status_code) == (202, 404)
