"""`wayline approvals` and `wayline jobs approve|deny|answer|raise|cancel` as their users run them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx2
import pytest

from wayline.simulator.chat_server import Say
from wayline.testkit import until
from wayline.testkit.effects_server import EffectsServer
from wayline.testkit.fixtures import run

from .conftest import Installed, serving_chat

pytestmark = pytest.mark.timeout(300)

DEAR = {
    "provider": "chat",
    "model": "dear",
    "tier": "standard",
    "prices": {"rates": {"input": "10", "output": "50"}, "source": "ours"},
}
TOO_LITTLE = "0.000001"


def answer(body: dict[str, Any]) -> Say:
    """Have a sum worked out or something paid, whichever the agent can, then say what came of it."""
    results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    if results:
        return Say(text=results[-1])
    if "calculator" in {tool["function"]["name"] for tool in body["tools"]}:
        return Say(tools=(("calculator", {"expression": "2+2"}),))
    return Say(tools=(("effects__pay_once", {}),))


@pytest.fixture(scope="module")
def effects(server_dir: Path) -> EffectsServer:
    """A server whose calls take a minute."""
    return run(EffectsServer(server_dir / "approvals-effects.txt", delay_ms=60_000).start())


@pytest.fixture(scope="module")
def wayline(shared: Installed, effects: EffectsServer) -> Iterator[Installed]:
    """A running installation whose jobs ask the model, and call the tools of that server."""
    with serving_chat(answer) as chat:
        shared.more = {
            "WAYLINE_CHAT_BASE_URL": chat.url,
            "WAYLINE_TOOL_REGISTRY_SERVERS": json.dumps([effects.settings()]),
        }
        shared.start()
        yield shared
    effects.kill()


def submit(installed: Installed, job_id: str, agent: str = "careful") -> None:
    body = {"agent": agent, "input": "count", "job_id": job_id, "options": {"model": "chat/m"}}
    httpx2.post(f"http://127.0.0.1:{installed.http_port}/v1/jobs", json=body, timeout=30).raise_for_status()


def job(installed: Installed, job_id: str) -> dict[str, Any]:
    """Return a job once it has ended."""
    found: list[dict[str, Any]] = []

    async def ended() -> bool:
        found[:] = [installed.get(f"/v1/jobs/{job_id}")]
        return found[0]["status"] in ("completed", "failed")

    run(until(ended, within=60, why=f"{job_id} has ended"))
    return found[0]


def test_calls_are_listed_approved_with_other_arguments_and_denied(wayline: Installed):
    agent = {"instructions": "Count.", "tools": ["calculator"], "ask_tools": {"calculator": "always"}}
    (wayline.data.parent / "careful.json").write_text(json.dumps(agent))
    wayline.run_json("agents", "put", "careful", "careful.json")
    nothing = wayline.wayline("approvals")
    submit(wayline, "j1")
    submit(wayline, "j2")

    def both_wait() -> bool:
        return {one["job_id"] for one in wayline.get("/v1/approvals")["approvals"]} == {"j1", "j2"}

    run(until(both_wait, within=60, why="both jobs wait for an approval"))
    waits = {one["job_id"]: one for one in wayline.run_json("approvals")["approvals"]}
    drawn = wayline.wayline("approvals").stdout
    unreadable = wayline.wayline("jobs", "approve", "j1", waits["j1"]["id"], "--arguments", "{")
    wrong = wayline.wayline("jobs", "approve", "j1", waits["j1"]["id"], "--arguments", '{"expression": 4}')
    stored = wayline.run_json("jobs", "approve", "j1", waits["j1"]["id"], "--arguments", '{"expression": "2+3"}')
    denied = wayline.wayline("jobs", "deny", "j2", waits["j2"]["id"], "--reason", "do it in your head")
    ended = [job(wayline, "j1"), job(wayline, "j2")]
    again = wayline.wayline("jobs", "approve", "j1", waits["j1"]["id"])
    decided = wayline.run_json("approvals", "--decided", "--since", "1h")["decided"]

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
    assert "permissions violation" not in (wayline.data / "logs" / "wayline.log").read_text()


def test_an_outcome_that_nobody_knows_is_answered_once_by_its_command(wayline: Installed, effects: EffectsServer):
    agent = {"instructions": "Pay.", "tools": ["effects__pay_once"], "ask": "never"}
    (wayline.data.parent / "payer.json").write_text(json.dumps(agent))
    wayline.run_json("agents", "put", "payer", "payer.json")
    submit(wayline, "paid", agent="payer")
    run(until(lambda: effects.has_begun("pay_once"), within=60, why="the tool is called"))
    effects.kill()

    def waits() -> bool:
        return wayline.get("/v1/jobs/paid")["status"] == "parked"

    run(until(waits, within=60, why="the job waits for the outcome"))
    drawn = wayline.wayline("jobs", "show", "paid").stdout
    decision = re.findall(r"wayline jobs answer paid (\S+) ", drawn)[0]
    unreadable = wayline.wayline("jobs", "answer", "paid", decision, "perhaps")
    nowhere = wayline.wayline("jobs", "answer", "paid", "d9", "succeeded")
    stored = wayline.wayline("jobs", "answer", "paid", decision, "succeeded", "--content", "receipt 17")
    ended = job(wayline, "paid")
    again = wayline.wayline("jobs", "answer", "paid", decision, "failed")

    assert (unreadable.returncode, "succeeded" in unreadable.stderr) == (1, True)
    assert nowhere.returncode == 1
    assert (stored.returncode, stored.stdout) == (0, "paid: the answer is stored, the job goes on\n")
    assert "receipt 17" in ended["answer"]
    assert again.returncode == 1
    assert effects.calls() == [], "it was answered, not called again"


def submit_dear(installed: Installed, **options: str) -> dict[str, Any]:
    """Submit a job that may spend less than one call of its model costs; return it once it stands still."""
    asked = {"model": "chat/dear", "budget_usd": TOO_LITTLE, **options}
    body = {"agent": "assistant", "input": "hello", "options": asked}
    url = f"http://127.0.0.1:{installed.http_port}/v1/jobs"
    job_id = httpx2.post(url, json=body, timeout=30).raise_for_status().json()["job_id"]
    found: list[dict[str, Any]] = []

    async def stands_still() -> bool:
        found[:] = [installed.get(f"/v1/jobs/{job_id}")]
        return found[0]["status"] in ("parked", "completed", "failed")

    run(until(stands_still, within=60, why=f"{job_id} is parked or has ended"))
    return found[0]


def follow(installed: Installed, job_id: str) -> list[str]:
    """The types of its events, until its end."""
    done = installed.wayline("jobs", "tail", job_id, "--json")
    return [json.loads(line)["type"] for line in done.stdout.splitlines()]


def test_raising_cancelling_and_refusing_jobs_violates_no_permission(wayline: Installed):
    (wayline.data.parent / "card.json").write_text(json.dumps(DEAR))
    wayline.run_json("models", "add", "card.json")

    parked = submit_dear(wayline, at_cap="park")
    wayline.run_json("jobs", "raise", parked["job_id"], str(Decimal(TOO_LITTLE) * 2))
    wayline.run_json("jobs", "cancel", parked["job_id"])
    ended = follow(wayline, parked["job_id"])
    refused = submit_dear(wayline, at_cap="partial")

    assert parked["status"] == "parked"
    assert "budget.raised" in ended
    assert ended[-1] == "job.cancelled"
    assert refused["error"]["code"] == "budget_too_small"
    assert "permissions violation" not in (wayline.data / "logs" / "wayline.log").read_text()
