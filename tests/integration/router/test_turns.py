"""The order of a session's jobs is the order of its row, however many routers admit them at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from decimal import Decimal

from wayline.contracts.jobs import Turn, WhenBusy
from wayline.router.admission.admission_table import AdmissionTable
from wayline.router.admission.conditions import AdmissionRequest, Admitted
from wayline.router.sessions.turn_upkeep import KEPT_DAYS

from .conftest import TENANT, Office, Offices


async def take(
    office: Office, job_id: str, session: str | None = "s1", *, when_busy: WhenBusy = "wait", agent: str = "assistant"
) -> Admitted:
    request = AdmissionRequest(job_id, agent, session_id=session, when_busy=when_busy)
    admitted = await office.admissions.admit(TENANT, request)
    assert admitted is not None
    return admitted


async def end(office: Office, *job_ids: str) -> None:
    await office.store.fetch(TENANT, office.store.sql.end_turns, TENANT, [*job_ids])


async def test_each_job_comes_after_the_one_before_and_keeps_its_turn(office: Office):
    first, second = await take(office, "j1"), await take(office, "j2", agent="critic")
    again, other, plain = await take(office, "j1"), await take(office, "k1", "s2"), await take(office, "p", None)

    assert (first.turn, first.open_job) == (Turn(number=1), None)
    assert (second.turn, second.open_job) == (Turn(number=2, after="j1"), "j1")
    assert again.turn == first.turn
    assert (other.turn, plain.turn) == (Turn(number=1), None)


async def test_an_ended_job_leaves_its_session_idle_and_stays_its_last(office: Office):
    await take(office, "j1")
    await end(office, "j1")

    second = await take(office, "j2")

    assert (second.turn, second.open_job) == (Turn(number=2, after="j1"), None)


async def test_a_job_that_does_not_wait_gets_no_busy_sessions_turn(office: Office):
    await take(office, "j1")

    refused = await take(office, "j2", when_busy="refuse")
    third = await take(office, "j3")
    await end(office, "j1", "j3")
    idle = await take(office, "j4", when_busy="refuse")

    assert (refused.turn, refused.open_job) == (None, "j1")
    assert (third.turn, idle.turn) == (Turn(number=2, after="j1"), Turn(number=3, after="j3"))


async def test_a_session_takes_no_more_waiting_jobs_than_its_limit(office: Office):
    office.admissions = AdmissionTable(office.store, job_budget_usd=Decimal("0.10"), turns_waiting_max=2)
    taken = [await take(office, f"j{n}") for n in range(3)]
    await end(office, "j0")
    later = await take(office, "j3")

    assert [one.turn.number if one.turn else None for one in (*taken, later)] == [1, 2, None, 3]


async def test_two_hundred_concurrent_submits_keep_one_order_over_three_routers(offices: Offices):
    routers = [await offices() for _ in range(3)]
    jobs = [f"j{n}" for n in range(200)]

    # Each job comes to two routers, as a redelivery does; a second session is between them in every batch.
    taken = await asyncio.gather(
        *(take(routers[n % 3], job, "s1" if n % 4 else "s2") for n, job in enumerate(jobs)),
        *(take(routers[(n + 1) % 3], job, "s1" if n % 4 else "s2") for n, job in reversed([*enumerate(jobs)])),
    )

    turns = {job: admitted.turn for job, admitted in zip(jobs, taken[:200], strict=True)}
    assert turns == {job: admitted.turn for job, admitted in zip(reversed(jobs), taken[200:], strict=True)}
    for session, size in (("s1", 150), ("s2", 50)):
        chained(turns, [job for n, job in enumerate(jobs) if ("s1" if n % 4 else "s2") == session], size)


async def test_two_hundred_concurrent_submits_to_one_session_keep_one_order(offices: Offices):
    routers = [await offices() for _ in range(3)]
    jobs = [f"j{n}" for n in range(200)]

    taken = await asyncio.gather(
        *(take(routers[n % 3], job) for n, job in enumerate(jobs)),
        *(take(routers[(n + 1) % 3], job) for n, job in reversed([*enumerate(jobs)])),
    )

    turns = {job: admitted.turn for job, admitted in zip(jobs, taken[:200], strict=True)}
    assert turns == {job: admitted.turn for job, admitted in zip(reversed(jobs), taken[200:], strict=True)}
    chained(turns, jobs, 200)


def chained(turns: dict[str, Turn | None], jobs: Sequence[str], size: int) -> None:
    ordered = sorted(jobs, key=lambda job: turns[job].number)  # type: ignore[union-attr]
    assert [turns[job] for job in ordered] == [
        Turn(number=n + 1, after=ordered[n - 1] if n else None) for n in range(size)
    ]


async def test_jobs_of_a_forgotten_session_take_no_second_turn(office: Office):
    await take(office, "j1")
    [busy] = await office.store.fetch(TENANT, office.store.sql.forget_session, TENANT, "s1")
    await end(office, "j1")
    [idle] = await office.store.fetch(TENANT, office.store.sql.forget_session, TENANT, "s1")
    [gone] = await office.store.fetch(TENANT, office.store.sql.forget_session, TENANT, "s1")

    again, anew = await take(office, "j1"), await take(office, "j2")

    assert [tuple(row) for row in (busy, idle, gone)] == [(False, "j1"), (True, None), (False, None)]
    assert (again.turn, anew.turn) == (Turn(number=1), Turn(number=1))


async def test_a_job_without_a_session_takes_no_lock_or_row(office: Office):
    await asyncio.gather(*(take(office, f"p{n}", None) for n in range(20)))

    assert await office.store.fetchval(TENANT, "SELECT count(*) FROM session_turns") == 0
    assert await office.store.fetchval(TENANT, "SELECT count(*) FROM sessions") == 0


async def test_turns_are_forgotten_with_the_logs_and_not_before(office: Office):
    for job_id, days in (("old", 32), ("late", 30), ("new", 0)):
        await take(office, job_id)
        aged = f"UPDATE session_turns SET taken_at = now() - interval '{days} days' WHERE job_id = $1"
        await office.store.execute(TENANT, aged, job_id)

    async with office.store.system() as conn:
        assert await conn.fetchval(office.store.sql.forget_turns, KEPT_DAYS, 10) == 1

    rows = await office.store.fetch(TENANT, "SELECT job_id FROM session_turns ORDER BY number")
    assert [row["job_id"] for row in rows] == ["late", "new"]
    assert (await take(office, "next")).turn == Turn(number=4, after="new")
