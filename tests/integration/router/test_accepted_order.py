"""The jobs of a session take their turns in the order in which the bus accepted them, whichever router handles them."""

from __future__ import annotations

from decimal import Decimal

import orjson
import pytest

from wayline.chassis import Delivery
from wayline.contracts.jobs import SubmitJob
from wayline.contracts.sessions import GetSession, SessionTurns
from wayline.router.admission.admission_table import AdmissionTable
from wayline.router.admission.conditions import AdmissionRequest
from wayline.router.admission.earlier_turns import EarlierTurn
from wayline.router.admission.read_submission import job_id_of
from wayline.router.sessions.accepted_order import AcceptedOrder
from wayline.testkit import Platform, until
from wayline.testkit.walks import seeds

from .order_of_turns import run_seed, turns


async def stored(
    platform: Platform, session: str | None, *, tenant: str = "default", job_id: str | None = None
) -> tuple[SubmitJob, Delivery]:
    """Store a submission that no router takes yet."""
    body = orjson.dumps({"agent": "assistant", "input": "go", "session_id": session, "job_id": job_id})
    ack = await platform.bus.js.publish(f"jobs.submit.{tenant}", body)
    job = SubmitJob(tenant=tenant, agent="assistant", input="go", session_id=session)
    return job, Delivery("SUBMIT", "router", ack.seq, 1, f"jobs.submit.{tenant}")


async def before(order: AcceptedOrder, job: SubmitJob, delivery: Delivery) -> list[int]:
    with order.handling(job, delivery):
        return [turn.sequence for turn in await order.before(job, delivery)]


async def test_an_older_submission_counts_until_it_leaves_the_stream(platform: Platform):
    first, second = AcceptedOrder(platform.bus), AcceptedOrder(platform.bus)
    older, newer = await stored(platform, "s1"), await stored(platform, "s1")
    assert await before(first, *older) == []

    assert await before(second, *newer) == [older[1].sequence], "another router has it in hand, or nobody"

    await platform.bus.js.delete_msg("SUBMIT", older[1].sequence)
    assert await before(second, *newer) == []


async def test_an_older_submission_whose_turn_is_taken_is_not_asked_for(platform: Platform):
    order = AcceptedOrder(platform.bus)
    older, newer = await stored(platform, "s1"), await stored(platform, "s1")
    with order.handling(*older):
        assert await before(order, *newer) == [older[1].sequence]

        order.taken("default", [older[1].sequence])

        assert await before(order, *newer) == []


async def test_a_stored_submission_has_the_turn_of_a_delivered_one(platform: Platform):
    body = {"agent": "a", "input": {"$claim": "x", "bytes": 9}, "session_id": "s1", "user_id": "u"}
    options = {"when_busy": "steer"}
    sent = orjson.dumps({**body, "options": options})
    await platform.bus.js.publish("jobs.submit.default", sent, headers={"Nats-Msg-Id": "mine"})
    await platform.bus.js.publish("jobs.submit.default", sent)
    job, last = await stored(platform, "s1")

    [named, derived] = await AcceptedOrder(platform.bus).before(job, last)

    assert (named.job_id, named.agent, named.user_id, named.when_busy, named.sequence) == ("mine", "a", "u", "steer", 1)
    consumer = await platform.bus.js.pull_subscribe("jobs.submit.*", stream="SUBMIT", durable="router")
    delivered = [Delivery.of(message) for message in await consumer.fetch(2, timeout=5)]
    assert derived.job_id == job_id_of(None, delivered[1])


async def test_other_sessions_tenants_and_broken_bodies_do_not_count(platform: Platform):
    await stored(platform, "s2")
    await stored(platform, None)
    await stored(platform, "s1", tenant="acme")
    for body in (b"{", b"[]", b'{"session_id": 4}', b'{"session_id": "s1", "agent": 3}'):
        await platform.bus.js.publish("jobs.submit.default", body)

    assert await before(AcceptedOrder(platform.bus), *await stored(platform, "s1")) == []


