"""`wayline sessions`, `settings`, `agents latest`, and `run` in a session, as their users run them."""

from __future__ import annotations

import pytest

from .conftest import Installed

pytestmark = pytest.mark.timeout(180)

SESSION = "trip/to Porto"


def test_a_session_is_run_continued_shown_and_deleted(wayline: Installed):
    first = wayline.run_json("run", "Find a train.", "--session", SESSION, "--user", "ada")
    second = wayline.run_json("run", "And back?", "--continue", "--user", "ada")
    nobody = wayline.wayline("run", "And back?", "--continue", "--user", "bob")
    both = wayline.wayline("run", "And back?", "--continue", "--session", SESSION)
    listed = wayline.run_json("sessions", "list", "--user", "ada", "--agent", "assistant")
    others = wayline.run_json("sessions", "list", "--user", "bob")
    shown = wayline.run_json("sessions", "show", SESSION)
    drawn = wayline.wayline("sessions", "show", SESSION).stdout.splitlines()
    newest = wayline.run_json("agents", "latest", "assistant", "--user", "ada")
    latest = wayline.wayline("agents", "latest", "assistant", "--user", "ada").stdout
    deleted = wayline.run_json("sessions", "delete", SESSION)
    again = wayline.wayline("sessions", "delete", SESSION)
    missing = wayline.wayline("sessions", "show", SESSION)

    assert [job["session_id"] for job in (first, second)] == [SESSION] * 2
    assert (nobody.returncode, "no session with agent 'assistant' by user 'bob'" in nobody.stderr) == (1, True)
    assert (both.returncode, "leave one out" in both.stderr) == (1, True)
    assert [(one["session_id"], one["turns"]) for one in listed["sessions"]] == [(SESSION, 2)]
    assert others["sessions"] == []
    assert [turn["job"]["job_id"] for turn in shown["page"]] == [second["job_id"], first["job_id"]]
    assert float(shown["cost_usd"]) == 0
    assert drawn[:4] == [f"session\t{SESSION}", "agent\tassistant", "user\tada", "cost\t$0"]
    assert drawn[-1].startswith(f"1\t{first['job_id']}\tcompleted\t")
    assert (newest["job_id"], newest["outcome"]["answer"]) == (second["job_id"], second["answer"])
    assert second["job_id"] in latest
    assert (deleted, again.returncode, "no session" in again.stderr) == ({"deleted": True}, 1, True)
    assert (missing.returncode, "no session" in missing.stderr) == (1, True)


def test_a_job_is_deleted_and_a_user_forgotten_with_receipts(wayline: Installed):
    first = wayline.run_json("run", "Find a train.", "--user", "eve")
    wayline.run_json("run", "And back?", "--user", "eve")
    deleted = wayline.run_json("jobs", "delete", first["job_id"])
    told = wayline.run_json("memory", "forget", "eve")
    shown = wayline.wayline("forget", "show", told["forget_id"]).stdout.splitlines()
    nobody = wayline.wayline("forget", "show", "forget_unknown")

    assert (deleted["step"], deleted["jobs"], deleted["left"]) == ("done", 1, {})
    assert (told["step"], told["jobs"], told["left"], told["user_id"]) == ("done", 1, {}, None)
    assert {"left\t0", "router\tlatest_results\t1\terased"} <= {*shown}
    assert wayline.run_json("jobs", "list", "--user", "eve")["jobs"] == []
    assert (nobody.returncode, "no forgetting" in nobody.stderr) == (1, True)


def test_settings_are_shown_changed_and_reset(wayline: Installed):
    before = wayline.run_json("settings", "show")
    changed = wayline.run_json("settings", "set", "max_steps=8", "memory=off", "tools=web_*,get_*")
    drawn = wayline.wayline("settings", "show").stdout.splitlines()
    wrong = wayline.wayline("settings", "set", "max_steps=many")
    bare = wayline.wayline("settings", "set", "max_steps")
    partly = wayline.run_json("settings", "reset", "memory", "tools")
    after = wayline.run_json("settings", "reset", "max_steps")

    assert (before["max_steps"], before["style"], before["max_cost_usd"]) == (5, "balanced", "0.10")
    assert (changed["max_steps"], changed["memory"], changed["tools"]) == (8, False, ["web_*", "get_*"])
    assert {*before["defaults"]} - {*changed["defaults"]} == {"max_steps", "memory", "tools"}
    assert {"max_steps\t8\t", "memory\toff\t", "tools\tweb_*,get_*\t"} <= {*drawn}
    assert (wrong.returncode, "max_steps" in wrong.stderr) == (1, True)
    assert (bare.returncode, "no KEY=VALUE" in bare.stderr) == (1, True)
    assert (partly["max_steps"], partly["memory"]) == (8, True)
    assert {name: after[name] for name in before} == before | {"updated_at": after["updated_at"]}
