"""What a call is asked with: the agent's temperature and effort, the reasoning slot's own defaults."""

from typing import Any, cast

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.executor.calling import Models
from wayline.llm import ModelRequest

from .logs import ROUTE, Log


def asked(config: AgentConfig | None = None, **route: Any) -> ModelRequest:
    log = Log(config=config or AgentConfig())
    log.say(e.JobRerouted, route=ROUTE.model_copy(update=route), cause="fallback")
    return Models(cast("Any", None), {}).request(log.job, step=1, attempt=1, tools=())


def test_the_agents_temperature_and_the_smaller_output_limit_are_sent():
    request = asked(AgentConfig(temperature=0.2))

    assert (request.temperature, request.max_output_tokens) == (0.2, 100)
    assert (request.effort, request.thinking_tokens) == (None, None)


def test_the_reasoning_slot_thinks_hard_unless_the_agent_says_how():
    assert (asked(slot="reasoning").effort, asked(slot="reasoning").thinking_tokens) == ("high", 10_000)
    assert asked(AgentConfig(effort="low"), slot="reasoning").effort == "low"
