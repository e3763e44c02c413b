"""The fold: total on valid logs, blind to what it does not know, and the same wherever a crash falls."""

import importlib.util
import sys
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from wayline.contracts import events as e
from wayline.contracts.chat import AssistantMessage, ToolCall, ToolImage, ToolMessage
from wayline.contracts.jobs import Failure, Waiting
from wayline.contracts.money import Usage
from wayline.contracts.tools import ToolDefinition
from wayline.journal import Call, Job, State, encode, evolve, fold, read_record, unknown_types, view
from wayline.journal.record import decode, progressed, state_after
from wayline.testkit.jobs import job_with
from wayline.testkit.walks import examples

_spec = importlib.util.spec_from_file_location("histories", Path(__file__).with_name("histories.py"))
assert _spec and _spec.loader
histories = sys.modules.setdefault("histories", importlib.util.module_from_spec(_spec))
_spec.loader.exec_module(histories)

TERMINAL = {"job.completed", "job.failed", "job.cancelled"}


@settings(deadline=None)
@given(environment=histories.environments)
def test_every_history_ends_once_and_its_numbers_have_no_gap(environment):
    played = histories.play(environment)

    events = [event for record in played.records for event in record]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [event.type in TERMINAL for event in events] == [False] * (len(events) - 1) + [True]


@settings(max_examples=examples(60), deadline=None)
@given(environment=histories.environments)
def test_a_crash_after_any_record_ends_in_the_same_place(environment):
    whole = histories.play(environment)

    for kept in range(1, len(whole.records) + 1):
        again = histories.resumed(environment, whole.records[:kept])
        assert histories.outcome(again.job) == histories.outcome(whole.job), f"after record {kept}"


def test_a_result_that_no_call_waits_for_counts_for_nothing():
    """Its call was made by what only a newer build understands."""
    trace = e.SpanRef(trace_id="t", span_id="s")
    done = e.ToolCompleted(
        job_id="j", seq=2, at=datetime.now(UTC), trace=trace, step=1, call="1", tool="t", status="success"
    )

    assert evolve(job_with(misread=1), done)._replace(seq=0, at=None) == job_with(misread=1)


def test_a_call_of_an_unknown_tool_is_unloaded():
    trace = e.SpanRef(trace_id="t", span_id="s")
    calls = [
        ToolCall(call="1", tool="known"),
        ToolCall(call="2", tool="far"),
        ToolCall(call="3", tool="use_tool", arguments={"name": "far", "arguments": {}}),
        ToolCall(call="4", tool="use_tool", arguments={}),
    ]
    completed = e.ModelCompleted(
        job_id="j",
        seq=2,
        at=datetime.now(UTC),
        trace=trace,
        step=1,
        attempt=1,
        attempt_id="a",
        message=AssistantMessage(tool_calls=tuple(calls)),
        usage=Usage(),
        cost_usd=None,
        stop_reason="tools",
        duration_ms=1,
    )
    few = tuple(ToolDefinition(name=name) for name in ("known", "use_tool"))

    plain = evolve(job_with(offered=few), completed)
    searching = evolve(job_with(offered=(*few, ToolDefinition(name="tool_search"))), completed)

    assert [call.unloaded for call in plain.tools.calls] == [False] * 4
    assert [call.unloaded for call in searching.tools.calls] == [False, True, True, False]


def test_a_results_images_are_folded_and_default_to_none():
    trace = e.SpanRef(trace_id="t", span_id="s")
    image = ToolImage(media_type="image/png", sha256="0" * 64, size_bytes=3, width=8, height=6, content_base64="AAAA")
    done = e.ToolCompleted(
        job_id="j",
        seq=2,
        at=datetime.now(UTC),
        trace=trace,
        step=1,
        call="1",
        tool="t",
        status="success",
        content="[image image/png, 8x6]",
        images=(image,),
    )
    waiting = job_with(calls=(Call(wanted=ToolCall(call="1", tool="t")),))
    old = orjson.loads(done.model_dump_json(exclude={"images"}))

    [shown] = evolve(waiting, done).conversation.messages
    [shown_before] = evolve(waiting, e.ToolCompleted.model_validate(old)).conversation.messages

    assert isinstance(shown, ToolMessage) and isinstance(shown_before, ToolMessage)
    assert (shown.content, shown.images) == ("[image image/png, 8x6]", (image,))
    assert (shown_before.content, shown_before.images) == (shown.content, ())


