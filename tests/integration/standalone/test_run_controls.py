"""`wayline pause`, `resume`, `pauses`, `running-limits` and `replicas`, as the runbooks say them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import nats
import pytest

from .conftest import Installed, run

pytestmark = pytest.mark.timeout(180)


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
    wayline.run_json("tenants", "create", "acme")
    set_to = wayline.run_json("tenants", "weight", "acme", "5")
    drawn = wayline.wayline("tenants", "show", "acme").stdout
    wrong = wayline.wayline("tenants", "weight", "acme", "101")

    assert drawn.strip().split("\t")[2:] == ["ok", "5"]
    assert (set_to["weight"], wayline.run_json("tenants", "show", "acme")["weight"], wrong.returncode) == (5, 5, 2)


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
