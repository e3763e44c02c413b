"""`wayline approvals` and `wayline jobs approve|deny|answer` as their users run them."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx2
import pytest

from wayline.simulator.chat_server import Say
from wayline.testkit import until
from wayline.testkit.effects_server import EffectsServer
from wayline.testkit.fixtures import run

from .conftest import Installed, serving_chat


def counts(body: dict[str, Any]) -> Say:
    """Have a sum worked out, then say what it came to."""
    results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    return Say(text=results[-1]) if results else Say(tools=(("calculator", {"expression": "2+2"}),))


def pays(body: dict[str, Any]) -> Say:
    """Have something paid, then say what came of it."""
    results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    return Say(text=results[-1]) if results else Say(tools=(("effects__pay_once", {}),))


def submit(installed: Installed, job_id: str, agent: str = "careful") -> None:
    body = {"agent": agent, "input": "count", "job_id": job_id, "options": {"model": "chat/m"}}
    httpx2.post(f"http://127.0.0.1:{installed.http_port}/v1/jobs", json=body, timeout=30).raise_for_status()


def job(installed: Installed, job_id: str) -> dict[str, Any]:
    """Return a job once it has ended."""
    found: list[dict[str, Any]] = []

    async def ended() -> bool:
        found[:] = [json.loads(installed.wayline("jobs", "show", job_id, "--json").stdout)]
        return found[0]["status"] in ("completed", "failed")

    run(until(ended, within=60, why=f"{job_id} has ended"))
    return found[0]


@pytest.mark.timeout(300)
def test_calls_are_listed_approved_with_other_arguments_and_denied(fresh: Installed):
    agent = {"instructions": "Count.", "tools": ["calculator"], "ask_tools": {"calculator": "always"}}
    (fresh.data.parent / "careful.json").write_text(json.dumps(agent))
    with serving_chat(counts) as chat:
        fresh.more = {"WAYLINE_CHAT_BASE_URL": chat.url}
        fresh.start()
        fresh.run_json("agents", "put", "careful", "careful.json")
        nothing = fresh.wayline("approvals")
        submit(fresh, "j1")
        submit(fresh, "j2")
        waits: dict[str, dict[str, Any]] = {}

        async def both_wait() -> bool:
            waits.update({one["job_id"]: one for one in fresh.run_json("approvals")["approvals"]})
            return set(waits) == {"j1", "j2"}

        run(until(both_wait, within=60, why="both jobs wait for an approval"))
        drawn = fresh.wayline("approvals").stdout
        unreadable = fresh.wayline("jobs", "approve", "j1", waits["j1"]["id"], "--arguments", "{")
        wrong = fresh.wayline("jobs", "approve", "j1", waits["j1"]["id"], "--arguments", '{"expression": 4}')
        stored = fresh.run_json("jobs", "approve", "j1", waits["j1"]["id"], "--arguments", '{"expression": "2+3"}')
        denied = fresh.wayline("jobs", "deny", "j2", waits["j2"]["id"], "--reason", "do it in your head")
        ended = [job(fresh, "j1"), job(fresh, "j2")]
        again = fresh.wayline("jobs", "approve", "j1", waits["j1"]["id"])
        decided = fresh.run_json("approvals", "--decided", "--since", "1h")["decided"]

    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert [(waits[one]["agent"], waits[one]["arguments"]) for one in waits] == [("careful", {"expression": "2+2"})] * 2
    assert waits["j1"]["id"] in drawn and "2+2" in drawn
    assert (unreadable.returncode, "--arguments is not JSON" in unreadable.stderr) == (2, True)
    assert (wrong.returncode, "expression" in wrong.stderr) == (1, True)
    assert stored["signal"] == "approval"
    assert "the decision is stored" in denied.stdout
    assert ended[0]["answer"] == "5"
    assert "do it in your head" in ended[1]["answer"]
    assert again.returncode == 1
    assert {one["job_id"]: (one["decision"], one["edited"]) for one in decided} == {
        "j1": ("approved", True),
        "j2": ("denied", False),
    }
    assert "permissions violation" not in (fresh.data / "logs" / "wayline.log").read_text()


@pytest.mark.timeout(120)
def test_an_outcome_that_nobody_knows_is_answered_once_by_its_command(fresh: Installed):
    effects = EffectsServer(fresh.data.parent / "effects.txt", delay_ms=60_000)
    run(effects.start())
    agent = {"instructions": "Pay.", "tools": ["effects__pay_once"], "ask": "never"}
    (fresh.data.parent / "payer.json").write_text(json.dumps(agent))
    with serving_chat(pays) as chat:
        fresh.more = {
            "WAYLINE_CHAT_BASE_URL": chat.url,
            "WAYLINE_TOOL_REGISTRY_SERVERS": json.dumps([effects.settings()]),
        }
        fresh.start()
        fresh.run_json("agents", "put", "payer", "payer.json")
        submit(fresh, "j1", agent="payer")
        run(until(lambda: effects.has_begun("pay_once"), within=60, why="the tool is called"))
        effects.kill()
        waiting: dict[str, Any] = {}

        async def waits() -> bool:
            waiting.update(fresh.run_json("jobs", "show", "j1"))
            return waiting["status"] == "parked"

        run(until(waits, within=60, why="the job waits for the outcome"))
        drawn = fresh.wayline("jobs", "show", "j1").stdout
        decision = re.findall(r"wayline jobs answer j1 (\S+) ", drawn)[0]
        unreadable = fresh.wayline("jobs", "answer", "j1", decision, "perhaps")
        nowhere = fresh.wayline("jobs", "answer", "j1", "d9", "succeeded")
        stored = fresh.wayline("jobs", "answer", "j1", decision, "succeeded", "--content", "receipt 17")
        ended = job(fresh, "j1")
        again = fresh.wayline("jobs", "answer", "j1", decision, "failed")

    assert (unreadable.returncode, "succeeded" in unreadable.stderr) == (1, True)
    assert nowhere.returncode == 1
    assert (stored.returncode, stored.stdout) == (0, "j1: the answer is stored, the job goes on\n")
    assert "receipt 17" in ended["answer"]
    assert again.returncode == 1
    assert effects.calls() == [], "it was answered, not called again"
