"""Tool calls that wait for a person: who may decide them over HTTP, and with which arguments."""

from __future__ import annotations

from wayline.chassis import Bus
from wayline.contracts.jobs import DecideApproval
from wayline.contracts.tools import ToolDefinition
from wayline.gateway.adapters.keys import create_key
from wayline.gateway.keys import Scope
from wayline.testkit import Platform

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
    denied = await gateway.client.post(address, json={"decision": "deny", "reason": "too much"})

    assert [(a.status_code, a.json()["signal"]) for a in (edited, denied)] == [(202, "approval")] * 2
    named = {"tenant": "default", "job_id": "j1", "approval_id": "1-1-1-abc", "by": "local"}
    assert await decisions(bus) == [
        DecideApproval(**named, decision="approve", arguments={"amount": 7}),
        DecideApproval(**named, decision="deny", reason="too much"),
    ]


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
