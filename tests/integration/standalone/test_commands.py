"""`wayline sessions`, `settings`, `schedules`, `agents latest`, and `run` in a session,
and what the runbooks say of pauses, limits of running jobs and replicas, against one running installation.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import nats
import pytest

from wayline.testkit import until
from wayline.testkit.fixtures import run

from .conftest import Installed

pytestmark = pytest.mark.timeout(180)

SESSION = "trip/to Porto"


@pytest.fixture(scope="module")
def wayline(shared: Installed) -> Installed:
    """A running installation."""
    shared.start()
    return shared


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


def test_a_schedule_is_created_shown_run_and_deleted(wayline: Installed):
    created = wayline.run_json("schedules", "create", "morning", "What is new?", "--cron", "0 7 * * MON-FRI")
    twice = wayline.wayline("schedules", "create", "morning", "Again?", "--cron", "0 8 * * *")
    replaced = wayline.run_json("schedules", "create", "morning", "Again?", "--at", "7d", "--replace", "--user", "ada")
    wrong = wayline.wayline("schedules", "create", "evening", "Done?", "--cron", "61 7 * * *")
    accepted = wayline.run_json("schedules", "run", "morning")

    def ended() -> bool:
        return [one["status"] for one in wayline.get("/v1/schedules/morning")["firings"]] == ["completed"]

    run(until(ended, why="its job has ended"))
    drawn = wayline.wayline("schedules", "show", "morning").stdout
    disabled = wayline.run_json("schedules", "disable", "morning")
    listed = wayline.wayline("schedules", "list").stdout
    enabled = wayline.run_json("schedules", "enable", "morning")
    deleted = wayline.run_json("schedules", "delete", "morning")
    missing = wayline.wayline("schedules", "show", "morning")

    assert (created["version"], len(created["next_firings"])) == (1, 5)
    assert (twice.returncode, "PUT changes it" in twice.stderr) == (1, True)
    assert (replaced["version"], replaced["cron"], replaced["job"]["user_id"]) == (2, None, "ada")
    assert (wrong.returncode, "Bad minute" in wrong.stderr) == (1, True)
    assert f"completed\t{accepted['job_id']}" in drawn
    assert (disabled["next_at"], "disabled" in listed) == (None, True)
    assert (enabled["next_at"], deleted) == (replaced["next_at"], {"deleted": True})
    assert (missing.returncode, "no schedule 'morning'" in missing.stderr) == (1, True)
    job = json.loads(wayline.wayline("jobs", "show", accepted["job_id"], "--json").stdout)
    assert job["schedule"]["schedule"] == "morning"
    assert "permissions violation" not in (wayline.data / "logs" / "wayline.log").read_text()


def test_an_agent_is_paused_listed_and_resumed(wayline: Installed):
    paused = wayline.wayline("pause", "agent", "assistant", "--reason", "its search tool is broken")
    lane = wayline.run_json("pause", "lane", "batch", "--now")
    listed = wayline.wayline("pauses").stdout.splitlines()
    resumed = wayline.wayline("resume", "agent", "assistant")
    again = wayline.wayline("resume", "agent", "assistant")
    assert wayline.run_json("resume", "lane", "batch") == {"ended": True}
    ended = wayline.run_json("run", "Find a train.")

    assert (paused.returncode, "agent assistant is paused" in paused.stdout) == (0, True)
    assert (lane["now"], lane["name"]) == (True, "batch")
    assert [line.split("\t")[:2] for line in listed] == [["lane", "batch"], ["agent", "assistant"]]
    assert listed[1].endswith("go on to their end\tits search tool is broken")
    assert (resumed.returncode, again.returncode, "no pause of agent" in again.stderr) == (0, 1, True)
    assert ended["status"] == "completed"


def test_running_jobs_are_limited_and_not_any_more(wayline: Installed):
    wayline.run_json("running-limits", "set", "agent", "researcher", "4")
    wayline.run_json("running-limits", "set", "user", "*", "2", "--when-full", "refuse")
    listed = wayline.wayline("running-limits", "list").stdout.splitlines()
    removed = [wayline.wayline("running-limits", "remove", *one) for one in (("agent", "researcher"), ("user", "*"))]

    assert listed == ["agent\tresearcher\t4\t0\t0\twait", "user\teach\t2\t\t\trefuse"]
    assert [one.returncode for one in removed] == [0, 0]
    assert wayline.run_json("running-limits", "list") == {"limits": []}


def test_a_tenant_is_given_a_weight(wayline: Installed):
    wayline.run_json("tenants", "create", "initech")
    set_to = wayline.run_json("tenants", "weight", "initech", "5")
    drawn = wayline.wayline("tenants", "show", "initech").stdout
    wrong = wayline.wayline("tenants", "weight", "initech", "101")

    assert drawn.strip().split("\t")[2:] == ["ok", "5"]
    assert (set_to["weight"], wayline.run_json("tenants", "show", "initech")["weight"], wrong.returncode) == (5, 5, 2)


def test_replicas_are_listed_with_their_versions(wayline: Installed):
    found = wayline.run_json("replicas")["replicas"]

    assert {"gateway", "router", "executor", "tool_registry"} <= {one["service"] for one in found}
    assert all(one["version"] and one["where"] and one["since"] for one in found)


@asynccontextmanager
async def executor_of_the_last_release(wayline: Installed) -> AsyncIterator[None]:
    """Connect to the bus as an executor that does not say its version."""
    lines = (wayline.data / "credentials" / "executor.env").read_text().splitlines()
    env = dict(line.split("=", 1) for line in lines)
    nc = await nats.connect(env["WAYLINE_NATS_URL"], nkeys_seed_str=env["WAYLINE_NATS_SEED"], name="wayline-executor")
    try:
        yield
    finally:
        await nc.close()


def test_nothing_is_paused_or_limited_while_older_services_run(wayline: Installed):
    limit = ("running-limits", "set", "agent", "assistant", "1")

    async def tried() -> list[tuple[int, str]]:
        async with executor_of_the_last_release(wayline):
            commands = (("pause", "agent", "assistant"), limit, (*limit, "--allow-older"))
            done = [await asyncio.to_thread(wayline.wayline, *words) for words in commands]
        return [(one.returncode, one.stderr) for one in done]

    (paused, why), (limited, _), (forced, _) = run(tried())
    wayline.run_json("running-limits", "remove", "agent", "assistant")

    assert (paused, limited, forced) == (1, 1, 0)
    assert "of before 0.2.0 there run 1 executor" in why
    assert wayline.run_json("pauses") == {"pauses": []}
    assert wayline.run_json("pause", "agent", "assistant")["name"] == "assistant"
    wayline.run_json("resume", "agent", "assistant")


def test_one_replica_is_drained_and_put_to_work_again(wayline: Installed):
    states = wayline.run_json("replicas")["states"]
    name = next(one["name"] for one in states if one["service"] == "executor")
    drained = wayline.wayline("drain", name, "--finish", "30")
    listed = {one["name"]: one for one in wayline.run_json("replicas")["states"]}
    undone = wayline.wayline("drain", name, "--undo")
    unknown = wayline.wayline("drain", "nobody-1")

    assert all(one["ready"] for one in states)
    assert {"gateway", "router", "executor", "retrieval"} <= {one["service"] for one in states}
    assert (drained.stdout.strip(), listed[name]["ready"]) == (f"{name} is drained, and empty", False)
    assert [one for one in listed if not listed[one]["ready"]] == [name]
    assert undone.stdout.strip() == f"{name} takes work"
    assert (unknown.returncode, "no replica" in unknown.stderr) == (1, True)
    assert wayline.run_json("run", "Find a train.")["status"] == "completed"
