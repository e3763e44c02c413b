"""The newest run of each user and agent: one row, whatever order submissions and settlements come in."""

from __future__ import annotations

import asyncio
import random
from decimal import Decimal

import pytest

from wayline.contracts.errors import NotFound
from wayline.contracts.jobs import Failure, GetLatestRun, JobView, Outcome, RunResult, Status
from wayline.router.admission.conditions import AdmissionRequest
from wayline.router.jobs.handlers.results import ResultHandlers
from wayline.router.jobs.result_table import ResultTable

from .conftest import TENANT, Office, Offices

SUBMITS = 200


async def begin(
    office: Office, job_id: str, number: int, *, user: str | None = "ann", agent: str = "assistant"
) -> None:
    accepted = (1_000 + number, number)
    assert await office.admissions.admit(
        TENANT, AdmissionRequest(job_id, agent, user, accepted=accepted if user else None)
    )


def ended(job_id: str, answer: str, *, user: str = "ann", agent: str = "assistant") -> RunResult:
    view = JobView(
        job_id=job_id, status=Status.COMPLETED, agent=agent, user_id=user, answer=answer, cost_usd=Decimal("0.01")
    )
    result = RunResult.of(view)
    assert result is not None
    return result


async def latest(office: Office, *, user: str = "ann", agent: str = "assistant") -> RunResult:
    return await ResultHandlers(ResultTable(office.store)).on_get_latest(
        GetLatestRun(tenant=TENANT, agent=agent, user_id=user)
    )


async def rows(office: Office) -> int:
    return await office.store.fetchval(TENANT, "SELECT count(*) FROM latest_results")


async def test_of_many_concurrent_submits_the_newest_accepted_wins(offices: Offices):
    routers = [await offices() for _ in range(3)]
    numbers = list(range(SUBMITS))
    random.Random(7).shuffle(numbers)

    await asyncio.gather(*(begin(routers[n % 3], f"j{n}", n) for n in numbers))

    assert (await latest(routers[0])).job_id == f"j{SUBMITS - 1}"
    assert await rows(routers[0]) == 1


async def test_a_run_begins_with_no_outcome_of_the_one_before(office: Office):
    results = ResultTable(office.store)
    await begin(office, "j1", 1)
    await results.end(TENANT, ended("j1", "first"))
    assert (await latest(office)).outcome == Outcome(answer="first")

    await begin(office, "j2", 2)

    found = await latest(office)
    assert (found.job_id, found.status, found.outcome, found.ended_at) == ("j2", Status.QUEUED, None, None)
    assert (found.plan, found.metadata.cost_usd) == (None, None)


async def test_settlements_in_any_order_change_only_their_own_run(office: Office):
    results = ResultTable(office.store)
    await begin(office, "j1", 1)
    await begin(office, "j2", 2)

    await results.end(TENANT, ended("j2", "second"))
    await results.end(TENANT, ended("j1", "first, and late"))
    await results.end(TENANT, ended("j2", "second, told once more"))

    found = await latest(office)
    assert (found.job_id, found.outcome) == ("j2", Outcome(answer="second"))
    assert found.ended_at is not None


async def test_an_older_submission_admitted_later_replaces_nothing(office: Office):
    await begin(office, "newer", 2)
    await begin(office, "older", 1)

    assert (await latest(office)).job_id == "newer"


async def test_a_job_that_is_submitted_again_replaces_nothing(office: Office):
    """Whether it is the newest itself, or another run has begun since."""
    await begin(office, "j1", 1)
    await ResultTable(office.store).end(TENANT, ended("j1", "done"))
    await begin(office, "j1", 5)
    assert (await latest(office)).outcome == Outcome(answer="done")

    await begin(office, "j2", 6)
    await begin(office, "j1", 7)
    assert (await latest(office)).job_id == "j2"


async def test_each_user_of_each_agent_has_a_row(office: Office):
    await asyncio.gather(
        begin(office, "j1", 1), begin(office, "j2", 2, user="bob"), begin(office, "j3", 3, agent="critic")
    )

    assert (await latest(office)).job_id == "j1"
    assert (await latest(office, user="bob")).job_id == "j2"
    assert (await latest(office, agent="critic")).job_id == "j3"
    with pytest.raises(NotFound):
        await latest(office, user="bob", agent="critic")


async def test_one_statement_admits_and_without_user_there_is_no_row(office: Office):
    office.statements.clear()
    await begin(office, "j1", 1)
    await begin(office, "j2", 2, user=None)

    assert len(office.statements) == 2
    assert await rows(office) == 1


async def test_an_outcome_is_kept_as_a_table_takes_it(office: Office):
    await begin(office, "j1", 1)
    view = JobView(
        job_id="j1",
        status=Status.FAILED,
        agent="assistant",
        user_id="ann",
        answer="a" * 100_000,
        error=Failure(code="odd", message="a \0 byte"),
    )

    await ResultTable(office.store).end(TENANT, RunResult.of(view))

    outcome = (await latest(office)).outcome
    assert outcome is not None and outcome.answer is not None
    assert (len(outcome.answer), outcome.cut) == (65_536, True)
    assert outcome.error == Failure(code="odd", message="a \ufffd byte")
