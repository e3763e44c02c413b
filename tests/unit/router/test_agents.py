"""An agent that could only fail is refused when it is saved."""

import pytest

from wayline.contracts.agents import AgentConfig, Routing
from wayline.contracts.errors import Reject
from wayline.contracts.jobs import SubmitJob
from wayline.contracts.models import ModelCard
from wayline.llm.catalogue import bundled
from wayline.router.agents.check_agent import check_agent
from wayline.routing import RoutingInput, choose_route

CARDS = (ModelCard(provider="chat", model="mine", tier="standard"),)


def refused(config: AgentConfig) -> tuple[str, int, str]:
    with pytest.raises(Reject) as caught:
        check_agent(config, CARDS)
    return caught.value.code, caught.value.status, str(caught.value)


def test_an_agent_of_tiers_and_known_models_is_saved():
    routing = Routing(fast="flash", primary="chat/mine", fallbacks=("premium", "chat/mine"))
    check_agent(AgentConfig(model="chat/mine", routing=routing, output_schema={"type": "object"}), CARDS)


@pytest.mark.parametrize("field", ["fast", "primary", "escalation", "reasoning"])
def test_a_slot_that_means_nothing_is_named(field):
    code, status, detail = refused(AgentConfig(routing=Routing(**{field: "chat/yours"})))

    assert (code, status) == ("unknown_model", 422)
    assert detail.startswith(f"routing.{field} is 'chat/yours', which is neither a tier (flash, ")


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
    code, status, detail = refused(AgentConfig(model=model))

    assert (code, status) == ("unknown_model", 422)
    assert len(detail) < 250


@pytest.mark.parametrize(
    ("model", "detail"),
    [
        (
            "chat/mime",
            "model is 'chat/mime', which is not one of GET /v1/models: chat/mine. Correct it, or add the model with "
            "PUT /v1/models first",
        ),
        (
            "standard",
            "model is 'standard', a tier: to have all work done by the first usable model of a tier, leave model out, "
            "name it in routing.primary and set routing.mode to locked",
        ),
    ],
)
def test_an_unknown_model_is_refused_with_the_known_ones(model, detail):
    assert refused(AgentConfig(model=model)) == ("unknown_model", 422, detail)


def test_of_many_models_the_nearest_are_named():
    cards = tuple(ModelCard(provider="chat", model=f"model-{n}", tier="flash") for n in range(40))

    with pytest.raises(Reject, match="such as chat/model-39, ") as caught:
        check_agent(AgentConfig(routing=Routing(fallbacks=("chat/modle-39",))), cards)

    assert str(caught.value).count("chat/model-") == 5


def test_a_model_whose_provider_is_not_configured_yet_can_be_saved():
    check_agent(AgentConfig(model="anthropic/claude-haiku-5-5"), bundled())


def test_every_model_an_agent_may_name_takes_its_jobs():
    """And what may not is sent there all the same where a job asks for it: whoever asks is there to see it fail."""
    job = SubmitJob(tenant="default", agent="a", input="hello")
    for card in CARDS:
        config = AgentConfig(model=card.name)
        check_agent(config, CARDS)
        decided = choose_route(RoutingInput(job, config), cards=CARDS, default_model="offline/extractive")
        assert decided.candidates.cards == (card,)
