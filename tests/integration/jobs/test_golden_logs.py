"""Golden logs: jobs against the simulator whose exported files must replay for ever.

`make golden` writes them anew into tests/unit/executor/replay/golden: after a deliberate change of a prompt.
"""

import os
from pathlib import Path

import orjson
import pytest

from wayline.executor.replay import replay
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.journal import JobLog, export_job, read_export
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator import Say
from wayline.testkit import Platform
from wayline.testkit.effects_server import EffectsServer

from .conftest import with_tools

GOLDEN = Path(__file__).parents[2] / "unit" / "executor" / "replay" / "golden"
WRITE = bool(os.environ.get("WAYLINE_WRITE_GOLDEN"))
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def three_lookups(asked) -> Say:
    """Look something up three times, the last two beside each other, then answer."""
    found = len(asked.results)
    if found == 0:
        return Say(tools=(("effects__look_read", {"key": "a"}),))
    if found == 1:
        return Say(text="One more.", tools=(("effects__look_read", {"key": "b"}), ("effects__look_read", {"key": "c"})))
    if found == 3:
        return Say(tools=(("effects__put_idempotent", {"key": "d"}),))
    return Say(text="a, b, c and d are there")


def searched(asked) -> Say:
    """Find a tool, call it, then answer."""
    found = sum(turn.role == "tool" for turn in asked.turns)
    if found == 0:
        return Say(tools=(("tool_search", {"query": "put something that may be repeated"}),))
    return Say(text="it is there") if found == 2 else Say(tools=(("effects__put_idempotent", {"key": "d"}),))


def corrected(asked) -> Say:
    """Answer with words, and with JSON once that is corrected."""
    return Say(text='{"n": 3}') if "does not fit" in asked.turns[-1].text else Say(text="three")


SCRIPTS = {"corrected": corrected, "search": searched}


async def file_of(platform: Platform, job_id: str) -> dict:
    head = await JobLog(platform.bus, "default", job_id).last()
    assert head is not None
    records = await JobLog(platform.bus, "default", job_id).records(head.sequence)
    return export_job([value for record in records for value in record])


@pytest.mark.parametrize("name", ["tools", "corrected", "partial", "search"])
async def test_a_job_replays_as_it_ran(platform: Platform, effects: EffectsServer, name):
    await effects.start()
    simulator = await platform.simulate(SCRIPTS.get(name, three_lookups))
    await platform.start(
        "router",
        "executor",
        "tool_registry",
        router=RouterSettings(anthropic_base_url=simulator.url),
        executor=ExecutorSettings(anthropic_base_url=simulator.url),
        tool_registry=with_tools(effects.settings()),
    )
    schema = SCHEMA if name == "corrected" else None
    tools = {"always": ["effects__look_*"], "deferred": ["effects__*"]} if name == "search" else ("effects__*",)
    await platform.put_agent("golden", tools=tools, output_schema=schema, instructions="Look, then answer.")
    await platform.submit(name, "What is there?", agent="golden", max_steps=2 if name == "partial" else 10)
    ended = await platform.wait_for(name)

    assert ended.status == "completed"
    assert ended.partial == (name == "partial")
    assert ended.route is not None and ended.route.provider == "anthropic"
    file = await file_of(platform, name)
    assert replay(read_export(file)).divergence is None
    if WRITE:
        (GOLDEN / f"{name}.json").write_bytes(orjson.dumps(file, option=orjson.OPT_INDENT_2) + b"\n")
