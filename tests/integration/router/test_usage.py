"""What ended jobs used becomes an average that newer jobs move, and that is forgotten when nobody has moved it."""

from __future__ import annotations

from datetime import timedelta

from wayline.contracts.budgets import JobUse, ModelUse
from wayline.contracts.events import Observed, ToolsObserved
from wayline.router.routes.agent_averages import BELIEVED_FOR, JOBS_MIN, AgentAverages, AgentUsage

from .conftest import NOON, TENANT, Office

AGENT, MODEL = "assistant", "a/thinker"


def use(output: int, *, calls: int = 1, tools: int = 2, agent: str = AGENT, density: float | None = None) -> JobUse:
    one = ModelUse(
        model=MODEL,
        slot="reasoning",
        calls=calls,
        output_tokens=output * calls,
        longest_tokens=output,
        density=density,
    )
    return JobUse(agent=agent, tools=tools, tools_tokens=tools * 100, models=(one,))


async def learn(office: Office, *used: JobUse, at=NOON) -> AgentAverages:
    """Learn from each job on its own, and read what is known then."""
    for one in used:
        usage = AgentUsage(office.store, every_s=5)
        usage.note(TENANT, one)
        await usage.write(now=at)
    return await AgentUsage(office.store, every_s=5).agent_averages(TENANT, AGENT, now=at)


async def test_the_averages_of_equal_jobs_are_those_jobs(office: Office):
    known = await learn(office, *[use(400, calls=2)] * 40)

    assert known.tools == ToolsObserved(count=2, tokens=200)
    assert [(one.model, one.slot, one.jobs, one.calls, one.output_tokens) for one in known.observed] == [
        (MODEL, "reasoning", 40, 2, 400)
    ]
    assert 400 <= known.observed[0].longest_tokens < 800, "a few deviations above, which shrink as nothing deviates"


async def test_newer_jobs_move_the_average_and_batches_count_each_job(office: Office):
    before = (await learn(office, *[use(400)] * 10)).observed[0]
    after = (await learn(office, *[use(2_000)] * 60)).observed[0]
    usage = AgentUsage(office.store, every_s=5)
    for _ in range(60):
        usage.note(TENANT, use(100))
    await usage.write(now=NOON)
    [batch] = (await usage.agent_averages(TENANT, AGENT, now=NOON)).observed

    assert before.output_tokens == 400 and 1_800 < after.output_tokens <= 2_000
    assert batch.jobs == 130 and 100 < batch.output_tokens < 700


async def test_how_dense_prompts_are_counted_is_learned_of_each_model(office: Office):
    [unseen] = (await learn(office, *[use(400)] * JOBS_MIN)).observed
    [first] = (await learn(office, use(400, density=1.4), use(400))).observed
    [moved] = (await learn(office, *[use(400, density=2.0)] * 60)).observed

    assert (unseen.density, first.density) == (None, 1.4)
    assert moved.density is not None and 1.9 < moved.density <= 2.0


async def test_too_few_jobs_say_only_how_large_the_tools_are(office: Office):
    few = await learn(office, *[use(400)] * (JOBS_MIN - 1), use(9, agent="critic"))

    assert few == AgentAverages((), ToolsObserved(count=2, tokens=200))
    assert len((await learn(office, use(400, tools=43))).observed) == 1
    assert (await AgentUsage(office.store, every_s=5).agent_averages(TENANT, AGENT, now=NOON)).tools == ToolsObserved(
        count=43, tokens=4_300
    )


async def test_observations_older_than_a_week_are_forgotten(office: Office):
    await learn(office, *[use(9_000)] * 5)
    later = NOON + BELIEVED_FOR + timedelta(seconds=1)

    assert await AgentUsage(office.store, every_s=5).agent_averages(TENANT, AGENT, now=later) == AgentAverages()
    again = await learn(office, *[use(100)] * JOBS_MIN, at=later)
    assert [(one.jobs, one.output_tokens) for one in again.observed] == [(JOBS_MIN, 100)]
    assert isinstance(again.observed[0], Observed)


async def test_another_tenants_jobs_are_not_seen(office: Office):
    usage = AgentUsage(office.store, every_s=5)
    for _ in range(JOBS_MIN):
        usage.note("other", use(400))
    await usage.write(now=NOON)

    assert await usage.agent_averages(TENANT, AGENT, now=NOON) == AgentAverages()
    assert len((await usage.agent_averages("other", AGENT, now=NOON)).observed) == 1
