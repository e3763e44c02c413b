"""A cancel may come at every event of a job, before it is stored or after: the job ends, and leaves nothing open."""

from __future__ import annotations

import asyncio
import base64
from collections import Counter
from collections.abc import AsyncIterator
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
import pytest_asyncio

from wayline.contracts import events as e
from wayline.contracts.budgets import Budget, BudgetConfig, PutBudget
from wayline.contracts.jobs import Cancel, Status
from wayline.contracts.models import ModelCard, Prices, PutModel, Rates
from wayline.contracts.tools import RUN_CODE
from wayline.journal import JobLog
from wayline.simulator.chat_server import Say, turns
from wayline.testkit import Platform, until
from wayline.testkit.walks import cases

from .stage import Stage, open_stage

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

KEYS = "one:" + base64.b64encode(b"k" * 32).decode()
READ, REPEATABLE, PAY = "effects__look_read", "effects__put_idempotent", "effects__pay_once"
PLANS: dict[str, tuple[Say, ...]] = {
    "calls": (
        Say(tools=((READ, {}), (REPEATABLE, {}), (PAY, {"amount": 1}))),
        Say(tools=((PAY, {"amount": 2}),)),
        Say(text="all done"),
    ),
    "program": (
        Say(tools=((RUN_CODE, {"code": f"await {READ}()\nawait {REPEATABLE}()\nawait {PAY}(amount=1)"}),)),
        Say(text="all done"),
    ),
}
AT_ONCE = 10
CARD = ModelCard(
    provider="chat", model="m", tier="standard", prices=Prices(rates=Rates(input=Decimal(1), output=Decimal(2)))
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(module_platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with open_stage(module_platform, tmp_path_factory.mktemp("effects"), snapshot_keys=KEYS) as stage:
        yield stage


@pytest.mark.parametrize("plan", PLANS)
async def test_a_job_cancelled_at_any_event_leaves_nothing_open(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, plan: str
):
    platform = await prepare(stage, *PLANS[plan])
    cancels: dict[str, tuple[int, str]] = {}
    act_at_appends(monkeypatch, platform, cancels)
    await platform.submit("whole", agent="careful", model="chat/m")
    whole = await platform.wait_for("whole")
    assert whole.status == Status.COMPLETED, whole.error
    last = len(await platform.events("whole"))

    moments = cases([*product(range(2, last + 1), ("before", "after"))], share=8)
    cancels |= {f"{moment}-{seq}": (seq, moment) for seq, moment in moments}
    for first in range(0, len(cancels), AT_ONCE):
        jobs = list(cancels)[first : first + AT_ONCE]
        await asyncio.gather(*(platform.submit(job, agent="careful", model="chat/m") for job in jobs))
        await asyncio.gather(*(platform.wait_for(job) for job in jobs))

    wrong = {job: found for job in cancels if (found := left_open(stage, await platform.events(job)))}
    assert not wrong, "\n".join(f"{job}: {found}" for job, found in wrong.items())
    await platform.wait_until_empty("RUN")
    ends = Counter([(await platform.job(job)).life.status for job in cancels])
    assert ends[Status.CANCELLED] > ends.total() / 2, ends
    await until_nothing_is_held(platform)


async def prepare(stage: Stage, *plan: Say) -> Platform:
    """Have the model follow a plan, for an agent that asks before each write, with money of a budget."""
    platform = await stage.play(turns(*plan))
    await platform.put_agent("careful", ask="writes", code=True, tools=["effects__*"])
    await platform.bus.ask(PutModel(tenant=platform.tenant, card=CARD), ModelCard)
    config = BudgetConfig(limit_usd=Decimal(100))
    await platform.bus.ask(PutBudget(tenant=platform.tenant, name="cap", config=config), Budget)
    return platform


def act_at_appends(monkeypatch: pytest.MonkeyPatch, platform: Platform, cancels: dict[str, tuple[int, str]]) -> None:
    """Cancel a job right before or after the record with its event is stored, and approve all that it asks."""
    append = JobLog.append

    async def acting(self: JobLog, events: Any, after: Any, **options: Any) -> Any:
        seq, moment = cancels.get(self.job_id, (0, ""))
        reached = events[0].seq <= seq <= events[-1].seq
        if reached and moment == "before":
            await platform.signal(self.job_id, Cancel(reason="enough"))
        head = await append(self, events, after, **options)
        if reached and moment == "after":
            await platform.signal(self.job_id, Cancel(reason="enough"))
        for event in events:
            if isinstance(event, e.ApprovalRequested):
                await platform.decide(self.job_id, event.approval_id)
        return head

    monkeypatch.setattr(JobLog, "append", acting)


def left_open(stage: Stage, events: list[e.Event]) -> list[str]:
    """Return what is open in the log of an ended job, or is done and not told there."""
    found = [event.type for event in events[:-1] if event.type in e.TERMINAL_TYPES]
    ended = {event.attempt_id for event in events if isinstance(event, e.ModelCompleted | e.ModelFailed)}
    found += [
        event.attempt_id for event in events if isinstance(event, e.ModelRequested) and event.attempt_id not in ended
    ]
    results = {(event.step, event.call): event for event in events if isinstance(event, e.ToolCompleted)}
    for event in events:
        if not isinstance(event, e.ToolRequested):
            continue
        result = results.get((event.step, event.call))
        told = None if result is None else result.error.message if result.error else "success"
        acted = stage.effects.count(event.tool.removeprefix("effects__"), event.key)
        lost = told == "success" and not acted and event.tool != RUN_CODE
        if told is None or acted > 1 or lost or ("had not begun" in told and acted):
            found.append(f"{event.key} of {event.tool} acted {acted} times: {told}")
    return found


async def until_nothing_is_held(platform: Platform) -> None:
    """Wait until no money is held for a job that has ended."""

    async def nothing() -> bool:
        async with platform.superuser() as conn:
            query = "SELECT count(*) FROM router.budget_holds WHERE tenant = $1"
            return await conn.fetchval(query, platform.tenant) == 0

    await until(nothing, why="nothing is held of the budget")
