"""Export, replay, regression tests, forks and redrives as their users run them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from wayline.simulator.chat_server import Say
from wayline.testkit import until
from wayline.testkit.fixtures import run

from .conftest import Installed, serving_chat
from .test_approvals import job

pytestmark = pytest.mark.timeout(400)

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class Model:
    """Has a sum worked out, then says it: in words, which are no answer, for as long as it is broken."""

    def __init__(self) -> None:
        self.broken = False
        self.asked: list[dict[str, Any]] = []

    def say(self, body: dict[str, Any]) -> Say:
        self.asked.append(body)
        results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
        if not results:
            return Say(tools=(("calculator", {"expression": "2+2"}),))
        return Say(text="no idea" if self.broken else json.dumps({"n": int(results[-1])}))


@pytest.fixture(scope="module")
def model() -> Model:
    return Model()


@pytest.fixture(scope="module")
def wayline(shared: Installed, model: Model) -> Iterator[Installed]:
    """A running installation whose jobs ask the model."""
    with serving_chat(model.say) as chat:
        shared.more["WAYLINE_CHAT_BASE_URL"] = chat.url
        shared.start()
        yield shared


def save_agent(installed: Installed, instructions: str) -> None:
    agent = {"instructions": instructions, "tools": ["calculator"], "output_schema": SCHEMA}
    (installed.data.parent / "clerk.json").write_text(json.dumps(agent))
    installed.run_json("agents", "put", "clerk", "clerk.json")


def submit(installed: Installed, text: str) -> str:
    return installed.run_json("run", text, "--agent", "clerk", "--model", "chat/m", "--no-wait")["job_id"]


def code(installed: Installed, *words: str) -> int:
    return installed.wayline(*words).returncode


def test_a_past_job_is_exported_replayed_tested_and_forked(wayline: Installed, model: Model):
    save_agent(wayline, "Count.")
    done = submit(wayline, "count")
    assert job(wayline, done)["answer"] == '{"n": 4}'
    asked = len(model.asked)

    exported = wayline.wayline("jobs", "export", done).stdout
    (wayline.data.parent / "count.json").write_text(exported)
    replayed = wayline.run_json("jobs", "replay", done)
    from_file = wayline.wayline("jobs", "replay", "count.json")
    tested = wayline.wayline("test", "count.json")
    save_agent(wayline, "Count well.")
    changed = wayline.wayline("test", "count.json", "--json")
    decisions = code(wayline, "test", "count.json", "--decisions")
    recorded = code(wayline, "test", "count.json", "--recorded")
    (wayline.data.parent / "broken.json").write_text("{}")
    broken = code(wayline, "test", "broken.json")
    assert len(model.asked) == asked, "a replay asks no model"

    events = json.loads(exported)["events"]
    after = next(event["seq"] for event in events if event["type"] == "tool.completed")
    fork = wayline.run_json("jobs", "fork", done, "--after", str(after), "--tool-result", "7")
    forked = job(wayline, fork["job_id"])

    assert (json.loads(exported)["format"], replayed["identical"], replayed["steps"]) == ("wayline.job", True, 2)
    assert (from_file.returncode, f"{done}: identical" in from_file.stdout) == (0, True)
    assert (tested.returncode, "identical" in tested.stdout) == (0, True)
    [found] = json.loads(changed.stdout)["replays"]
    assert (changed.returncode, found["divergence"]["what"], found["divergence"]["step"]) == (1, "prompt", 1)
    assert (decisions, recorded, broken) == (0, 0, 2)
    assert (forked["answer"], forked["origin"]["job_id"]) == ('{"n": 7}', done)


def test_failed_jobs_are_grouped_and_redriven(wayline: Installed, model: Model):
    model.broken = True
    save_agent(wayline, "Count.")
    failed = submit(wayline, "count")
    assert job(wayline, failed)["error"]["code"] == "invalid_output"
    groups: list[dict[str, Any]] = []

    async def grouped() -> bool:
        groups[:] = wayline.get("/v1/dead-letters/groups")["groups"]
        return [one["jobs"] for one in groups] == [1]

    run(until(grouped, within=60, why="the failed job is in a group"))
    assert wayline.run_json("dead-letters", "groups")["groups"] == groups
    fingerprint = groups[0]["fingerprint"]
    model.broken = False
    words = ("dead-letters", "redrive", "--fingerprint", fingerprint)

    planned = wayline.run_json(*words, "--dry-run")
    drawn = wayline.wayline(*words).stdout
    again = wayline.run_json(*words)
    fork = again["jobs"][0]["fork_id"]
    forked = job(wayline, fork)
    past = wayline.run_json("dead-letters", "redrives")["redrives"]
    missing = wayline.wayline("dead-letters", "redrive", "--fingerprint", "0" * 16)

    assert [(one["job_id"], one["outcome"]) for one in planned["jobs"]] == [(failed, "forked")]
    assert f"{failed}\tforked\t{fork}" in drawn
    assert again["jobs"][0]["outcome"] == "already"
    assert (forked["status"], forked["answer"]) == ("completed", '{"n": 4}')
    assert [(one["jobs"], one["forked"], one["already"]) for one in past] == [(1, 0, 1), (1, 1, 0)]
    assert (missing.returncode, "with fingerprint" in missing.stderr) == (1, True)
