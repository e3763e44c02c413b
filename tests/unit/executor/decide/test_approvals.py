"""Whether a call needs an approval and whether it has one, from a job's state alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import TextPart, ToolCall, UserMessage
from wayline.contracts.jobs import Parent, Route, TaintSource
from wayline.contracts.tools import Effect, ToolDefinition
from wayline.executor.decide.actions import AskApproval, EndDenied, Park, RunTools
from wayline.executor.decide.approvals import (
    ApprovalState,
    approval_hash,
    ask_of_agent,
    cause,
    digest_to_call,
    misfit,
    standing,
    stands,
    taint_policy,
)
from wayline.executor.decide.next_action import decide
from wayline.journal import Approval, Call, Job
from wayline.testkit.jobs import job_with

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PAY = ToolDefinition(name="pay", effect=Effect.ONCE, input_schema={"properties": {"usd": {"type": "integer"}}})
LOOK = ToolDefinition(name="look", effect=Effect.READ)
WEB = TaintSource(kind="tool", name="web", step=1, call="1")
WANTED = ToolCall(call="1", tool="pay", arguments={"usd": 5})


def job(config: AgentConfig | None = None, **fields: Any) -> Job:
    """A job of an agent that asks before each write, about to run the calls of its first step."""
    return job_with(
        job_id="j",
        tenant="default",
        at=NOW,
        created_at=NOW,
        step=1,
        config=config or AgentConfig(ask="writes"),
        limits=e.Limits(max_steps=3, max_seconds=60, max_output_tokens=100),
        deadline=NOW + timedelta(seconds=60),
        route=Route(provider="p", model="m", tier="standard", reason="r"),
        messages=(UserMessage(parts=(TextPart(text="pay"),)),),
        **{"offered": (LOOK, PAY), "agent_version": 3, **fields},
    )


def stamp(**payload: Any) -> dict[str, Any]:
    trace = e.SpanRef(trace_id="0" * 32, span_id="0" * 16)
    return {"job_id": "j", "seq": 9, "at": NOW, "trace": trace, **payload}


def asked(number: str = "1", *, definition: ToolDefinition = PAY, policy: str = "1/3") -> Approval:
    arguments = {"usd": 5}
    bound_to = approval_hash(definition.digest, arguments, policy)
    request = e.ApprovalRequested(
        **stamp(
            approval_id=f"1-{number}",
            step=1,
            call=number,
            tool="pay",
            arguments=arguments,
            definition=definition.digest,
            policy=policy,
            hash=bound_to,
            why="agent",
            expires_at=NOW + timedelta(days=1),
        )
    )
    return Approval(request)


def decided(approval: Approval, decision: Any = "approved", **fields: Any) -> Approval:
    event = e.ApprovalDecided(**stamp(approval_id=approval.asked.approval_id, decision=decision, **fields))
    return approval._replace(decided=event)


def approved(approval: Approval) -> Approval:
    return decided(approval, hash=approval.asked.hash)


@pytest.mark.parametrize(
    ("config", "tool", "why"),
    [
        (AgentConfig(), PAY, None),
        (AgentConfig(ask="writes"), PAY, "agent"),
        (AgentConfig(ask="writes"), LOOK, None),
        (AgentConfig(ask="always"), LOOK, "agent"),
        (AgentConfig(ask="always", ask_tools={"pay": "never"}), PAY, None),
        (AgentConfig(ask_tools={"p*": "always"}), PAY, "agent"),
        (AgentConfig(), PAY.model_copy(update={"ask": "writes"}), "tool"),
        (AgentConfig(ask_tools={"*": "never"}), PAY.model_copy(update={"ask": "always"}), "tool"),
    ],
)
def test_the_stricter_of_tool_and_agent_says_who_is_asked(config, tool, why):
    assert cause(job(config, offered=(tool,)), tool) == why


def test_the_longest_pattern_that_fits_counts():
    config = AgentConfig(ask="writes", ask_tools={"*": "never", "pay*": "always", "pay_small": "never"})

    assert [ask_of_agent(config, tool) for tool in ("look", "pay_large", "pay_small")] == ["never", "always", "never"]


def test_what_only_reads_needs_no_approval_after_untrusted_content():
    tainted = job(AgentConfig(), taint=WEB)

    assert (cause(tainted, PAY), cause(tainted, LOOK)) == ("tainted", None)
    assert cause(job(AgentConfig(ask_when_tainted=False), taint=WEB), PAY) is None


@pytest.mark.parametrize(
    ("above", "tool", "why"),
    [
        ({"ask_when_tainted": True}, PAY, "tainted"),
        ({"ask_egress": True}, LOOK.model_copy(update={"untrusted": True}), "tainted"),
        ({}, PAY, None),
    ],
)
def test_a_child_keeps_the_stricter_policy_of_its_parent(above: dict[str, bool], tool: ToolDefinition, why: str | None):
    lax = AgentConfig(ask_when_tainted=False, ask_egress=False)
    parent = Parent(job_id="p", step=1, call="1", depth=1, tainted_by="web", **above)
    child = job(lax, taint=WEB)
    child = child._replace(family=child.family._replace(parent=parent))

    assert cause(child, tool) == why
    assert taint_policy(child) == (above.get("ask_when_tainted", False), above.get("ask_egress", False))


@pytest.mark.parametrize(
    ("config", "taint", "why"),
    [
        (AgentConfig(), WEB, None),
        (AgentConfig(ask_egress=True), None, None),
        (AgentConfig(ask_egress=True), WEB, "tainted"),
        (AgentConfig(ask_egress=True, ask_when_tainted=False), WEB, "tainted"),
    ],
)
def test_a_read_that_carries_data_out_asks_where_agents_say(config, taint, why):
    fetch = LOOK.model_copy(update={"untrusted": True})
    here = job(config, offered=(LOOK, fetch.model_copy(update={"name": "fetch"})), taint=taint)

    assert cause(here, fetch) == why
    assert cause(here, LOOK) is None
    assert (digest_to_call(here, "1", "never_listed") == "") == (taint is not None)


def test_arguments_that_the_schema_refuses_are_nobodys_to_approve():
    assert standing(job(), WANTED, {"usd": 5}) is ApprovalState.NEEDED
    assert standing(job(), WANTED, {"usd": "much"}) is ApprovalState.FREE


def test_a_wrong_call_names_the_definition_that_refuses_it():
    wrong = Call(WANTED.model_copy(update={"arguments": {"usd": "much"}}), key="default/j/1/1")

    assert misfit(job(), wrong) == PAY.digest
    assert misfit(job(), Call(WANTED, key="default/j/1/1")) is None
    # Where nobody would be asked the registry alone judges.
    assert misfit(job(AgentConfig()), wrong) is None


def test_an_approval_holds_for_the_same_definition_arguments_and_policy():
    granted = approved(asked())

    assert standing(job(approvals=(granted,)), WANTED, {}) is ApprovalState.GRANTED
    other_policy = job(approvals=(granted,), agent_version=4)
    assert standing(other_policy, WANTED, {"usd": 5}) is ApprovalState.NEEDED
    other_tool = job(approvals=(granted,), discovered=(PAY.model_copy(update={"description": "Pay twice."}),))
    assert standing(other_tool, WANTED, {"usd": 5}) is ApprovalState.NEEDED
    other_arguments = job(approvals=(decided(asked(), hash=asked().asked.hash, arguments={"usd": 6}),))
    assert standing(other_arguments, WANTED, {"usd": 5}) is ApprovalState.NEEDED


@pytest.mark.parametrize(
    ("config", "fields", "digest"),
    [
        (AgentConfig(), {}, None),
        (AgentConfig(ask="writes"), {}, ""),
        (AgentConfig(ask_tools={"secret_*": "always"}), {}, ""),
        (AgentConfig(), {"taint": WEB}, ""),
        (AgentConfig(ask="always", ask_tools={"secret_*": "never"}), {}, None),
    ],
)
def test_a_tool_that_was_never_listed_is_not_called_unapproved(config, fields, digest):
    """The registry makes no call for the empty digest, which no definition has."""
    assert digest_to_call(job(config, **fields), "1", "secret_pay") == digest


def test_a_spent_approval_allows_nothing_more():
    spent = approved(asked())._replace(spent=True)

    assert standing(job(approvals=(spent,)), WANTED, {"usd": 5}) is ApprovalState.NEEDED


def test_a_call_that_has_begun_goes_on():
    begun = Call(WANTED, key="default/j/1/1")

    assert stands(job(), begun) is ApprovalState.FREE
    assert stands(job(approvals=(approved(asked())._replace(spent=True),)), begun) is ApprovalState.FREE


def test_calls_are_asked_for_before_others_run_and_denials_are_told():
    look = Call(ToolCall(call="2", tool="look", arguments={}))
    pay = Call(WANTED)

    assert decide(job(calls=(pay, look))) == AskApproval((pay,))
    assert decide(job(calls=(pay, look), approvals=(asked(),))) == RunTools((look,))
    assert decide(job(calls=(pay,), approvals=(decided(asked(), "denied"),))) == EndDenied((pay,))
    parked = decide(job(calls=(pay,), approvals=(asked(),)))
    assert isinstance(parked, Park)
    assert [one.approval_id for one in parked.waiting.approvals] == ["1-1"]


def test_calls_in_order_wait_for_an_earlier_approval():
    config = AgentConfig(ask="writes", tools_in_order=True)
    look = Call(ToolCall(call="2", tool="look", arguments={}))

    assert isinstance(decide(job(config, calls=(Call(WANTED), look), approvals=(asked(),))), Park)
