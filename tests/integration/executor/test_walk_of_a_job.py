"""A job's walk through the executor goes down its layers."""

import sys
from importlib import import_module
from pathlib import Path

TOOLS = Path(__file__).parents[3] / "tools"


async def test_no_call_of_a_jobs_walk_goes_up_a_layer(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(TOOLS)])
    tool = import_module("walk_of_a_job")

    walked = await tool.walk()

    assert walked.upward == []
    assert len(walked.calls) > 50


async def test_a_call_into_a_layer_above_goes_upward(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(TOOLS)])
    walk = import_module("walk_of_a_job").Walk()
    walk.calls = {("decide/a.py", "perform/b.py"), ("perform/b.py", "decide/a.py"), ("perform/b.py", "perform/c.py")}

    assert walk.upward == [("decide/a.py", "perform/b.py")]
