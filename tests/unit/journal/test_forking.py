"""Where a fork branches off: what it shares, what it does not repeat, and what is refused."""

import importlib.util
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.agents import AgentConfig
from wayline.contracts.jobs import Failure, Fork, ForkedResult, SubmitJob
from wayline.contracts.tools import Effect, ToolError
from wayline.executor.decide.actions import CallModel, RunProgram, RunTools
from wayline.executor.decide.next_action import decide
from wayline.journal import ForkRefused, Job, branch, evolve, fold, prefix_hash

_spec = importlib.util.spec_from_file_location("histories", Path(__file__).with_name("histories.py"))
assert _spec and _spec.loader
histories = sys.modules.setdefault("histories", importlib.util.module_from_spec(_spec))
_spec.loader.exec_module(histories)

Reply = histories.Reply


def history(*replies, **more) -> list[e.Event]:
    return [
        event for record in histories.play(histories.Environment(replies=replies, **more)).records for event in record
    ]


def values(events) -> list[dict]:
    return [event.model_dump(mode="json") for event in events]


def begun(events, fork: Fork) -> Job:
    """Return a fork's state after its first record."""
    shared = branch(values(events), fork)
    job = fold(events[:2])._replace(job_id="f1")
    event = e.JobForked(
        job_id="f1", seq=3, at=events[0].at, trace=events[0].trace, origin=shared.origin, prefix=shared.prefix
    )
    return evolve(job, event)


def fork_after(after: int | None = None, **more) -> Fork:
    return Fork(job_id="j1", after=after, **more)


def seq_of(events, kind, n: int = 0) -> int:
    return [event.seq for event in events if isinstance(event, kind)][n]


def failing(*codes: str | None, effect: Effect = Effect.READ, end: str = "refused") -> list[e.Event]:
    """Return a history of a step for each code, whose one call fails with it; then the job fails."""
    events = history(*(Reply(calls=1) for _ in codes), Reply("no"), max_steps=20)

    def broken(event: e.Event) -> e.Event:
        if isinstance(event, e.ToolRequested):
            return event.model_copy(update={"effect": effect})
        if isinstance(event, e.ToolCompleted) and (code := codes[event.step - 1]):
            error = ToolError(code=code, message="broken")
            return event.model_copy(update={"status": "failed", "error": error, "content": ""})
        if isinstance(event, e.JobCompleted):
            error = Failure(code=end, message="no")
            return e.JobFailed(job_id="j1", seq=event.seq, at=event.at, trace=event.trace, error=error)
        return event

    return [broken(event) for event in events]


@settings(deadline=None)
@given(environment=histories.environments, at=st.integers(1, 200))
def test_a_fork_holds_its_origins_conversation_and_repeats_no_call(environment, at):
    events = [event for record in histories.play(environment).records for event in record]
    after = min(at, len(events))
    try:
        job = begun(events, fork_after(after))
    except ForkRefused:
        return

    origin = fold(events[:after])
    done = {(one.step, one.call) for one in events if isinstance(one, e.ToolCompleted)}
    assert job.conversation.messages[: len(origin.conversation.messages)] == origin.conversation.messages
    assert (job.life.ended, job.life.epoch, job.money.cost_usd) == (None, 0, 0)
    assert all(call.key is None or call.done for call in job.tools.calls)
    asked = {(one.step, one.call) for one in events[:after] if isinstance(one, e.ToolRequested)}
    action = decide(job)
    if isinstance(action, RunTools):
        assert not {(job.model.step, call.wanted.call) for call in action.calls} & asked & done


def test_the_prefix_is_verified_by_its_hash():
    logged = values(history(Reply(calls=1), Reply("done")))

    shared = branch(logged, fork_after(6))

    assert shared.origin.hash == prefix_hash(logged, 6)
    assert shared.origin.hash == branch([*logged[:6], *logged[6:-1]], fork_after(6)).origin.hash
    edited = [*logged[:4], logged[4] | {"at": "2026-01-02T00:00:00Z"}, *logged[5:]]
    assert branch(edited, fork_after(6)).origin.hash != shared.origin.hash


def test_a_result_that_came_after_the_branch_is_taken_along():
    events = history(Reply(calls=2), Reply("done"))
    after = seq_of(events, e.ToolRequested, 1)

    job = begun(events, fork_after(after))

    assert [message.role for message in job.conversation.messages] == ["user", "assistant", "tool", "tool"]
    assert decide(job) == CallModel(2, 1)


