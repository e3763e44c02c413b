"""What a fork takes over from the job that it branches off."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wayline.contracts.agents import Agent, AgentConfig
from wayline.contracts.events import Candidates, JobRouted
from wayline.contracts.jobs import Fork
from wayline.contracts.models import ModelCard
from wayline.router.admission.conditions import Admitted
from wayline.router.admission.forks import as_pinned

EVENTS = Path(__file__).parents[3] / "proto/samples/events"
CARD = ModelCard(provider="chat", model="own", tier="standard")


@pytest.mark.parametrize(("slots", "default"), [({}, "chat/own"), ({"primary": "chat/own"}, None)])
def test_a_fork_keeps_the_default_model_that_its_origin_went_with(slots: Any, default: str | None):
    routed = JobRouted.model_validate_json((EVENTS / "job.routed-1.json").read_bytes())
    route = routed.route.model_copy(update={"provider": "chat", "model": "own"})
    candidates = Candidates(cards=(CARD,), slots=slots)
    routed = routed.model_copy(update={"route": route, "candidates": candidates})
    today = Agent(name="a", version=2, config=AgentConfig(), default_model="chat/new")
    branch: Any = SimpleNamespace(routed=routed)

    pinned = as_pinned(Admitted(today, Decimal(1)), branch, Fork(job_id="j1"))

    assert (pinned.agent.default_model, pinned.agent.config) == (default, routed.config)


@pytest.mark.parametrize("origin_was_routed", [True, False])
def test_a_fork_has_the_label_that_chose_its_version(origin_was_routed: bool):
    routed = JobRouted.model_validate_json((EVENTS / "job.routed-1.labels.json").read_bytes())
    today = Admitted(Agent(name="a", version=9, config=AgentConfig()), Decimal(1), label="production")
    branch: Any = SimpleNamespace(routed=routed if origin_was_routed else None)

    pinned = as_pinned(today, branch, Fork(job_id="j1"))

    expected = (routed.agent_version, None) if origin_was_routed else (9, "production")
    assert routed.agent_label is not None
    assert (pinned.agent.version, pinned.label) == expected
