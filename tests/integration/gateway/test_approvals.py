"""Tool calls that wait for a person: who may decide them over HTTP, and with which arguments."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from wayline.chassis import Bus
from wayline.contracts import events as e
from wayline.contracts.jobs import DecideApproval, PendingApproval, Waiting
from wayline.contracts.tools import ToolDefinition
from wayline.gateway.adapters.keys import create_key
from wayline.gateway.keys import Scope
from wayline.testkit import Platform, until
from wayline.tracing.settings import Settings as TracingSettings

from . import story
from .conftest import Running
from .story import Story

PAY = ToolDefinition(
    name="pay", input_schema={"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
)


async def waiting(bus: Bus, tenant: str = "default") -> str:
    """A job that waits for the approval of a payment; returns where the decision is posted."""
    story = Story(bus, tenant, "j1")
    await story.begin()
    await story.claim()
    return f"/v1/jobs/j1/approvals/{await story.ask(PAY, amount=5)}"


async def decisions(bus: Bus) -> list[DecideApproval]:
    state = (await bus.js.stream_info("SIGNALS")).state
    raw = [await bus.js.get_msg("SIGNALS", n) for n in range(max(1, state.first_seq), state.last_seq + 1)]
    return [DecideApproval.from_wire(message.data or b"", message.subject or "") for message in raw]


async def test_a_decision_is_stored_with_the_name_of_its_key(gateway: Running, bus: Bus):
    address = await waiting(bus)

    edited = await gateway.client.post(address, json={"decision": "approve", "arguments": {"amount": 7}})

    assert (edited.status_code, edited.json()["signal"]) == (202, "approval")
    named = {"tenant": "default", "job_id": "j1", "approval_id": "1-1-1-abc", "by": "local"}
    assert await decisions(bus) == [DecideApproval(**named, decision="approve", arguments={"amount": 7})]


async def test_a_decision_that_cannot_count_does_not_keep_others_away(gateway: Running, bus: Bus):
    address = await waiting(bus)
    named = {"tenant": "default", "job_id": "j1", "approval_id": "1-1-1-abc"}
    wrong = DecideApproval(**named, decision="approve", arguments={"amount": "a lot"})
    await bus.publish(wrong, msg_id=wrong.msg_id)

    denied = await gateway.client.post(address, json={"decision": "deny", "reason": "too much"})

    assert denied.status_code == 202
    assert [one.decision for one in await decisions(bus)] == ["approve", "deny"]


async def test_another_decision_on_the_same_approval_is_a_conflict(gateway: Running, bus: Bus):
    address = await waiting(bus)
    seven, eight = ({"decision": "approve", "arguments": {"amount": amount}} for amount in (7, 8))
    bodies = (seven, seven, eight, {"decision": "deny", "reason": "too much"})

    answers = [await gateway.client.post(address, json=body) for body in bodies]

    assert [a.status_code for a in answers] == [202, 202, 409, 409]
    assert answers[3].json()["code"] == "decided_otherwise"
    assert [one.arguments for one in await decisions(bus)] == [{"amount": 7}]


async def test_another_answer_to_the_same_question_is_a_conflict(gateway: Running, bus: Bus):
    told = Story(bus, "default", "j1")
    await told.begin()
    await told.claim()
    await told.park("1-1")
    bodies = ({"outcome": "succeeded"}, {"outcome": "succeeded"}, {"outcome": "retry"})

    answers = [await gateway.client.post("/v1/jobs/j1/answers/1-1", json=body) for body in bodies]

    assert [a.status_code for a in answers] == [202, 202, 409]
    assert answers[2].json()["code"] == "decided_otherwise"
    assert (await bus.js.stream_info("SIGNALS")).state.messages == 1


async def test_arguments_that_the_tool_does_not_take_are_refused(gateway: Running, bus: Bus):
    address = await waiting(bus)

    refused = await gateway.client.post(address, json={"decision": "approve", "arguments": {"amount": "a lot"}})

    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_arguments")
    assert "amount" in refused.json()["detail"]
    assert await decisions(bus) == []


async def test_a_decision_on_what_does_not_wait_is_refused(gateway: Running, bus: Bus):
    await waiting(bus)

    other = await gateway.client.post("/v1/jobs/j1/approvals/1-1-2-abc", json={"decision": "approve"})
    nobody = await gateway.client.post("/v1/jobs/none/approvals/1-1-1-abc", json={"decision": "approve"})

    assert [(a.status_code, a.json()["code"]) for a in (other, nobody)] == [(409, "not_waiting"), (404, "not_found")]
    assert nobody.json()["instance"] == "/v1/jobs/none/approvals/1-1-1-abc"
    assert len(nobody.json()["trace_id"]) == 32
    assert await decisions(bus) == []


async def test_only_keys_with_the_scope_approve_decide(gateway: Running, bus: Bus, platform: Platform):
    store = await platform.store("gateway")
    address = await waiting(bus, "acme")
    asked: list[int] = []
    scopes_of_keys: tuple[tuple[Scope, ...], ...] = (("read", "write"), ("approve",))
    for scopes in scopes_of_keys:
        secret = await create_key(store, "acme", "ann", scopes=scopes)
        headers = {"Authorization": f"Bearer {secret}"}
        asked.append((await gateway.client.post(address, json={"decision": "approve"}, headers=headers)).status_code)

    assert asked == [403, 202]
    assert [decided.by for decided in await decisions(bus)] == ["ann"]


async def test_keys_that_write_and_keys_that_approve_answer_unknown_outcomes(
    gateway: Running, bus: Bus, platform: Platform
):
    store = await platform.store("gateway")
    told = Story(bus, "acme", "j1")
    await told.begin()
    await told.claim()
    await told.park("1-1")
    asked: dict[Scope, int] = {}
    scopes: tuple[Scope, ...] = ("read", "write", "approve")
    for scope in scopes:
        secret = await create_key(store, "acme", f"a key to {scope}", scopes=(scope,))
        headers = {"Authorization": f"Bearer {secret}"}
        body = {"outcome": "succeeded", "content": "sent"}
        answer = await gateway.client.post("/v1/jobs/j1/answers/1-1", json=body, headers=headers)
        asked[scope] = answer.status_code

    assert asked == {"read": 403, "write": 202, "approve": 202}


async def waits(bus: Bus, tenant: str, job_id: str, waiting: Waiting, *, reads: str | None = None) -> None:
    """Write the log of a job that waits for people; `reads`: the tool whose words of strangers it has read."""
    told = Story(bus, tenant, job_id)
    await told.begin()
    await told.claim()
    if reads is not None:
        await told.think()
        await told.read_strangers(reads)
    await told.wait(waiting)


async def test_all_that_waits_is_paged_across_the_jobs_of_one_tenant(
    gateway: Running, bus: Bus, platform: Platform, monkeypatch: pytest.MonkeyPatch
):
    now = datetime.now(UTC)
    monkeypatch.setattr(story, "AT", now)
    await platform.start("tracing", tracing=TracingSettings())
    about: dict[str, Any] = {"call": "1", "arguments": {"amount": 5}, "why": "tool", "expires_at": now + timedelta(1)}
    schema = {"type": "object", "properties": {"account": {"type": "string"}}}
    seen: dict[str, Any] = {"asked_at": now, "hash": "h", "effect": "once", "description": "Pays."}
    pay = PendingApproval(**about, **seen, approval_id="a1", tool="pay", reason="it pays")
    send = PendingApproval(**about, approval_id="a2", tool="send", reason="From where?", input_schema=schema)
    unknown = Waiting(why="needs_decision", wait_id="1-1", question="Was it sent?", tool="mail", arguments={"to": "x"})
    await waits(bus, "acme", "j1", Waiting(why="approval", wait_id="a1", approvals=(pay, send)), reads="web_fetch")
    await waits(bus, "acme", "j2", unknown.model_copy(update={"expires_at": now, "approvals": (pay,)}))
    await waits(bus, "beta", "j3", unknown.model_copy(update={"expires_at": now}))
    store = await platform.store("gateway")
    headers = {
        tenant: {"Authorization": f"Bearer {await create_key(store, tenant, 'ann', scopes=('read',))}"}
        for tenant in ("acme", "beta")
    }

    async def page(tenant: str, **asked: Any) -> dict[str, Any]:
        answer = await gateway.client.get("/v1/approvals", params=asked, headers=headers[tenant])
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def all_are_listed() -> bool:
        found = [len((await page(tenant))["approvals"]) for tenant in ("acme", "beta")]
        return found == [4, 1]

    await until(all_are_listed, why="tracing knows what the jobs wait for")
    first = await page("acme", limit=1)
    second = await page("acme", limit=1, cursor=first["next_cursor"])
    last = await page("acme", limit=1, cursor=second["next_cursor"]) if second["next_cursor"] else {"approvals": []}

    listed = [first["approvals"], second["approvals"]]
    by_job = {waits[0]["job_id"]: [(one["why"], one["id"], one["decide"]) for one in waits] for waits in listed}
    assert by_job == {
        "j1": [
            ("approval", "a1", "/v1/jobs/j1/approvals/a1"),
            ("input", "a2", "/v1/jobs/j1/approvals/a2"),
        ],
        "j2": [
            ("needs_decision", "1-1", "/v1/jobs/j2/answers/1-1"),
            ("approval", "a1", "/v1/jobs/j2/approvals/a1"),
        ],
    }
    assert last["approvals"] == []
    of_jobs = [(await page("acme", job_id=jobs))["approvals"] for jobs in (["j2"], ["j1", "j2"], ["j3"])]
    assert [sorted({one["job_id"] for one in waits}) for waits in of_jobs] == [["j2"], ["j1", "j2"], []]
    oldest = (await page("acme", sort="oldest"))["approvals"]
    assert [one["job_id"] for one in oldest] == ["j1", "j1", "j2", "j2"]
    everything = (await page("acme"))["approvals"]
    asked = next(one for one in everything if one["why"] == "input")
    assert (asked["reason"], asked["input_schema"], asked["arguments"]) == ("From where?", schema, {"amount": 5})
    pays = next(one for one in everything if one["why"] == "approval")
    assert (pays["cause"], pays["hash"], pays["effect"], pays["description"]) == ("tool", "h", "once", "Pays.")
    assert pays["asked_at"] is not None and pays["input"] == "What moves the sea?"
    source = {"kind": "tool", "name": "web_fetch", "step": 1, "call": "1", "job_id": None}
    tainted_by = {(one["job_id"], one["id"]): one["tainted_by"] for one in everything}
    assert tainted_by == {("j1", "a1"): source, ("j1", "a2"): source, ("j2", "1-1"): None, ("j2", "a1"): None}
    job = await gateway.client.get("/v1/jobs/j1", headers=headers["acme"])
    assert job.json()["tainted_by"] == source
    assert [one["job_id"] for one in (await page("beta"))["approvals"]] == ["j3"]


async def test_a_decision_about_something_else_is_a_conflict(gateway: Running, bus: Bus):
    address = await waiting(bus)

    other = await gateway.client.post(address, json={"decision": "deny", "hash": "another"})
    shown = await gateway.client.post(address, json={"decision": "approve", "hash": "h"})

    assert (other.status_code, other.json()["code"]) == (409, "asked_otherwise")
    assert shown.status_code == 202
    assert [one.hash for one in await decisions(bus)] == ["h"]


async def test_decisions_are_listed_with_who_made_them(gateway: Running, bus: Bus, platform: Platform):
    await platform.start("tracing", tracing=TracingSettings())
    told = Story(bus, "default", "j1")
    await told.begin()
    await told.claim()
    approval_id = await told.ask(PAY, amount=5)
    assert told.head is not None
    by = {"approval_id": approval_id, "decision": "approved", "by": "ann", "arguments": {"amount": 4}, "hash": "h2"}
    decided = [
        e.ApprovalDecided(**told._place(told.head.seq + n), **one) for n, one in enumerate((by, {**by, "by": "bob"}), 1)
    ]
    told.head = await told.log.append(decided, told.head)
    other = Story(bus, "default", "j2")
    await other.begin()

    async def page(**asked: Any) -> list[dict[str, Any]]:
        answer = await gateway.client.get("/v1/approvals", params={"decided": True, **asked})
        assert answer.status_code == 200, answer.text
        assert answer.json()["approvals"] == []
        return answer.json()["decided"]

    async def is_listed() -> bool:
        return len(await page()) == 1

    await until(is_listed, why="tracing knows what was decided")
    [one] = await page(since=story.AT.isoformat())
    assert (one["job_id"], one["id"], one["tool"], one["by"]) == ("j1", approval_id, "pay", "ann")
    assert (one["decision"], one["edited"], one["hash"], one["why"]) == ("approved", True, "h2", "approval")
    assert await page(since=(story.AT + timedelta(1)).isoformat()) == [] == await page(job_id="j2")
    assert await page(job_id="j1") == [one]
    single = (await gateway.client.get("/v1/jobs/j1")).json()
    assert [(one["by"], one["decision"]) for one in single["decisions"]] == [("ann", "approved")]
