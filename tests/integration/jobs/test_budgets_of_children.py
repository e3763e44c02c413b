"""A job and all that it starts share its budget, and every budget counts each of their calls once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal

import pytest
import pytest_asyncio

from wayline.chassis import Bus
from wayline.client import Address, Client
from wayline.contracts import ids
from wayline.contracts.budgets import Budget, BudgetConfig, BudgetList, ListBudgets, PutBudget
from wayline.contracts.events import JobParked
from wayline.contracts.jobs import Status
from wayline.contracts.models import ModelCard, Prices, PutModel, Rates
from wayline.contracts.money import cost_sum
from wayline.executor.adapters.children import Children
from wayline.executor.perform import children, follow_up
from wayline.executor.perform.follow_up import FollowUp
from wayline.journal import Head, Job, have_ended, send_result
from wayline.router.jobs.families import Families
from wayline.router.settings import Settings as RouterSettings
from wayline.standalone.terminal.family_views import read_family
from wayline.testkit import Platform, until

from .conftest import make_key
from .ended_jobs import differences
from .families import ChatServer, Family, Model, ask, calls, executor_settings, new_family, says

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

RATES = Rates(input=Decimal(0), output=Decimal(10))
CARD = ModelCard(
    provider="chat", model="m", tier="standard", output_limit=3_000, prices=Prices(rates=RATES, source="a test")
)
"""A call costs $0.03 at most, and a cent for each thousand words."""

MISCOUNTED = """
SELECT one.job_id, one.children_usd, sum(below.settled_usd + below.unsettled_usd) AS below
FROM router.reservations AS one
LEFT JOIN router.reservations AS below ON one.job_id = ANY (below.ancestors) AND one.tenant = below.tenant
WHERE one.tenant = $1
GROUP BY one.job_id, one.children_usd
HAVING one.children_usd <> coalesce(sum(below.settled_usd + below.unsettled_usd), 0)
"""
"""A tenant's jobs that count for those below them anything else than these cost."""


async def put_money(platform: Platform) -> None:
    """Give the tenant a model that costs, and a budget."""
    await platform.bus.ask(PutModel(tenant=platform.tenant, card=CARD), ModelCard)
    all_of_it = PutBudget(tenant=platform.tenant, name="all", config=BudgetConfig(limit_usd=Decimal(1)))
    await platform.bus.ask(all_of_it, Budget)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chat(module_platform: Platform) -> AsyncIterator[ChatServer]:
    """The model of services for all tests; over HTTP each shows a key."""
    async with ChatServer(Model().say) as chat:
        router = RouterSettings(chat_base_url=chat.url)
        await module_platform.start("router", "executor", "gateway", router=router, executor=executor_settings(chat))
        yield chat
        assert await differences(module_platform.bus) == []


@pytest_asyncio.fixture(loop_scope="module")
async def family(module_platform: Platform, chat: ChatServer) -> AsyncIterator[Family]:
    async with new_family(module_platform, chat) as family:
        await put_money(family.platform)
        yield family


def words(number: int, **more: object) -> dict[str, object]:
    return says(" ".join(["word"] * number), **more)


async def settled(family: Family) -> Budget:
    """Return the tenant's budget once nothing is held of it any more, and no job counts another's money wrongly."""

    async def read() -> Budget | None:
        [budget] = (await family.platform.bus.ask(ListBudgets(tenant=family.platform.tenant), BudgetList)).budgets
        return budget if budget.reserved_usd == 0 else None

    budget = await until(read, why="everything is settled")
    assert budget is not None
    async with family.platform.superuser() as conn:
        wrong = await conn.fetch(MISCOUNTED, family.platform.tenant)
    assert wrong == []
    return budget


async def test_a_jobs_total_is_its_own_cost_and_its_childrens(family: Family):
    inner = ask("boss", calls(ask("worker", words(1_000))), words(500))
    await family.submit("j1", calls(inner), words(100), budget_usd="0.10")

    job = await family.platform.wait_for("j1")

    budget = await settled(family)
    second = family.child("j1")
    third = family.child(second)
    costs = [(await family.platform.job(job_id)).money.cost_usd for job_id in ("j1", second, third)]
    assert costs == [Decimal("0.00101"), Decimal("0.00501"), Decimal("0.01")]
    assert job.cost_usd == costs[0]
    assert job.total_cost_usd == cost_sum(costs) == budget.spent_usd
    [named] = job.children
    assert named.cost_usd == Decimal("0.01501")


async def test_a_family_is_read_as_a_tree_with_its_cost(family: Family):
    inner = calls(ask("worker", says("42")))
    await family.submit("j1", calls(ask("boss", inner, says("a")), ask("worker", says("b"))), says("done"))
    await family.platform.wait_for("j1")
    key = await make_key(family.platform)

    async with Client(Address(f"http://127.0.0.1:{family.platform.http_port}", key)) as client:
        job = await client.job("j1")
        tree = await read_family(client, job)

    boss, worker = tree.children
    assert [one.job["job_id"] for one in tree] == [
        "j1",
        family.child("j1"),
        family.child(family.child("j1")),
        family.child("j1", call=2),
    ]
    assert ([len(one.children) for one in (boss, worker)], boss.job["status"]) == ([1, 0], "completed")
    assert Decimal(job["total_cost_usd"]) == sum(Decimal(one.job["cost_usd"]) for one in tree) > 0