@settings(max_examples=examples(60), deadline=None)
@given(environment=histories.environments)
def test_no_finished_tool_call_is_asked_for_again_after_a_crash(environment):
    whole = histories.play(environment)

    for kept in range(1, len(whole.records) + 1):
        again = histories.resumed(environment, whole.records[:kept])
        done: set[tuple[int, str]] = set()
        for event in (event for record in again.records for event in record):
            if isinstance(event, e.ToolRequested):
                assert (event.step, event.call) not in done
            elif isinstance(event, e.ToolCompleted):
                done.add((event.step, event.call))


@settings(max_examples=examples(60), deadline=None)
@given(environment=histories.environments)
def test_an_auxiliary_call_is_made_and_ended_once_despite_crashes(environment):
    whole = histories.play(environment)

    for kept in range(1, len(whole.records) + 1):
        events = [event for record in histories.resumed(environment, whole.records[:kept]).records for event in record]
        begun = [event.purpose for event in events if isinstance(event, e.AuxiliaryRequested)]
        ended = [event.purpose for event in events if isinstance(event, e.AuxiliaryCompleted | e.AuxiliaryFailed)]
        assert begun == ended == ["classification"][: len(begun)], f"after record {kept}"
        assert fold(events).model.aux_open is None


@settings(deadline=None)
@given(environment=histories.environments)
def test_a_log_reads_back_as_it_was_written(environment):
    for record in histories.play(environment).records:
        assert encode(read_record(encode(record))) == encode(record)


@settings(deadline=None)
@given(environment=histories.environments, places=st.lists(st.integers(0, 100), min_size=1, max_size=4))
def test_events_of_a_newer_build_change_only_the_seq(environment, places):
    events = [event for record in histories.play(environment).records for event in record]
    values = decode(encode(events))
    for place in places:
        stranger = {**values[min(place, len(values) - 1)], "type": "job.teleported", "to": "mars"}
        values.insert(min(place, len(values)), stranger)

    job = fold(read_record(orjson.dumps({"events": values})))

    assert histories.outcome(job) == histories.outcome(fold(events))
    assert unknown_types(values) == {"job.teleported"}


@settings(deadline=None)
@given(environment=histories.environments)
def test_a_record_says_in_its_state_what_the_fold_says(environment):
    job, state = Job(), State.NEW
    for record in histories.play(environment).records:
        job = fold(record, job)
        state = state_after(state, record)
        if job.life.ended:
            assert state is State.ENDED
        else:
            # The first record leaves a job new; from then on it is held or parked.
            assert state in (State.NEW, State.ACTIVE, State.PARKED)
            assert (state is State.PARKED) == (job.life.status == "parked")


def test_evolve_never_changes_the_state_it_was_given():
    played = histories.play(histories.Environment(replies=(histories.Reply(calls=2), histories.Reply(text="so"))))
    events = [event for record in played.records for event in record]

    states = [Job()]
    for event in events:
        before = states[-1]
        states.append(evolve(before, event))
        assert before == fold(events[: len(states) - 2])


def test_a_completed_jobs_view_has_answer_and_sums():
    played = histories.play(histories.Environment(replies=(histories.Reply(calls=1), histories.Reply(text="so"))))

    seen = view(played.job)

    assert (seen.status, seen.answer, seen.steps, seen.usage.total, seen.cost_usd) == ("completed", "so", 2, 24, None)
    assert seen.reason is None


