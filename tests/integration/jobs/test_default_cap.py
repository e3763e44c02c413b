"""What a job reaches at the cap that every job has, on Claude's models and prices, and that it never costs more."""

from __future__ import annotations

from collections.abc import AsyncIterator
from decimal import Decimal

import pytest
import pytest_asyncio

from wayline.contracts.agents import Routing
from wayline.contracts.events import JobRouted, ModelRequested
from wayline.contracts.jobs import JobOptions, PlanJob, Planned, SubmitJob
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.llm.output_room import ANSWER_TOKENS_MIN, THINKING_TOKENS_MIN
from wayline.router.routes.agent_averages import JOBS_MIN
from wayline.router.settings import Settings as RouterSettings
from wayline.routing import choose_again, current_policy
from wayline.simulator import Asked, Say, Script, Simulator, rounds
from wayline.testkit import Platform, until

from .conftest import with_tools
from .ended_jobs import differences
from .test_discovering import box, listing

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

PROOF = "Prove by induction that the sum of the first n odd numbers is n squared, and say where the proof would fail."
CAP = Decimal("0.10")
THOUGHT, ANSWER = "Let me see. " * 100, "The base case holds, and so does each step. " * 20
TOOLS = 43
ABOUT = "Look something up in one of the many tables of this system, by its key, and say what stands there. " * 4


async def plan(platform: Platform, agent: str, text: str, **options: object) -> Planned:
    job = SubmitJob(agent=agent, input=text, options=JobOptions.model_validate(options))
    return await platform.bus.ask(PlanJob(tenant=platform.tenant, job=job), Planned)


async def job_routed(platform: Platform, job_id: str) -> JobRouted:
    [event] = await platform.events_of(job_id, JobRouted)
    return event


async def with_claude(platform: Platform, script, *servers: dict[str, object]) -> Simulator:
    """Start the services on a provider of Claude's models that bills by its own prices."""
    simulator = await platform.simulate(script)
    await platform.start(
        *("router", "executor", "tool_registry"),
        router=RouterSettings(anthropic_base_url=simulator.url, usage_every_s=0.05),
        executor=ExecutorSettings(anthropic_base_url=simulator.url),
        tool_registry=with_tools(*servers),
    )
    return simulator


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def simulator(module_platform: Platform) -> AsyncIterator[Simulator]:
    """The provider of all tests whose registry has no tools but its own."""
    simulator = await with_claude(module_platform, lambda _: Say())
    yield simulator
    assert await differences(module_platform.bus) == []


async def play(platform: Platform, simulator: Simulator, script: Script) -> Platform:
    """Have Claude follow a script, for a tenant of the test's own with an agent that proves."""
    simulator.play(script)
    platform = await platform.new_tenant()
    await platform.put_agent("prover", routing=Routing(reasoning="reasoning").model_dump())
    return platform


async def test_a_proof_reaches_the_reasoning_slot_and_has_room_to_think(
    module_platform: Platform, simulator: Simulator
):
    platform = await play(module_platform, simulator, lambda _: Say(ANSWER, thinking=THOUGHT))
    planned = await plan(platform, "prover", PROOF)
    await platform.submit("j1", PROOF, agent="prover")
    ended = await platform.wait_for("j1")
    [asked] = await platform.events_of("j1", ModelRequested)

    assert (ended.status, ended.partial, ended.answer) == ("completed", False, ANSWER), ended
    assert ended.route is not None and planned.route is not None and planned.route.estimated_cost_range_usd is not None
    assert (ended.route.slot, ended.route.model) == ("reasoning", "claude-fable-5-2"), ended.route.reason
    assert planned.route == (await job_routed(platform, "j1")).route and planned.refusal is None
    [request] = simulator.requests
    assert asked.room_tokens is not None and asked.worst_usd is not None
    assert request.output_limit == asked.room_tokens >= ANSWER_TOKENS_MIN + THINKING_TOKENS_MIN
    assert asked.worst_usd <= CAP
    assert ended.cost_usd == simulator.bill.usd <= planned.route.estimated_cost_range_usd[1] == CAP