async def test_the_parents_cap_stops_a_childs_call(family: Family):
    plan = [calls(ask("worker", words(n))) for n in (2_000, 1_999, 1_998)]
    await family.submit("j1", *plan, says("done"), budget_usd="0.05")

    job = await family.platform.wait_for("j1")

    budget = await settled(family)
    assert job.total_cost_usd is not None
    assert job.total_cost_usd == budget.spent_usd <= Decimal("0.05")
    costs = [one.cost_usd for one in job.children]
    assert costs[:2] == [Decimal("0.02"), Decimal("0.01999")]
    # The third may write as much as the others have left.
    assert costs[2] is not None and Decimal("0.009") < costs[2] < Decimal("0.01")


async def test_children_are_settled_before_their_parent_goes_on(family: Family, monkeypatch: pytest.MonkeyPatch):
    over = asyncio.Event()
    parked = FollowUp.parked

    async def park_late(self: FollowUp, tenant: str, head: Head, last: JobParked) -> None:
        await until(lambda: have_ended(family.platform.bus, tenant, last.waiting.children), why="the child to end")
        await parked(self, tenant, head, last)

    async def send_late(bus: Bus, job: Job) -> None:
        if ids.is_child(job.job_id):
            await over.wait()
        await send_result(bus, job)

    monkeypatch.setattr(FollowUp, "parked", park_late)
    monkeypatch.setattr(follow_up, "send_result", send_late)
    plan = [calls(ask("worker", words(n))) for n in (2_000, 1_999, 9)]
    await family.submit("j1", *plan, says("done"), budget_usd="0.05")

    job = await family.platform.wait_for("j1")
    over.set()

    assert [one.cost_usd for one in job.children] == [Decimal("0.02"), Decimal("0.01999"), Decimal("0.00009")]


async def test_children_at_once_never_spend_more_than_their_parents_cap(family: Family):
    several = calls(*(ask("worker", words(2_500 - n)) for n in range(6)))
    await family.submit("j1", several, says("done"), budget_usd="0.07")

    job = await family.platform.wait_for("j1")

    budget = await settled(family)
    assert job.total_cost_usd == budget.spent_usd
    assert Decimal("0.02") < budget.spent_usd <= Decimal("0.07")
    assert {one.status for one in job.children} == {Status.COMPLETED, Status.FAILED}


async def test_what_a_parent_held_is_free_for_its_child(family: Family):
    """The parent's own call held nearly all that there is: its child could not make one beside it."""
    await family.submit("j1", calls(ask("worker", words(100))), says("done"), budget_usd="0.031")

    job = await family.platform.wait_for("j1")

    assert [one.status for one in job.children] == [Status.COMPLETED]


async def test_a_child_may_spend_what_its_parent_may(family: Family):
    many = ask("worker", calls(("nothing", {"n": 1})), words(3_000))
    dear = CARD.model_copy(update={"output_limit": 14_000})
    await family.platform.bus.ask(PutModel(tenant=family.platform.tenant, card=dear), ModelCard)
    await family.platform.put_agent("worker", tools=(), model="chat/m", max_output_tokens=14_000)
    await family.submit("j1", calls(many), says("done"), budget_usd="0.50")

    job = await family.platform.wait_for("j1")

    assert [one.status for one in job.children] == [Status.COMPLETED]


async def test_a_child_that_outlives_its_parent_makes_no_more_calls(family: Family, monkeypatch: pytest.MonkeyPatch):
    """Its parent was cancelled and settled while it did not stop: its call is counted, and no other is granted."""
    monkeypatch.setattr(children, "STOP_WAIT_S", 0.5)

    async def nothing(*_: object, **__: object) -> dict[str, object]:
        return {}

    for lost in ("stop", "ended", "have_ended"):
        monkeypatch.setattr(Children, lost, nothing)
    monkeypatch.setattr(Families, "stop", nothing)
    inner = {**calls(ask("worker", words(100))), "text": "one moment", "hold": "work"}
    await family.submit("j1", calls(ask("boss", inner, words(200))), says("done"), budget_usd="0.10")
    await family.model.until_asked("work")
    await family.until_parked("j1")
    await family.platform.signal("j1", type="cancel", reason="enough")
    parent = await family.platform.wait_for("j1")
    assert (parent.status, parent.total_cost_usd) == (Status.CANCELLED, None)

    async def parent_is_settled() -> bool:
        async with family.platform.superuser() as conn:
            state = "SELECT state = 'settled' FROM router.reservations WHERE tenant = $1 AND job_id = 'j1'"
            return bool(await conn.fetchval(state, family.platform.tenant))

    await until(parent_is_settled, why="the parent is settled")
    monkeypatch.undo()
    family.model.holds["work"].set()

    below = await family.platform.wait_for(family.child("j1"))
    assert (below.status, below.partial) == (Status.COMPLETED, True)
    budget = await settled(family)
    second = family.child("j1")
    third = family.child(second)
    costs = [(await family.platform.job(job_id)).money.cost_usd for job_id in ("j1", second, third)]
    assert costs == [Decimal("0.00001"), Decimal("0.00002"), 0]
    assert budget.spent_usd == cost_sum(costs)
