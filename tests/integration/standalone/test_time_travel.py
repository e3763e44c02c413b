"""Export, replay, regression tests, forks and redrives as their users run them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wayline.simulator.chat_server import Say
from wayline.testkit import until
from wayline.testkit.fixtures import run

from .conftest import Installed, serving_chat
from .test_approvals import job

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class Model:
    """Has a sum worked out, then says it: in words, which are no answer, for as long as it is broken."""

    def __init__(self) -> None:
        self.broken = False

    def say(self, body: dict[str, Any]) -> Say:
        results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
        if not results:
            return Say(tools=(("calculator", {"expression": "2+2"}),))
        return Say(text="no idea" if self.broken else json.dumps({"n": int(results[-1])}))


def save_agent(installed: Installed, instructions: str) -> None:
    agent = {"instructions": instructions, "tools": ["calculator"], "output_schema": SCHEMA}
    (installed.data.parent / "clerk.json").write_text(json.dumps(agent))
    installed.run_json("agents", "put", "clerk", "clerk.json")


def submit(installed: Installed, text: str) -> str:
    return installed.run_json("run", text, "--agent", "clerk", "--model", "chat/m", "--no-wait")["job_id"]


def code(installed: Installed, *words: str) -> int:
    return installed.wayline(*words).returncode


@pytest.mark.timeout(400)
def test_a_past_job_is_exported_replayed_tested_and_forked(fresh: Installed):
    model = Model()
    with serving_chat(model.say) as chat:
        fresh.more = {"WAYLINE_CHAT_BASE_URL": chat.url}
        fresh.start()
        save_agent(fresh, "Count.")
        done = submit(fresh, "count")
        assert job(fresh, done)["answer"] == '{"n": 4}'
        asked = len(chat.calls)

        exported = fresh.wayline("jobs", "export", done).stdout
        (fresh.data.parent / "count.json").write_text(exported)
        replayed = fresh.run_json("jobs", "replay", done)
        from_file = fresh.wayline("jobs", "replay", "count.json")
        tested = fresh.wayline("test", "count.json")
        save_agent(fresh, "Count well.")
        changed = fresh.wayline("test", "count.json", "--json")
        decisions = code(fresh, "test", "count.json", "--decisions")
        recorded = code(fresh, "test", "count.json", "--recorded")
        (fresh.data.parent / "broken.json").write_text("{}")
        broken = code(fresh, "test", "broken.json")
        assert len(chat.calls) == asked, "a replay asks no model"

        events = json.loads(exported)["events"]
        after = next(event["seq"] for event in events if event["type"] == "tool.completed")
        fork = fresh.run_json("jobs", "fork", done, "--after", str(after), "--tool-result", "7")
        forked = job(fresh, fork["job_id"])

    assert (json.loads(exported)["format"], replayed["identical"], replayed["steps"]) == ("wayline.job", True, 2)
    assert (from_file.returncode, f"{done}: identical" in from_file.stdout) == (0, True)
    assert (tested.returncode, "identical" in tested.stdout) == (0, True)
    [found] = json.loads(changed.stdout)["replays"]
    assert (changed.returncode, found["divergence"]["what"], found["divergence"]["step"]) == (1, "prompt", 1)
    assert (decisions, recorded, broken) == (0, 0, 2)
    assert (forked["answer"], forked["origin"]["job_id"]) == ('{"n": 7}', done)


@pytest.mark.timeout(400)
def test_failed_jobs_are_grouped_and_redriven(fresh: Installed):
    model = Model()
    model.broken = True
    with serving_chat(model.say) as chat:
        fresh.more = {"WAYLINE_CHAT_BASE_URL": chat.url}
        fresh.start()
        save_agent(fresh, "Count.")
        failed = submit(fresh, "count")
        assert job(fresh, failed)["error"]["code"] == "invalid_output"
        groups: list[dict[str, Any]] = []

        async def grouped() -> bool:
            groups[:] = fresh.run_json("dead-letters", "groups")["groups"]
            return [one["jobs"] for one in groups] == [1]

        run(until(grouped, within=60, why="the failed job is in a group"))
        fingerprint = groups[0]["fingerprint"]
        model.broken = False
        words = ("dead-letters", "redrive", "--fingerprint", fingerprint)

        planned = fresh.run_json(*words, "--dry-run")
        drawn = fresh.wayline(*words).stdout
        again = fresh.run_json(*words)
        fork = again["jobs"][0]["fork_id"]
        forked = job(fresh, fork)
        past = fresh.run_json("dead-letters", "redrives")["redrives"]
        missing = fresh.wayline("dead-letters", "redrive", "--fingerprint", "0" * 16)

    assert [(one["job_id"], one["outcome"]) for one in planned["jobs"]] == [(failed, "forked")]
    assert f"{failed}\tforked\t{fork}" in drawn
    assert again["jobs"][0]["outcome"] == "already"
    assert (forked["status"], forked["answer"]) == ("completed", '{"n": 4}')
    assert [(one["jobs"], one["forked"], one["already"]) for one in past] == [(1, 0, 1), (1, 1, 0)]
    assert (missing.returncode, "with fingerprint" in missing.stderr) == (1, True)