async def test_an_answer_cut_at_the_cap_stays_within_and_gives_advice(module_platform: Platform, simulator: Simulator):
    def fills(asked: Asked) -> Say:
        return Say("On and on", output_tokens=asked.output_limit, stop="max_tokens")

    platform = await play(module_platform, simulator, fills)
    await platform.submit("j1", PROOF, agent="prover")
    ended = await platform.wait_for("j1")

    assert (ended.status, ended.partial) == ("completed", True)
    assert ended.cost_usd == simulator.bill.usd <= CAP
    assert "options.budget_usd pays more" in (ended.reason or "")


async def test_demanding_work_with_tools_is_done_in_the_escalation_slot(
    module_platform: Platform, simulator: Simulator
):
    script = rounds(Say("Looking.", tools=(("get_current_time", {}),)), Say("They may have ten days."))
    platform = await play(module_platform, simulator, script)
    planned = await plan(platform, "assistant", "They want ten days more.", task_type="negotiation")
    await platform.submit("j1", "They want ten days more.", task_type="negotiation")
    ended = await platform.wait_for("j1")

    assert (ended.status, ended.answer) == ("completed", "They may have ten days.")
    assert planned.route is not None and ended.route is not None
    assert (planned.route.slot, ended.route.slot) == ("escalation", "escalation"), ended.route.reason
    assert [one.model for one in await platform.events_of("j1", ModelRequested)] == ["claude-opus-5-5"] * 2
    assert ended.cost_usd == simulator.bill.usd <= CAP


@pytest.mark.asyncio(loop_scope="function")
async def test_many_tools_end_no_job_and_count_in_later_plans(platform: Platform):
    async with box() as server:
        for n in range(TOOLS):
            server.mcp.add_tool(lambda key, where="here": f"{key} {where}", name=f"table_{n}", description=ABOUT)
        simulator = await with_claude(platform, lambda _: Say("A job is its log."), server.settings())
        await listing(platform, *(f"table_{n}" for n in range(TOOLS)))
        question = "What is a job in Wayline, and what happens to it when a process is killed?"
        before = await plan(platform, "assistant", question)

        await platform.submit("j1", question)
        ended = await platform.wait_for("j1")

        assert (ended.status, ended.answer) == ("completed", "A job is its log."), ended.error
        assert ended.route is not None and before.route is not None
        assert ended.route.name == before.route.name and before.refusal is None
        assert ended.cost_usd == simulator.bill.usd <= CAP
        [asked] = await platform.events_of("j1", ModelRequested)
        tools = next(part for part in asked.prefix if part.part == "tools")
        after: list[Planned] = []

        async def counted() -> bool:
            after[:] = [await plan(platform, "assistant", question)]
            return after[0].route.estimated_cost_usd != before.route.estimated_cost_usd

        await until(counted, why="the router has learned how large the tools are")
        await platform.submit("j2", question)
        await platform.wait_for("j2")
        routed = await job_routed(platform, "j2")
        assert routed.route == after[0].route
        assert routed.candidates.tools is not None
        assert (routed.candidates.tools.count, routed.candidates.tools.tokens) == (tools.count, tools.tokens)


async def test_predictions_rest_on_what_the_agents_jobs_used(module_platform: Platform, simulator: Simulator):
    platform = await play(module_platform, simulator, lambda _: Say("Proved.", output_tokens=40))
    guessed = (await plan(platform, "prover", PROOF)).route.estimated_cost_usd
    for n in range(JOBS_MIN):
        await platform.submit(f"j{n}", PROOF, agent="prover")
        await platform.wait_for(f"j{n}")
    tried: list[JobRouted] = []

    async def learned() -> bool:
        name = f"dry{len(tried)}"
        await platform.submit(name, PROOF, agent="prover", dry_run=True)
        await platform.wait_for(name)
        tried.append(await job_routed(platform, name))
        return bool(tried[-1].candidates.observed)

    await until(learned, why="the router has learned from three jobs")
    routed = tried[-1]
    [observed] = routed.candidates.observed
    assert (observed.model, observed.slot, observed.jobs) == ("anthropic/claude-fable-5-2", "reasoning", JOBS_MIN)
    assert (observed.calls, observed.output_tokens) == (1, 40)
    assert guessed is not None and routed.route.estimated_cost_usd is not None
    assert routed.route.estimated_cost_usd < guessed
    job = SubmitJob(agent="prover", input=PROOF, options=JobOptions(dry_run=True))
    assert choose_again(job, routed, policy=current_policy()).route == routed.route
