"""Long thoughts: they are output, and do not take the room of the answer."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig, Routing
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator import Say, Simulator, turns
from wayline.testkit import Platform

from .ended_jobs import differences
from .four_models import CLAUDE, GPT, endpoints

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

PROOF = "Prove that there are infinitely many primes. Derive each step from the axioms, and verify it."
THOUGHT = "Suppose that there are finitely many. " * 800
"""Some 7,600 tokens, more than an agent's answer may have."""
ANSWER = "There is always one more prime. " * 40
THINKS = turns(Say(text=ANSWER, thinking=THOUGHT))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def simulator(module_platform: Platform) -> AsyncIterator[Simulator]:
    simulator = await module_platform.simulate(THINKS)
    where = endpoints(simulator)
    settings = {"router": RouterSettings(**where), "executor": ExecutorSettings(**where)}
    await module_platform.start("router", "executor", **settings)
    yield simulator
    assert await differences(module_platform.bus) == []


@pytest.mark.parametrize("model", [CLAUDE, GPT])
@pytest.mark.parametrize(("effort", "whole"), [(None, True), ("low", False)])
async def test_a_long_thought_leaves_the_answer_of_the_reasoning_slot_whole(
    module_platform: Platform, simulator: Simulator, model: str, effort: str | None, whole: bool
):
    simulator.play(THINKS)
    platform = await module_platform.new_tenant()
    config = AgentConfig.model_validate(
        {"instructions": "You prove.", "tools": (), "effort": effort, "routing": Routing(reasoning=model)}
    )
    await platform.put_agent("prover", config)
    await platform.submit("j1", PROOF, agent="prover", task_type="math", budget_usd="5")
    job = await platform.wait_for("j1")

    assert job.route is not None
    assert (job.status, job.route.slot, job.route.name) == ("completed", "reasoning", model)
    assert (job.answer == ANSWER, job.partial) == (whole, not whole)
    assert job.cost_usd == simulator.bill.usd
    [asked] = await platform.events_of("j1", e.ModelRequested)
    assert asked.worst_usd is not None and asked.worst_usd >= simulator.bill.usd