def test_the_view_has_the_reason_of_a_partial_or_cancelled_job():
    endless = histories.Environment(replies=(histories.Reply(text="half", calls=1),), max_steps=2)

    seen = [view(histories.play(environment).job) for environment in (endless, replace(endless, cancel_after=1))]

    assert [(job.status, job.partial, job.reason) for job in seen] == [
        ("completed", True, "the job's 2 steps are used up"),
        ("cancelled", False, "enough"),
    ]


def test_a_given_up_jobs_open_auxiliary_call_is_unsettled():
    played = histories.Play(histories.Environment(replies=(histories.Reply(text="so"),)))
    played.begin()
    played.claim()
    named = {"purpose": "classification", "attempt_id": "default/j1/0/a1"}
    played.note(e.AuxiliaryRequested, **named, provider="p", model="m", worst_usd=Decimal(2))
    played.note(e.JobFailed, error=Failure(code="crash_loop", message="gave up"))

    costs = view(played.job).costs

    assert costs is not None
    assert (costs.unsettled_calls, costs.unsettled_lower_usd, costs.unsettled_upper_usd) == (1, 0, 2)


def test_only_a_lost_auxiliary_call_is_no_progress():
    played = histories.play(histories.Environment(replies=(histories.Reply(text="so"),), task="-"))
    [failed] = [event for record in played.records for event in record if isinstance(event, e.AuxiliaryFailed)]
    lost = failed.model_copy(update={"error": Failure(code=e.LOST, message="gone")})

    assert progressed([failed]) and not progressed([lost])


def test_the_time_that_a_job_was_parked_is_not_its_own():
    played = histories.Play(histories.Environment(replies=(histories.Reply(text="so"),)))
    played.begin()
    whole = played.job.life.deadline
    waiting = Waiting(why="needs_decision", wait_id="1-1")
    for _ in range(2):
        played.note(e.JobParked, waiting=waiting, signals_seen=0)
        parked_at = played.job.life.parked_at
        played.note(e.DecisionMade, decision_id="1-1", outcome="succeeded")
        played.note(e.JobResumed)

        whole += played.job.at - parked_at
        assert played.job.life.deadline == whole


def test_a_model_with_one_unpriced_call_has_unknown_cost():
    asked = histories.Play(histories.Environment(replies=(histories.Reply(text="so"),)))
    asked.begin()
    asked.claim()
    for step, usd in enumerate((Decimal(1), None, Decimal(2)), 1):
        call = {"step": step, "attempt": 1, "attempt_id": f"default/j1/{step}/m1"}
        asked.note(e.ModelRequested, **call, provider="p", model="m")
        fields = {"message": AssistantMessage(text="so"), "usage": Usage(input=1), "stop_reason": "end"}
        asked.note(e.ModelCompleted, **call, **fields, cost_usd=usd, duration_ms=1)

    assert (asked.job.money.cost_usd, asked.job.money.costs.model) == (None, {"p/m": None})


def test_histories_hold_summaries_fallbacks_and_waits_for_a_budget():
    """What is generated is what the properties above speak of."""
    recovering = histories.Reply(text="so", fails=True, recovers=True)
    environment = histories.Environment(
        replies=(histories.Reply(calls=1), recovering), compacts=frozenset({2}), waits=frozenset({2})
    )

    played = histories.play(environment)

    kinds = [event.type for record in played.records for event in record]
    assert {"context.compacted", "job.rerouted", "job.parked", "budget.raised", "job.completed"} <= set(kinds)
    assert kinds.count("context.compacted") == 1
    assert played.job.routing.route.model == histories.SISTER.model


def test_histories_hold_corrections():
    replies = (histories.Reply(text="words"), histories.Reply(text="{}"))

    played = histories.play(histories.Environment(replies=replies, json_only=True))

    notes = [event.note.label for record in played.records for event in record if isinstance(event, e.ContextInjected)]
    assert notes == ["CORRECTION"]
    assert played.job.life.status == "completed"
