"""Long thoughts: they are output, and do not take the room of the answer."""

from __future__ import annotations

import pytest

from wayline.contracts import events as e
from wayline.contracts.agents import Agent, AgentConfig, PutAgent, Routing
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator import Say, Simulator, turns
from wayline.testkit import Platform

from .four_models import CLAUDE, GPT, endpoints

PROOF = "Prove that there are infinitely many primes. Derive each step from the axioms, and verify it."
THOUGHT = "Suppose that there are finitely many. " * 800
"""Some 7,600 tokens, more than an agent's answer may have."""
ANSWER = "There is always one more prime. " * 40


@pytest.mark.parametrize("model", [CLAUDE, GPT])
@pytest.mark.parametrize(("effort", "whole"), [(None, True), ("low", False)])
async def test_a_long_thought_leaves_the_answer_of_the_reasoning_slot_whole(
    platform: Platform, model: str, effort: str | None, whole: bool
):
    async with Simulator(turns(Say(text=ANSWER, thinking=THOUGHT))) as simulator:
        where = endpoints(simulator)
        await platform.start("router", "executor", router=RouterSettings(**where), executor=ExecutorSettings(**where))
        config = AgentConfig.model_validate(
            {"instructions": "You prove.", "tools": (), "effort": effort, "routing": Routing(reasoning=model)}
        )
        await platform.bus.ask(PutAgent(tenant="default", name="prover", config=config), Agent)
        await platform.submit("j1", PROOF, agent="prover", task_type="math", budget_usd="5")
        job = await platform.wait_for("j1")

    assert (job.status, job.route.slot, job.route.name) == ("completed", "reasoning", model)
    assert (job.answer == ANSWER, job.partial) == (whole, not whole)
    assert job.cost_usd == simulator.bill.usd
    [asked] = [event for event in await platform.events("j1") if isinstance(event, e.ModelRequested)]
    assert asked.worst_usd is not None and asked.worst_usd >= simulator.bill.usd
