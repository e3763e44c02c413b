"""What a job did, read from its log."""

from __future__ import annotations

from typing import Any

from wayline.console.render.steps import newest_of, steps_of


def said(step: int, text: str, *calls: str) -> dict[str, Any]:
    wanted = [{"call": call, "tool": "search", "arguments": {"q": call}} for call in calls]
    return {"type": "model.completed", "step": step, "message": {"text": text, "tool_calls": wanted, "thinking": ""}}


def begun(step: int, call: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "tool.requested",
        "step": step,
        "call": call,
        "tool": "search",
        "arguments": {"q": call},
        "effect": "read",
        **more,
    }


def ended(step: int, call: str, **more: Any) -> dict[str, Any]:
    fields = {"status": "success", "content": "found", "full": None, "duration_ms": 5.0, "size_bytes": 5, "error": None}
    return {"type": "tool.completed", "step": step, "call": call, "tool": "search", **fields, **more}


def test_calls_are_seen_before_while_and_after_they_run():
    [step] = steps_of([said(1, "I look it up.", "1", "2", "3"), begun(1, "1"), begun(1, "2"), ended(1, "1")])

    assert (step.number, step.thought) == (1, "I look it up.")
    assert [call.status for call in step.calls.values()] == ["completed", "running", "queued"]


def test_a_failed_call_shows_its_error_and_cut_results_their_size():
    [step] = steps_of(
        [
            said(1, "", "1", "2"),
            ended(1, "1", status="failed", content="", error={"code": "timeout", "message": "no answer in 60 s"}),
            ended(1, "2", content="beginning", full="all of it", size_bytes=90_000, tokens=3),
        ]
    )

    assert [(call.status, call.output) for call in step.calls.values()] == [
        ("failed", "no answer in 60 s"),
        ("completed", "beginning"),
    ]
    assert step.calls["2"].shortened == "shortened for the model: 3 of about 30,000 tokens"
    assert step.calls["2"].whole == "all of it"


def test_a_step_that_only_answers_is_no_step_of_the_page():
    assert steps_of([said(1, "Yes."), {"type": "job.completed"}]) == []


def test_calls_of_a_program_stand_under_it():
    [step] = steps_of([said(1, "", "1"), begun(1, "1"), begun(1, "c1", program="1"), begun(1, "c2", program="gone")])

    assert [(key, list(nested)) for key, _, nested in step.cards] == [("1", ["c1"]), ("c2", [])]


def test_a_fork_has_the_steps_that_it_shares_with_its_origin():
    shared = [said(1, "I look.", "1"), begun(1, "1"), ended(1, "1", content="another result")]
    steps = steps_of([{"type": "job.forked", "prefix": shared}, said(2, "I write.", "1"), begun(2, "1")])

    assert [(step.number, [call.output for call in step.calls.values()]) for step in steps] == [
        (1, ["another result"]),
        (2, [""]),
    ]


def test_of_many_calls_the_newest_are_shown():
    calls = [str(number) for number in range(3)]
    steps = steps_of([event for step in range(1, 5) for event in (said(step, "I look.", *calls), begun(step, "0"))])

    shown, left_out = newest_of(steps, 4)

    assert [(step.number, list(step.calls)) for step in shown] == [(3, ["2"]), (4, calls)]
    assert left_out == 8
    assert newest_of(steps, 100) == (steps, 0)


def test_what_the_platform_told_stands_with_the_step_that_read_it():
    note = {"label": "MEMORY", "text": "Ann likes short answers."}
    asked = {"type": "model.requested", "attempt": 1}
    log = [
        {"type": "memory.injected", "note": note},
        {**asked, "step": 1},
        said(1, "I look.", "1"),
        {"type": "context.injected", "note": {**note, "label": "CORRECTION"}},
        {**asked, "step": 2},
        said(2, "So it is."),
        {**asked, "step": 3},
        said(3, "That is all."),
    ]

    assert [(step.number, [note.label for note in step.notes]) for step in steps_of(log)] == [
        (1, ["MEMORY"]),
        (2, ["CORRECTION"]),
    ]