def test_a_call_without_any_result_cannot_be_shared():
    events = history(Reply(calls=1), Reply("done"))
    cut = events[: seq_of(events, e.ToolRequested)]

    with pytest.raises(ForkRefused, match="has no result: fork after event"):
        branch(values(cut), fork_after(len(cut)))


def test_a_failed_tool_is_called_again_and_no_model_before_it():
    events = failing(None, None, "tool_failed")

    job = begun(events, fork_after())

    action = decide(job)
    assert isinstance(action, RunTools)
    assert (job.model.step, [call.key for call in action.calls]) == (3, [None])


def test_steps_that_failed_alike_begin_anew_at_the_first_of_them():
    job = begun(failing(None, "tool_failed", "tool_failed"), fork_after())

    assert (job.model.step, type(decide(job))) == (2, RunTools)


def test_a_call_that_may_have_acted_is_not_made_again():
    job = begun(failing(None, "timeout", effect=Effect.ONCE), fork_after())

    assert decide(job) == CallModel(3, 1)


def test_a_job_whose_model_failed_goes_on_before_that_call():
    events = history(Reply(calls=1), Reply(calls=1), Reply(fails=True), max_steps=9)
    assert isinstance(events[-1], e.JobFailed)

    job = begun(events, fork_after())

    assert decide(job) == CallModel(3, 1)
    assert job.conversation.messages[-1].role == "tool"


def test_only_a_failed_job_has_a_step_that_failed():
    with pytest.raises(ForkRefused, match="say after which event"):
        branch(values(history(Reply("done"))), fork_after())


def test_another_tool_result_takes_the_place_of_the_recorded_one():
    events = history(Reply(calls=1), Reply("done"))
    after = seq_of(events, e.ToolCompleted)

    told = begun(events, fork_after(after, tool_result=ForkedResult(content="another")))
    failed = begun(events, fork_after(after, tool_result=ForkedResult(content="broken", failed=True)))

    assert told.conversation.messages[-1].content == "another"
    assert (failed.conversation.messages[-1].content, failed.conversation.messages[-1].failed) == ("broken", True)


def test_other_arguments_are_what_the_fork_calls_with():
    events = history(Reply(calls=2), Reply("done"))

    job = begun(events, fork_after(seq_of(events, e.ModelCompleted), arguments={"2": {"n": 7}}))

    action = decide(job)
    assert isinstance(action, RunTools)
    assert [call.meant.arguments for call in action.calls] == [{"step": 1}, {"n": 7}]


@pytest.mark.parametrize(
    ("fork", "why"),
    [
        (fork_after(900), "the job has"),
        (fork_after(3, tool_result=ForkedResult(content="x")), "is no `tool.completed`"),
        (fork_after(3, arguments={"1": {}}), "is no `model.completed`"),
    ],
)
def test_a_change_that_fits_no_event_is_refused(fork, why):
    with pytest.raises(ForkRefused, match=why):
        branch(values(history(Reply(calls=1), Reply("done"))), fork)


def test_another_input_is_refused_once_a_model_was_told_the_first():
    logged = values(history(Reply("done")))
    other = SubmitJob(agent="a", input="what?").parts()

    assert branch(logged, fork_after(2), other).prefix == ()
    with pytest.raises(ForkRefused, match="another input"):
        branch(logged, fork_after(5), other)


def test_a_fork_of_a_fork_shares_the_conversation_of_both():
    events = history(Reply(calls=1), Reply(calls=1), Reply("done"))
    shared = branch(values(events), fork_after(seq_of(events, e.ToolCompleted)))
    first = e.JobForked(
        job_id="f1", seq=3, at=events[0].at, trace=events[0].trace, origin=shared.origin, prefix=shared.prefix
    )

    again = branch(values([*events[:2], first]), fork_after(3))

    assert again.prefix == shared.prefix


def test_an_approval_of_the_origin_is_none_of_its_fork():
    events = history(Reply(calls=1), Reply("done"))
    after = seq_of(events, e.ModelCompleted)
    named = {"job_id": "j1", "at": events[0].at, "trace": events[0].trace, "approval_id": "a1"}
    asked = e.ApprovalRequested(
        **named,
        seq=after + 1,
        step=1,
        call="1",
        tool="t",
        arguments={"step": 1},
        definition="d",
        policy="p",
        hash="h",
        why="agent",
        expires_at=events[0].at,
    )
    decided = e.ApprovalDecided(**named, seq=after + 2, decision="approved", by="ann")
    approved = [*events[:after], asked, decided]

    job = begun(approved, fork_after(after + 2))

    assert len(fold(approved).tools.approvals) == 1
    assert job.tools.approvals == ()


