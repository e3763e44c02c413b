"""Thirty tasks with 45 dependencies and three cycles are planned whole, with a scripted model and without one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wayline.contracts import events as e
from wayline.contracts.tools import TASK_TOOLS
from wayline.executor.decide.actions import Complete

from ..logs import Log
from ..planned import PLANNER, Model, offline, played, scripted

SHOP = json.loads((Path(__file__).parents[2] / "planning" / "coffee_shop.json").read_text())
LISTED = [{"id": task["id"], "reason": "as listed"} for task in SHOP["tasks"]]
MODEL = scripted(SHOP["tasks"], json.dumps({"prioritized_tasks": LISTED, "reasoning": "in the order of the list"}))
STEPS_MAX = 10


@pytest.mark.parametrize("model", [offline, MODEL], ids=["offline", "scripted"])
def test_the_shop_is_planned_whole_with_its_cycles_cut(model: Model):
    asked = json.dumps({"outcome": "A coffee shop", "tasks": SHOP["tasks"]})
    log = Log(config=PLANNER, input=asked, max_steps=STEPS_MAX)

    action = played(log, model)

    assert isinstance(action, Complete), action
    plan = json.loads(action.answer)
    called = [event.tool for event in log.events if isinstance(event, e.ToolRequested)]
    assert called == [tool for tool in TASK_TOOLS if tool in called] and "detect_dependencies" in called
    assert len(plan["prioritized_tasks"]) == len(SHOP["tasks"]) and plan["execution_metadata"]["steps"] <= STEPS_MAX
    found = {(one["task"], one["needs"]) for one in plan["dependencies"]}
    assert len(found & set(map(tuple, SHOP["dependencies"]))) >= 0.9 * len(SHOP["dependencies"])
    cut = [sorted(one["cycle"]) for one in plan["dependencies"] if one.get("cut")]
    assert sorted(cut) == sorted(map(sorted, SHOP["cycles"]))
    wave = {task: one["wave"] for one in plan["execution_waves"] for task in one["tasks"]}
    assert all(wave[one["task"]] > wave[one["needs"]] for one in plan["dependencies"] if not one.get("cut"))
