"""What a job may change of its agent's configuration."""

from __future__ import annotations

from typing import Any

import pytest

from wayline.contracts.agents import AgentConfig
from wayline.contracts.jobs import JobOptions
from wayline.contracts.tools import may_use
from wayline.routing.job_overrides import bounded, narrowed

NAMES = ("search_knowledge", "search_web", "get_time", "web_search", "bank__pay", "bank__balance", "save_memory")


def config(**fields: Any) -> AgentConfig:
    return narrowed(AgentConfig(**fields.pop("agent", {})), JobOptions(**fields))


def usable(config: AgentConfig) -> set[str]:
    return {name for name in NAMES if may_use(name, patterns=config.tools, off=config.tools_off)}


def test_a_job_without_overrides_keeps_its_agents_configuration():
    agent = AgentConfig(style="direct", tools=("a", "b*"), memory=False, show_reasoning=True)

    assert narrowed(agent, JobOptions(style="like a pirate", max_steps=3)) is agent


def test_a_jobs_agent_style_replaces_its_agents():
    assert config(agent={"style": "direct"}, agent_style="tool_first").style == "tool_first"


@pytest.mark.parametrize(
    ("agent", "job", "expected"),
    [
        (("*",), ("search_*",), {"search_knowledge", "search_web"}),
        (("search_*", "get_time"), ("search_web", "bank__pay"), {"search_web"}),
        (("bank__pay", "get_time"), ("bank__*",), {"bank__pay"}),
        (("*", "web_search"), ("*",), set(NAMES)),
        (("*",), (), set()),
        (("search_*",), ("*_web",), set()),
        (("s?arch_web",), ("*",), {"search_web"}),
        (("?",), ("*",), set()),
        (("[s]earch_web",), ("search_*",), set()),
    ],
)
def test_a_jobs_tools_are_among_those_of_its_agent(agent: tuple, job: tuple, expected: set[str]):
    assert usable(config(agent={"tools": agent}, tools=job)) == expected


def test_a_jobs_pattern_brings_no_tool_that_has_to_be_named():
    assert usable(config(agent={"tools": ("*",)}, tools=("web_*",))) == set()
    assert usable(config(agent={"tools": ("*", "web_search")}, tools=("web_*",))) == {"web_search"}


@pytest.mark.parametrize("on", [True, False])
def test_a_job_switches_tools_off_but_never_on(on: bool):
    agent = AgentConfig(memory=on, tools_off=() if on else ("*memory",))

    off, wanted = (narrowed(agent, JobOptions(memory=switch)) for switch in (False, True))

    assert "save_memory" not in usable(off)
    assert ("save_memory" in usable(wanted)) is on


@pytest.mark.parametrize(
    ("agent", "own", "wanted", "shown"),
    [(False, (), True, True), (False, ("show_reasoning",), True, False), (True, ("show_reasoning",), False, False)],
)
def test_thinking_that_an_agent_hides_itself_stays_hidden(agent: bool, own: tuple, wanted: bool, shown: bool):
    agent_config = AgentConfig(show_reasoning=agent)

    assert narrowed(agent_config, JobOptions(show_reasoning=wanted), own=own).show_reasoning is shown


@pytest.mark.parametrize(
    ("wanted", "own", "steps"),
    [(20, ("max_steps",), 8), (3, ("max_steps",), 3), (20, (), 20), (None, ("max_steps",), None)],
)
def test_a_jobs_steps_stay_within_those_its_agent_sets(wanted: int | None, own: tuple, steps: int | None):
    options = bounded(JobOptions(max_steps=wanted), AgentConfig(max_steps=8), own=own)

    assert options.max_steps == steps


def test_a_jobs_schema_replaces_its_agents_and_its_assembler():
    own = {"type": "object", "properties": {"n": {"type": "integer"}}}
    agent = {"output_schema": {"type": "object"}, "assemble": "task_plan", "on_invalid": "empty"}

    found = config(agent=agent, output_schema=own)

    assert (found.output_schema, found.answer_schema, found.assemble, found.on_invalid) == (own, own, None, "fail")


def test_a_jobs_effort_and_temperature_replace_its_agents():
    found = config(agent={"effort": "low", "temperature": 0.7}, effort="high", temperature=0.0)

    assert (found.effort, found.temperature) == ("high", 0.0)