def program_history(*calls: tuple[str, Effect, str | None, str | None], ends: str | None = "raised") -> list[e.Event]:
    """Return a failed job whose one program made these calls one after another: name, effect, error, who denied it.

    `ends`: how the program ended; None: its job was given up meanwhile.
    """
    events = history(Reply(calls=1), Reply("no"))
    answer = next(event for event in events if isinstance(event, e.ModelCompleted))
    wanted = answer.message.tool_calls[0].model_copy(update={"tool": "run_code", "arguments": {"code": "1"}})
    told = answer.message.model_copy(update={"tool_calls": (wanted,)})
    coder = events[1].model_copy(update={"config": AgentConfig(code=True)})
    logged = [events[0], coder, *events[2 : answer.seq - 1], answer.model_copy(update={"message": told})]

    def note(kind: type[e.Event], **fields) -> None:
        named = {"job_id": "j1", "at": answer.at, "trace": answer.trace}
        logged.append(kind(seq=len(logged) + 1, **named, **fields))

    def end(call: str, tool: str, error: str | None) -> None:
        said = {"error": ToolError(code=error, message="broken")} if error else {"content": "fine"}
        note(e.ToolCompleted, step=1, call=call, tool=tool, status="failed" if error else "success", **said)

    intent = {"step": 1, "arguments": {}}
    note(e.ToolRequested, **intent, call="1", tool="run_code", effect=Effect.READ, key="default/j1/1/1")
    for name, effect, error, denied_by in calls:
        if denied_by is not None:
            asked = {"approval_id": name, "definition": "d", "policy": "p", "hash": "h", "why": "agent"}
            note(e.ApprovalRequested, **intent, call=name, tool="t", program="1", expires_at=answer.at, **asked)
            note(e.ApprovalDecided, approval_id=name, decision="denied", by=denied_by)
        else:
            note(e.ToolRequested, **intent, call=name, tool="t", effect=effect, key=f"default/j1/1/{name}", program="1")
        end(name, "t", error)
    if ends is not None:
        note(e.CodeCompleted, step=1, call="1", status=ends)
        end("1", "run_code", None if ends == "completed" else "tool_failed")
    note(e.JobFailed, error=Failure(code="refused", message="no"))
    return logged


def recorded(job: Job) -> list[tuple[str, bool]]:
    """Return the calls of a fork's program, and whether each has ended."""
    return [(call.wanted.call, call.done is not None) for call in job.code.program_calls]


READ, ONCE = Effect.READ, Effect.ONCE


@pytest.mark.parametrize("ends", ["raised", "completed"])
def test_a_redriven_program_keeps_what_it_did_before_the_failed_call(ends):
    calls = (("c1", ONCE, None, None), ("c2", READ, "tool_failed", None), ("c3", READ, None, None))

    job = begun(program_history(*calls, ends=ends), fork_after())

    assert (recorded(job), job.code.program) == ([("c1", True)], "1")
    action = decide(job)
    assert isinstance(action, RunProgram)
    assert (action.call.key, action.call.span and action.call.span.trace_id) == (
        "default/j1/1/1",
        ids.trace_id("default", "f1"),
    )


def test_a_failure_after_which_a_program_acted_is_not_taken_back():
    calls = (("c1", READ, "tool_failed", None), ("c2", ONCE, None, None), ("c3", READ, "tool_failed", None))

    job = begun(program_history(*calls), fork_after())

    assert recorded(job) == [("c1", True), ("c2", True)]


def test_a_program_that_would_fail_again_is_not_run_again():
    job = begun(program_history(("c1", ONCE, None, None), ("c2", ONCE, "timeout", None)), fork_after())

    assert decide(job) == CallModel(2, 1)
    assert job.conversation.messages[-1].role == "tool"


def test_a_program_cut_off_by_its_job_keeps_all_calls():
    job = begun(program_history(("c1", ONCE, None, None), ("c2", ONCE, "timeout", None), ends=None), fork_after())

    assert recorded(job) == [("c1", True), ("c2", True)]
    assert isinstance(decide(job), RunProgram)


def test_a_denial_before_the_failed_call_of_a_program_stays_one():
    calls = (("c1", ONCE, "denied", "ann"), ("c2", ONCE, None, None), ("c3", READ, "tool_failed", None))

    job = begun(program_history(*calls), fork_after())

    assert recorded(job) == [("c1", True), ("c2", True)]
    assert job.tools.approvals == ()
