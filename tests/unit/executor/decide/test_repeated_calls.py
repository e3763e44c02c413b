"""A model that makes the same tool call again and again is answered from the log, then its job ends."""

import pytest

from wayline.contracts import events as e
from wayline.contracts.chat import ToolCall
from wayline.contracts.jobs import JobOptions
from wayline.contracts.tools import Effect, ToolDefinition, ToolError
from wayline.executor.decide.actions import CallModel, Complete, Correct, Fail, Park, RunTools
from wayline.executor.decide.repeated_calls import answered_before
from wayline.journal import Call

from ..logs import AT, Log


def calling(log: Log, *wanted: tuple[str, dict], effect: Effect = Effect.READ) -> Log:
    """The model asks for these calls in its next step."""
    tools = tuple(ToolDefinition(name=name, effect=effect) for name in dict(wanted))
    log.ask(log.job.model.step + 1, tools=tools if log.job.tools.offered is None else None)
    log.answer("let me see")
    completed = log.events.pop()
    calls = tuple(ToolCall(call=str(n), tool=name, arguments=values) for n, (name, values) in enumerate(wanted, 1))
    log.events.append(
        completed.model_copy(update={"message": completed.message.model_copy(update={"tool_calls": calls})})
    )
    return log


def ending(log: Log, content: str = "found", *, call: str = "1", tool: str = "look", **more) -> Log:
    """A call of the step ends."""
    step = log.job.model.step
    log.say(e.ToolRequested, step=step, call=call, tool=tool, arguments={}, effect=Effect.READ, key=f"{step}{call}")
    status = "failed" if more.get("error") else "success"
    return log.say(e.ToolCompleted, step=step, call=call, tool=tool, status=status, content=content, **more)


def after(times: int, effect: Effect = Effect.READ, **ended) -> Log:
    """A job that has looked so many times."""
    log = Log()
    for _ in range(times):
        ending(calling(log, ("look", {"a": 1, "b": 2}), effect=effect), **ended)
    return log


def looked(times: int, effect: Effect = Effect.READ, **ended) -> Log:
    """A job that has looked so many times and is about to look again."""
    return calling(after(times, effect, **ended), ("look", {"b": 2, "a": 1}), effect=effect)


def answered(log: Log) -> str | None:
    same = answered_before(log.job, log.job.tools.calls[0])
    return f"{same.step}/{same.number}" if same else None


def test_the_third_identical_call_is_answered_with_the_first_result():
    assert [answered(looked(times)) for times in (0, 1, 2, 3)] == [None, None, "1/1", "1/1"]


def test_an_answer_from_the_log_counts_as_a_repeat():
    log = ending(looked(2), "found\n[a note]", repeat_of="1/1")
    log = ending(calling(log, ("look", {"a": 1, "b": 2})), "found\n[a note]", repeat_of="1/1")

    action = calling(log, ("look", {"a": 1, "b": 2})).next

    assert isinstance(action, Complete) and action.partial and action.answer == "let me see"
    assert action.reason is not None and "loop: it called look 4 times with the same arguments" in action.reason


@pytest.mark.parametrize("times", [0, 1, 2, 3])
def test_a_loop_ends_no_earlier_than_the_fifth_call(times):
    assert isinstance(looked(times).next, RunTools)
    assert isinstance(looked(4).next, Complete)


def test_results_that_differ_are_no_loop():
    log = Log()
    for n in range(6):
        ending(calling(log, ("look", {})), f"found {n}")
    calling(log, ("look", {}))

    assert answered(log) is None and isinstance(log.next, RunTools)


def test_a_result_that_changed_is_counted_from_one():
    log = ending(looked(1), "something else")

    assert answered(calling(log, ("look", {"a": 1, "b": 2}))) is None


def test_other_arguments_are_another_call():
    assert answered(calling(ending(looked(1)), ("look", {"a": 1, "b": 3}))) is None


@pytest.mark.parametrize("other", [True, 1.0, "1"])
def test_arguments_that_only_python_holds_equal_are_another_call(other):
    log = Log()
    for _ in range(2):
        ending(calling(log, ("look", {"a": 1})))

    assert answered(calling(log, ("look", {"a": other}))) is None
    assert answered(calling(log, ("look", {"a": 1}))) == "1/1"


