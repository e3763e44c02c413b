"""What a job needs next, from its state alone."""

from datetime import UTC, datetime, timedelta

import pytest

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import AssistantMessage, TextPart, ToolCall, ToolMessage, UserMessage
from wayline.contracts.jobs import Failure, Route, Waiting
from wayline.contracts.tools import Effect, ToolDefinition
from wayline.executor.decide.actions import (
    CallModel,
    Cancel,
    Complete,
    Fail,
    NoteLost,
    Park,
    Resolve,
    RunTools,
    SettleCalls,
)
from wayline.executor.decide.next_action import decide
from wayline.journal import Call, evolve
from wayline.testkit.jobs import job_with

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TRACE = e.SpanRef(trace_id="0" * 32, span_id="0" * 16)
LIMITS = e.Limits(max_steps=3, max_seconds=60, max_output_tokens=100)
ASKED = job_with(
    job_id="j",
    tenant="default",
    at=NOW,
    created_at=NOW,
    config=AgentConfig(),
    limits=LIMITS,
    deadline=NOW + timedelta(seconds=60),
    route=Route(provider="p", model="m", tier="standard", reason="r"),
    messages=(UserMessage(parts=(TextPart(text="why?"),)),),
)


def stamp(**payload):
    return {"job_id": "j", "seq": 9, "at": NOW, "trace": TRACE, **payload}


def call(number: str, **changes) -> Call:
    return Call(wanted=ToolCall(call=number, tool="look", arguments={"n": number}), **changes)


def test_a_fresh_job_asks_its_model():
    assert decide(ASKED) == CallModel(step=1, attempt=1)


def test_a_job_that_has_ended_needs_nothing():
    ended = e.JobCompleted(**stamp(answer="because"))

    assert decide(job_with(ASKED, ended=ended)) is None


def test_an_answer_without_tool_calls_completes_the_job():
    answer = AssistantMessage(text="because")

    assert decide(job_with(ASKED, step=1, messages=(*ASKED.conversation.messages, answer))) == Complete("because")


def test_independent_tool_calls_run_beside_each_other():
    job = job_with(ASKED, step=1, calls=(call("1"), call("2")))

    assert decide(job) == RunTools((call("1"), call("2")))


@pytest.mark.parametrize(
    "ordered",
    [
        {"config": AgentConfig(tools_in_order=True)},
        {"offered": (ToolDefinition(name="look", in_order=True),)},
    ],
    ids=["the agent asks for order", "a tool asks for order"],
)
def test_where_order_is_asked_for_calls_run_one_after_another(ordered):
    job = job_with(ASKED, step=1, calls=(call("1"), call("2")), **ordered)

    assert decide(job) == RunTools((call("1"),))


def test_a_cancel_comes_before_everything_else():
    cancel = e.CancelRequested(**stamp(reason="changed my mind", by="ann"))

    assert decide(job_with(ASKED, calls=(call("1"),), cancel=cancel)) == Cancel("changed my mind", "ann")


def test_a_cancelled_job_first_settles_its_requested_calls():
    cancel = e.CancelRequested(**stamp(reason="changed my mind", by="ann"))
    asked, unknown = call("1", key="k1"), call("2", key="k2", decision_id="1-2", expires_at=NOW)
    job = job_with(ASKED, step=1, calls=(asked, unknown, call("3")), cancel=cancel)

    assert decide(job) == SettleCalls((asked, unknown), "cancelled")


def test_a_dead_holders_open_call_is_first_noted_as_lost():
    asked = e.ModelRequested(**stamp(step=2, attempt=1, attempt_id="a", provider="p", model="m"))
    cancel = e.CancelRequested(**stamp())

    assert decide(job_with(ASKED, step=2, open=asked)) == NoteLost(asked)
    assert decide(job_with(ASKED, step=2, open=asked, cancel=cancel)) == NoteLost(asked)


