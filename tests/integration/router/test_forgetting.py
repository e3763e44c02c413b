"""The walk over the stores: what comes late is erased in another round, and what nobody can erase is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from decimal import Decimal

import pytest

from wayline.contracts.errors import Reject, Unavailable
from wayline.contracts.forgetting import Erased, Forget
from wayline.router.admission.admission_table import AdmissionTable
from wayline.router.admission.conditions import AdmissionRequest
from wayline.router.agents.agent_table import AgentTable
from wayline.router.agents.bundled import bundled
from wayline.router.app import open_store
from wayline.router.forgetting import forget_table, saga
from wayline.router.forgetting.erasure_scope import ErasureScope
from wayline.router.forgetting.forget_table import ForgetTable
from wayline.router.forgetting.handlers import name_sha256
from wayline.router.forgetting.jobs_to_end import JobsToEnd
from wayline.router.forgetting.saga import Forgetter
from wayline.router.forgetting.stores import ErasableStore
from wayline.router.money.budget_table import BudgetTable
from wayline.store import Record, Store
from wayline.testkit import Platform, until

from .conftest import TENANT

ASKED = Forget(tenant=TENANT, user_id="ann", asked_by="a test")


class RowsOfUsers:
    """A store in memory, in which more may come after it was erased."""

    def __init__(self, *, comes_again: int = 0, away: int = 0) -> None:
        self.rows, self.late, self.away = Counter({"rows": 3}), comes_again, away

    async def count(self, _: ErasureScope, __: Iterable[str]) -> Erased:
        if self.away:
            self.away -= 1
            raise Unavailable("this store", detail="a test")
        return Erased(counts=dict(+self.rows))

    async def erase(self, _: ErasureScope) -> None:
        self.rows.clear()
        if self.late:
            self.late -= 1
            self.rows["rows"] = 1

    def named(self, name: str) -> ErasableStore:
        return ErasableStore(name, self.count, self.erase)


@pytest.fixture
async def store(platform: Platform) -> AsyncIterator[Store]:
    store = await open_store(await platform.migrate("router"))
    yield store
    await store.close()


async def forget(
    platform: Platform,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    *stores: ErasableStore,
    sweep_after_s: float = 60.0,
    jobs: Sequence[str] = ("j1",),
) -> Record:
    """Forget a user with settled jobs, whose logs are gone, and return the row once it is done."""
    for name in ("AGAIN_AFTER_S", "STOPPED_AFTER_S", "AWAY_AGAIN_S"):
        monkeypatch.setattr(saga, name, 0.0)
    await AgentTable(store).seed(bundled())
    for job_id in jobs:
        request = AdmissionRequest(job_id, "assistant", "ann")
        assert await AdmissionTable(store, job_budget_usd=Decimal(1)).admit(TENANT, request)
        await BudgetTable(store, job_budget_usd=Decimal(1)).settle(TENANT, job_id, Decimal(0))
    table = ForgetTable(store)
    forgetter = Forgetter(table, JobsToEnd(platform.bus), stores, sweep_after_s=sweep_after_s)
    row = await table.begin(ASKED, "forget_1", name_sha256=name_sha256(ASKED), look_after_s=0)

    async def done() -> Record | None:
        await forgetter.look()
        found = await table.get(TENANT, "forget_1")
        return found if found is not None and found["step"] == "done" else None

    assert row["step"] == "stopping"
    found = await until(done, why="all is forgotten")
    assert found is not None
    return found


async def test_what_comes_late_is_erased_in_another_round(
    platform: Platform, store: Store, monkeypatch: pytest.MonkeyPatch
):
    rows = RowsOfUsers(comes_again=3)

    done = await forget(platform, store, monkeypatch, rows.named("late"))

    [receipt] = await ForgetTable(store).receipt(TENANT, "forget_1")
    # Of the job and of the user, in the first round and the second: each was counted before it was erased.
    assert (done["round"], done["left_over"], receipt.counts) == (2, {}, {"rows": 3 + 1 + 1 + 1})
    assert rows.rows == Counter()
    await store.close()


async def test_what_stays_after_all_rounds_is_told(platform: Platform, store: Store, monkeypatch: pytest.MonkeyPatch):
    done = await forget(platform, store, monkeypatch, RowsOfUsers(comes_again=100).named("stubborn"))

    assert (done["round"], done["user_id"]) == (saga.ROUNDS_MAX, None)
    assert done["left_over"] == {"stubborn.rows": 2}
    await store.close()


async def test_what_was_sent_late_is_erased_once_more(
    platform: Platform, store: Store, monkeypatch: pytest.MonkeyPatch
):
    rows, table = RowsOfUsers(), ForgetTable(store)
    done = await forget(platform, store, monkeypatch, rows.named("late"), sweep_after_s=0)
    rows.rows["rows"] = 5
    before = await table.batches(done)

    await Forgetter(table, JobsToEnd(platform.bus), [rows.named("late")]).look()

    # Of the jobs alone: whose they were is forgotten by then. And so are they from now on.
    assert (before, rows.rows, await table.batches(done)) == ([(1, ("j1",))], Counter(), [])
    await store.close()


async def test_jobs_count_as_erased_batch_by_batch(platform: Platform, store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(saga, "BATCH_JOBS", 1)
    table, seen = ForgetTable(store), list[int]()

    async def erase(_: ErasureScope) -> None:
        row = await table.get(TENANT, "forget_1")
        assert row is not None
        seen.append(await table.jobs_erased(row))

    async def count(_: ErasureScope, __: Iterable[str]) -> Erased:
        return Erased()

    row = await forget(platform, store, monkeypatch, ErasableStore("rows", count, erase), jobs=("j1", "j2", "j3"))

    # Three batches, and what is of the user itself.
    assert (seen, await table.jobs_erased(row)) == ([0, 1, 2, 2], 3)


async def test_a_store_that_is_away_is_waited_for(platform: Platform, store: Store, monkeypatch: pytest.MonkeyPatch):
    away = RowsOfUsers(away=3)

    done = await forget(platform, store, monkeypatch, RowsOfUsers().named("here"), away.named("away"))

    assert (done["left_over"], away.rows, away.away) == ({}, Counter(), 0)
    await store.close()


async def test_the_same_request_is_one_while_it_is_under_way(store: Store, monkeypatch: pytest.MonkeyPatch):
    table, other = ForgetTable(store), ASKED.model_copy(update={"tenant": "acme"})

    monkeypatch.setattr(forget_table, "OPEN_MAX", 1)
    first = await table.begin(ASKED, "forget_1", name_sha256=name_sha256(ASKED), look_after_s=60)
    again = await table.begin(ASKED, "forget_2", name_sha256=name_sha256(ASKED), look_after_s=60)
    theirs = await table.begin(other, "forget_3", name_sha256=name_sha256(other), look_after_s=60)

    with pytest.raises(Reject, match="under way"):
        await table.begin(ASKED, "forget_4", name_sha256="of somebody else", look_after_s=60)

    assert [row["forget_id"] for row in (first, again, theirs)] == ["forget_1", "forget_1", "forget_3"]
    await store.close()


async def test_a_deleted_job_goes_with_the_one_that_read_it(store: Store):
    turn = (
        "INSERT INTO session_turns (tenant, job_id, session_id, number, taken_at, read_by)"
        " VALUES ($1, $2, 's', $3, now(), $4)"
    )
    for number, (job_id, reader) in enumerate((("said", "reader"), ("other", "another"), ("unread", None)), start=1):
        await store.execute(TENANT, turn, TENANT, job_id, number, reader)
    asked, table = Forget(tenant=TENANT, job_id="said", asked_by="a test"), ForgetTable(store)
    row = await table.begin(asked, "forget_1", name_sha256=name_sha256(asked), look_after_s=0)

    await table.list_jobs(row)

    assert {job.job_id for job in await table.jobs_to_stop(row, old_after_s=60)} == {"said", "reader"}
    await store.close()