@pytest.mark.parametrize("effect", [Effect.ONCE, Effect.RECONCILE])
def test_a_tool_with_effects_is_called_each_time_within_a_loop(effect):
    assert answered(looked(3, effect)) is None and isinstance(looked(3, effect).next, RunTools)
    assert isinstance(looked(4, effect).next, Complete)


@pytest.mark.parametrize(("code", "again"), [("timeout", None), ("unavailable", None), ("tool_failed", "1/1")])
def test_an_error_that_may_pass_is_asked_for_again(code, again):
    assert answered(looked(2, error=ToolError(code=code, message="no"))) == again


def test_a_call_that_has_begun_is_never_a_loop():
    log = looked(4)
    log.say(e.ToolRequested, step=5, call="1", tool="look", arguments={}, effect=Effect.READ, key="k")

    assert isinstance(log.next, RunTools)


def test_a_loop_ends_only_after_the_calls_beside_it():
    log = calling(after(4, Effect.ONCE), ("look", {"a": 1, "b": 2}), ("press", {}), effect=Effect.ONCE)
    log.say(e.ToolRequested, step=5, call="2", tool="press", arguments={}, effect=Effect.ONCE, key="k")
    assert log.next == RunTools((log.job.tools.calls[1],))

    log.say(e.ToolUnknown, step=5, call="2", tool="press", key="k", decision_id="d", expires_at=AT)
    assert isinstance(log.next, Park) and log.next.waiting.wait_id == "d"

    log.say(e.ToolCompleted, step=5, call="2", tool="press", status="success")
    assert isinstance(log.next, Complete)


def test_a_loop_without_words_or_results_fails():
    log = looked(4, error=ToolError(code="tool_failed", message="no"))
    log.events[:] = [
        event.model_copy(update={"message": event.message.model_copy(update={"text": ""})})
        if isinstance(event, e.ModelCompleted)
        else event
        for event in log.events
    ]

    assert isinstance(log.next, Fail) and log.next.error.code == "loop"


def test_the_table_of_repeats_is_bounded():
    log = Log(max_steps=1_000)
    for n in range(70):
        ending(calling(log, ("look", {"n": n})))

    assert len(log.job.tools.repeats) == 64
    assert log.job.tools.repeated(ToolCall(call="1", tool="look", arguments={"n": 5})) is None
    assert log.job.tools.repeated(ToolCall(call="1", tool="look", arguments={"n": 69})) is not None


def requiring(*tools: str, max_steps: int = 9) -> Log:
    return Log(options=JobOptions(required_tools=tools), max_steps=max_steps)


def test_an_answer_before_its_required_tools_is_sent_back_once():
    log = ending(calling(requiring("look", "listen"), ("look", {})))
    log.ask(2).answer("enough")

    action = log.next
    assert isinstance(action, Correct) and "listen" in action.text and "look" not in action.text

    log.say(e.ContextInjected, note={"label": "CORRECTION", "text": action.text}, about=action.about)
    assert log.next == CallModel(3, 1)
    log.ask(3).answer("enough, I said")
    assert log.next == Complete("enough, I said", reason="the answer was given without required tools: listen")


def test_an_answer_after_all_required_tools_ran_is_accepted():
    log = ending(calling(requiring("look"), ("look", {})), error=ToolError(code="tool_failed", message="no"))

    assert log.ask(2).answer("done").next == Complete("done")


def test_a_refused_call_does_not_count_as_run():
    log = ending(calling(requiring("look"), ("look", {})), error=ToolError(code="invalid_arguments", message="no"))

    assert isinstance(log.ask(2).answer("done").next, Correct)


def test_without_a_step_left_the_answer_is_not_sent_back():
    action = requiring("look", max_steps=1).ask(1).answer("done").next

    assert isinstance(action, Complete) and action.reason is not None and "look" in action.reason


def test_a_required_tool_reached_through_use_tool_counts():
    log = calling(requiring("look"), ("use_tool", {"name": "look", "arguments": {}}))
    assert Call(log.job.tools.calls[0].wanted).meant.tool == "look"

    assert ending(log).ask(2).answer("done").next == Complete("done")
