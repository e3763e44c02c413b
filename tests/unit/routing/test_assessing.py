"""How often a job's text is read to see how complex it is, and how much of it."""

from __future__ import annotations

import pytest

from wayline.contracts.agents import AgentConfig, Routing
from wayline.contracts.jobs import JobOptions
from wayline.routing import RoutingInput, choose_limits, choose_route
from wayline.routing.complexity import Classifier, features
from wayline.routing.policy import policy_with

from .routed import CARDS, HARD, OFFLINE, SubmitJob, decide

NAMED = "a/standard"


@pytest.fixture
def assessed(monkeypatch) -> list[str]:
    """The texts that were assessed."""
    texts: list[str] = []
    assess = Classifier.assess

    def counting(self: Classifier, text: str) -> object:
        texts.append(text)
        return assess(self, text)

    monkeypatch.setattr(Classifier, "assess", counting)
    return texts


@pytest.mark.parametrize(
    "config",
    [
        AgentConfig(model=NAMED),
        AgentConfig(),
        AgentConfig(classify=True),
        AgentConfig(context="budgeted", classify=True, routing=Routing(reasoning="reasoning")),
    ],
    ids=["one model", "slots", "classified", "budgeted"],
)
def test_a_jobs_text_is_assessed_once(assessed: list[str], config: AgentConfig):
    inputs = RoutingInput(SubmitJob(agent="a", input=HARD), config)

    choose_route(inputs, cards=CARDS, default_model=OFFLINE)
    choose_limits(JobOptions(), config, steps_level=inputs.steps_level, context_level=inputs.context_level)

    assert assessed == [HARD]


@pytest.mark.parametrize(
    "config",
    [
        AgentConfig(model=NAMED, adapt_steps=False),
        AgentConfig(routing=Routing(mode="locked"), adapt_steps=False),
    ],
    ids=["one model", "locked"],
)
def test_a_text_that_nothing_follows_is_not_assessed(assessed: list[str], config: AgentConfig):
    decide(HARD, config)

    assert assessed == []


def test_another_policy_assesses_a_text_anew(assessed: list[str]):
    inputs = RoutingInput(SubmitJob(agent="a", input=HARD), AgentConfig())
    lenient = RoutingInput(
        inputs.job, inputs.config, policy_with("lenient", {"levels": {"complex": 0.0}}), assessed=inputs.assessed
    )

    assert (inputs.complexity.content, lenient.complexity.level) == (lenient.complexity.content, "complex")
    assert len(assessed) == 2


@pytest.mark.parametrize("unit", ["Prove it. ", "Please answer politely. ", "x", "how many and then ", "a\n"])
def test_of_any_text_a_bounded_part_is_read_a_few_times(monkeypatch, unit: str):
    read = 0
    words_of = features.words_of

    def counting(text: str) -> list[str]:
        nonlocal read
        read += len(text)
        return words_of(text)

    monkeypatch.setattr(features, "words_of", counting)
    decide(unit * 20_000)

    # Once to find what is asked, where a sentence is looked at for directions and for signs of a task, and once whole.
    assert read <= 3 * (features.READ_MAX_CHARS + 1)