async def test_what_lies_before_a_submission_is_read_once(platform: Platform, monkeypatch):
    order, asked = AcceptedOrder(platform.bus), []
    request = platform.bus.request

    async def counting(subject: str, *args: object, **options: object) -> object:
        asked.append(subject)
        return await request(subject, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(platform.bus, "request", counting)
    for _ in range(20):
        await stored(platform, "other")
    assert await before(order, *await stored(platform, "s1")) == []
    first = len(asked)

    for n in range(10):
        assert await before(order, *await stored(platform, f"t{n}")) == []

    assert (first, len(asked) - first) == (20, 0)


@pytest.mark.parametrize("seed", seeds(50))
async def test_two_hundred_submissions_over_two_routers_keep_their_order(platform: Platform, seed: int):
    await platform.start("router")
    await platform.start("router")

    await run_seed(platform, seed)


async def test_a_submission_of_a_router_that_stands_still_keeps_its_place(platform: Platform):
    for n in range(3):
        await stored(platform, "s1", job_id=f"j{n}")
    consumer = await platform.bus.js.pull_subscribe("jobs.submit.*", stream="SUBMIT", durable="router")
    [taken] = await consumer.fetch(1, timeout=5)

    await platform.start("router")

    await platform.wait_until("j2", lambda job: job.life.waiting is not None, "it waits for its turn")
    assert await turns(platform, "s1") == ["j0", "j1", "j2"]
    await taken.nak()
    first = await platform.wait_until("j0", lambda job: job.life.submitted is not None, "it has begun")
    assert first.life.waiting is None


async def test_a_refused_second_submission_of_a_job_ends_no_turn(platform: Platform):
    await platform.start("router")
    for job in ("j0", "j1"):
        await platform.publish(orjson.dumps({"agent": "assistant", "input": "go", "job_id": job, "session_id": "s1"}))
    await platform.wait_until("j1", lambda job: job.life.waiting is not None, "it waits for its turn")
    await platform.wait_until("j0", lambda job: job.life.submitted is not None, "it has its log")

    await platform.publish(b'{"agent": "assistant", "input": "other", "job_id": "j0", "session_id": "s1"}')
    await platform.publish(b'{"agent": 3, "job_id": "j0"}')
    await platform.wait_until_empty("SUBMIT")

    session = await platform.bus.ask(GetSession(tenant="default", session_id="s1"), SessionTurns)
    assert session.busy_with == "j0"


async def test_a_turn_that_was_taken_for_a_refused_submission_ends(platform: Platform):
    await platform.start("router")
    await platform.publish(b'{"agent": "assistant", "input": "go", "job_id": "j0"}')
    await platform.wait_until_empty("SUBMIT")
    tables = AdmissionTable(await platform.store("router"), job_budget_usd=Decimal(1))
    earlier = EarlierTurn("j0", "s1", "assistant", None, "wait", sequence=2)
    await tables.admit("default", AdmissionRequest("j1", "assistant", session_id="s1", sequence=3, earlier=(earlier,)))

    await platform.publish(b'{"agent": "assistant", "input": "other", "job_id": "j0", "session_id": "s1"}')
    await platform.wait_until_empty("SUBMIT")

    session = await platform.bus.ask(GetSession(tenant="default", session_id="s1"), SessionTurns)
    assert session.busy_with == "j1"


async def test_an_end_that_nobody_noticed_refuses_no_older_submission(platform: Platform):
    await platform.start("router")
    await platform.publish(b'{"agent": "nobody", "input": "go", "job_id": "j0"}')
    await platform.wait_until_empty("SUBMIT")
    await platform.stop("router")
    tables = AdmissionTable(await platform.store("router"), job_budget_usd=Decimal(1))
    await tables.admit("default", AdmissionRequest("j0", "assistant", session_id="s1"))
    impatient = {"agent": "assistant", "input": "go", "session_id": "s1", "options": {"when_busy": "refuse"}}
    await platform.publish(orjson.dumps({**impatient, "job_id": "j1"}))
    await stored(platform, "s1", job_id="j2")
    consumer = await platform.bus.js.pull_subscribe("jobs.submit.*", stream="SUBMIT", durable="router")
    [taken] = await consumer.fetch(1, timeout=5)

    await platform.start("router")

    await platform.wait_until("j2", lambda job: job.life.waiting is not None, "it waits for its turn")
    await taken.nak()
    first = await platform.wait_until("j1", lambda job: job.life.submitted is not None, "it has begun")
    assert first.life.ended is None


async def test_a_broken_newer_submission_fails_no_older_job_without_log(platform: Platform):
    """Another router has the older one in hand while the broken one is refused here."""
    older = {"agent": "assistant", "input": "go", "job_id": "j1", "session_id": "s1"}
    await platform.publish(orjson.dumps(older))
    consumer = await platform.bus.js.pull_subscribe("jobs.submit.*", stream="SUBMIT", durable="router")
    [taken] = await consumer.fetch(1, timeout=5)
    told: list[bytes] = []

    async def hear(message) -> None:
        told.append(message.data)

    await platform.client.subscribe("_INBOX.refused", cb=hear)
    await platform.start("router")

    await platform.publish(b'{"agent": 3, "job_id": "j1"}', headers={"Wayline-Reply-To": "_INBOX.refused"})

    await until(lambda: told, why="its sender is told")
    assert orjson.loads(told[0])["job"]["status"] == "failed"
    assert await platform.events("j1") == []
    await taken.nak()
    job = await platform.wait_until("j1", lambda job: job.routing.route is not None, "the older one has its log")
    assert (job.life.submitted.agent, job.life.ended) == ("assistant", None)
