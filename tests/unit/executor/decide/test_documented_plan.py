"""The plan that docs/agents.md shows is the one that its example gives."""

import json
import re
from pathlib import Path

from wayline.executor.decide.actions import Complete

from ..logs import Log
from ..planned import PLANNER, played

PAGE = (Path(__file__).parents[4] / "docs" / "agents.md").read_text()


def test_the_documented_example_gives_the_documented_plan():
    [asked] = re.findall(r"task-orchestrator '(\{.*?\})'\n", PAGE, re.DOTALL)
    [shown] = re.findall(r"```json\n(\{\"execution_waves.*?)```", PAGE, re.DOTALL)

    action = played(Log(config=PLANNER, input=asked, max_steps=10))

    assert isinstance(action, Complete)
    plan = json.loads(action.answer)
    assert {name: plan[name] for name in json.loads(shown)} == json.loads(shown)
