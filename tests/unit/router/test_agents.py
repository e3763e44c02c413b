"""An agent that could only fail is refused when it is saved."""

import pytest

from wayline.contracts.agents import AgentConfig, Routing
from wayline.contracts.errors import Reject
from wayline.contracts.models import ModelCard
from wayline.router.agents import check_agent

CARDS = (ModelCard(provider="chat", model="mine", tier="standard"),)


def refused(config: AgentConfig) -> tuple[str, int, str]:
    with pytest.raises(Reject) as caught:
        check_agent(config, CARDS)
    return caught.value.code, caught.value.status, str(caught.value)


def test_an_agent_of_tiers_known_models_and_a_good_schema_is_saved():
    routing = Routing(fast="flash", primary="chat/mine", fallbacks=("premium", "chat/mine"))
    check_agent(AgentConfig(model="acme/anything", routing=routing, output_schema={"type": "object"}), CARDS)


@pytest.mark.parametrize("field", ["fast", "primary", "escalation", "reasoning"])
def test_a_slot_that_means_nothing_is_named(field):
    code, status, said = refused(AgentConfig(routing=Routing(**{field: "chat/yours"})))

    assert (code, status) == ("unknown_model", 422)
    assert said.startswith(f"routing.{field} is 'chat/yours', which is neither a tier (flash, ")


def test_a_fallback_that_means_nothing_is_named():
    assert "routing.fallbacks is 'premum'" in refused(AgentConfig(routing=Routing(fallbacks=("flash", "premum"))))[2]


def test_a_schema_that_can_check_nothing_is_refused():
    deep: dict = {"type": "object"}
    for _ in range(1_000):
        deep = {"type": "object", "properties": {"a": deep}}

    assert refused(AgentConfig(output_schema={"type": "cat"}))[:2] == ("invalid_output_schema", 422)
    assert "nested too deep" in refused(AgentConfig(output_schema=deep))[2]


@pytest.mark.parametrize("model", ["gpt", "x" * 65 + "/gpt", "openai/" + "x" * 201])
def test_a_model_that_no_job_could_be_sent_to_is_refused(model):
    code, status, said = refused(AgentConfig(model=model))

    assert (code, status) == ("invalid_model", 422)
    assert len(said) < 250