def test_a_lost_call_is_repeated_at_once_without_limit():
    lost = e.ModelFailed(
        **stamp(step=2, attempt=9, attempt_id="a", error=Failure(code=e.LOST, message="gone"), retryable=True)
    )

    assert decide(job_with(ASKED, step=2, attempt=9, failed=lost)) == CallModel(step=2, attempt=10)


def test_an_unknown_outcome_parks_only_when_nothing_can_run():
    undecided = call("1", key="k1", decision_id="1-1", expires_at=NOW)

    assert decide(job_with(ASKED, step=1, calls=(undecided, call("2")))) == RunTools((call("2"),))
    assert decide(job_with(ASKED, step=1, calls=(undecided,))) == Park(
        Waiting(
            why="needs_decision",
            wait_id="1-1",
            question="Nobody knows whether look did its work: did it?",
            tool="look",
            arguments={"n": "1"},
            expires_at=NOW,
        )
    )


def test_a_decision_is_written_to_the_ledger_or_reruns_the_tool():
    def decided(outcome) -> Call:
        decision = e.DecisionMade(**stamp(decision_id="1-1", outcome=outcome))
        return call("1", key="k1", effect=Effect.ONCE, decision_id="1-1", decision=decision)

    assert decide(job_with(ASKED, step=1, calls=(decided("succeeded"),))) == Resolve(decided("succeeded"))
    assert decide(job_with(ASKED, step=1, calls=(decided("expired"),))) == Resolve(decided("expired"))
    assert decide(job_with(ASKED, step=1, calls=(decided("retry"),))) == RunTools((decided("retry"),))


def test_at_the_step_limit_the_job_answers_with_what_it_has():
    found = ToolMessage(call="1", tool="look", content="half of it")
    job = job_with(ASKED, step=3, messages=(*ASKED.conversation.messages, AssistantMessage(tool_calls=()), found))

    assert decide(job) == Complete("half of it", partial=True, reason="the job's 3 steps are used up")


def test_a_job_at_a_limit_without_text_fails_naming_it():
    late = job_with(ASKED, at=NOW + timedelta(seconds=60))

    assert decide(late) == Fail(
        Failure(code="time_limit", message="the job's 60 s are over and there is nothing to answer with")
    )


def test_past_its_deadline_a_job_settles_begun_tools_only():
    begun = call("1", key="default/j/1/1")
    again = begun._replace(decision_id="1-1", decision=e.DecisionMade(**stamp(decision_id="1-1", outcome="retry")))
    over = job_with(
        ASKED,
        step=1,
        at=ASKED.life.deadline,
        messages=(*ASKED.conversation.messages, AssistantMessage(text="I will look")),
    )
    cut = Complete("I will look", partial=True, reason="the job's 60 s are over")

    assert decide(job_with(over, calls=(begun, call("2")))) == SettleCalls((begun,), "timeout")
    assert decide(job_with(over, calls=(call("2"), call("3")))) == cut
    assert decide(job_with(over, calls=(again,))) == SettleCalls((again,), "timeout")


def test_a_left_child_is_named_though_its_start_was_never_noted():
    """Its holder was killed between the start and the note, and nobody waits for it any longer."""
    wanted = ToolCall(call="1", tool="run_agent", arguments={"agent": "worker", "input": "go"})
    job = job_with(ASKED, step=1, calls=(Call(wanted, key="default/j/1/1", effect=Effect.ONCE),))
    left = e.ChildEnd(job_id="child-1", status=None)

    job = evolve(job, e.CancelRequested(**stamp(reason="enough", by="ann")))
    job = evolve(job, e.ToolCompleted(**stamp(step=1, call="1", tool="run_agent", status="failed", child=left)))

    assert decide(job) == Cancel("enough; told to stop, and had not ended: child-1", "ann")
    assert [(one.job_id, one.agent) for one in job.family.children] == [("child-1", "worker")]
