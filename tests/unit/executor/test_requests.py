"""What a call is asked with: the agent's temperature and effort, the reasoning slot's own defaults."""

from typing import Any, cast

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.models import ModelCard
from wayline.executor.calling import Models
from wayline.llm import ModelRequest

from .logs import PRIMARY, ROUTE, Log, card


def asked(config: AgentConfig | None = None, of: ModelCard = PRIMARY, **route: Any) -> ModelRequest:
    log = Log(config=config or AgentConfig(), cards=(of,))
    log.say(e.JobRerouted, route=ROUTE.model_copy(update=route), cause="fallback")
    return Models(cast("Any", None), {}).request(log.job, step=1, attempt=1, tools=())


def test_the_agents_temperature_and_the_smaller_output_limit_are_sent():
    request = asked(AgentConfig(temperature=0.2))

    assert (request.temperature, request.max_output_tokens) == (0.2, 100)
    assert (request.effort, request.thinking_tokens) == (None, None)


def test_the_reasoning_slot_thinks_hard_unless_the_agent_says_how():
    assert (asked(slot="reasoning").effort, asked(slot="reasoning").thinking_tokens) == ("high", None)
    assert asked(AgentConfig(effort="low"), slot="reasoning").effort == "low"


def test_thinking_by_a_number_of_tokens_does_not_take_them_from_the_answer():
    counting = card("acme/primary", reasoning="budget", output_limit=20_000)
    small = card("acme/primary", reasoning="budget", output_limit=8_000)

    request = asked(of=counting, slot="reasoning")

    assert (request.thinking_tokens, request.max_output_tokens) == (10_000, 10_100)
    assert asked(of=small, slot="reasoning").max_output_tokens == 8_000
    assert asked(of=counting).thinking_tokens is None
