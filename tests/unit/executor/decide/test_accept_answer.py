"""What becomes of a model's last word: the answer, a turn to mend it, a stronger model, or a failure."""

from typing import Any

import pytest

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig, Routing
from wayline.contracts.tools import ToolDefinition
from wayline.executor.decide.accept_answer import EMPTY, NO_WORDS, PLAIN
from wayline.executor.decide.actions import CallModel, Complete, Correct, Fail, Reroute

from ..logs import Log, card

TOOLS = (ToolDefinition(name="t"),)
JSON_CARD = card("acme/primary", tools="json")
SCHEMA = {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}
STRUCTURED = AgentConfig(output_schema=SCHEMA)
UP = {"primary": "acme/primary", "escalation": "acme/strong"}
BROKEN = '{"action": "respond", "respo'


def unread(log: Log, step: int) -> Log:
    """The model's envelope at this step cannot be read."""
    return log.ask(step, tools=TOOLS if step == 1 else None).answer(BROKEN, read_as="text")


def test_text_outside_the_protocol_is_corrected_twice_then_marked_as_answer():
    log = Log(cards=(JSON_CARD,))

    for step in (1, 2):
        correction = unread(log, step).next
        assert isinstance(correction, Correct)
        assert log.take(correction).next == CallModel(step + 1, 1)

    assert unread(log, 3).next == Complete(BROKEN, reason=PLAIN)


def test_other_notes_in_between_do_not_start_the_count_anew():
    log = Log(config=STRUCTURED).ask().answer("{}")
    log.take(log.next).say(e.ContextInjected, note={"label": "CONTEXT UPDATE", "text": "news"})

    assert isinstance(log.ask(2).answer("{}").next, Fail)


def test_an_earlier_correction_leaves_both_correction_turns():
    log = Log(cards=(JSON_CARD,))
    log.take(unread(log, 1).next)
    log.ask(2).answer("", "t").result()

    for step in (3, 4):
        correction = unread(log, step).next
        assert isinstance(correction, Correct)
        log.take(correction)


def test_text_of_a_model_with_native_tools_needs_no_correction():
    log = unread(Log(), 1)

    assert log.next == Complete(BROKEN)


def test_an_answer_unfit_for_its_schema_is_corrected_once():
    log = Log(config=STRUCTURED).ask().answer("{}")

    correction = log.next
    assert isinstance(correction, Correct) and "city" in correction.text
    assert log.take(correction).ask(2).answer('{"city": "Ulm"}').next == Complete('{"city": "Ulm"}')


def test_a_structured_answer_in_a_fence_is_what_is_inside():
    log = Log(config=STRUCTURED).ask().answer('Here it is:\n```json\n{"city": "Ulm"}\n```')

    ended = log.next

    assert isinstance(ended, Complete) and ended.answer.replace(" ", "") == '{"city":"Ulm"}'


def test_a_structured_answer_that_stays_wrong_fails_and_names_the_field():
    log = Log(config=STRUCTURED).ask().answer("{}")

    failed = log.take(log.next).ask(2).answer("{}").next

    assert isinstance(failed, Fail) and failed.error.code == "invalid_output"
    assert "city" in failed.error.message


def test_corrections_for_protocol_and_schema_are_counted_apart():
    log = Log(config=STRUCTURED, cards=(JSON_CARD,))
    for step in (1, 2):
        log.take(unread(log, step).next)

    mended = log.ask(3).answer("{}", read_as="json").next

    assert isinstance(mended, Correct) and "city" in mended.text


def test_where_no_step_is_left_nothing_is_corrected():
    plain = unread(Log(cards=(JSON_CARD,), max_steps=1), 1)
    structured = Log(config=STRUCTURED, max_steps=1).ask().answer("{}")

    assert plain.next == Complete(BROKEN, reason=PLAIN)
    assert isinstance(structured.next, Fail)


def test_a_stronger_model_mends_what_the_first_could_not():
    log = Log(config=STRUCTURED, slots=UP).ask().answer("{}")
    log.take(log.next).ask(2).answer("{}")

    up = log.next

    assert isinstance(up, Reroute) and (up.cause, up.route.name) == ("escalation", "acme/strong")
    assert log.take(up).next == CallModel(3, 1)
    assert isinstance(log.ask(3).answer("{}").next, Fail), "and once only"


def test_an_unsure_answer_goes_to_a_stronger_model_once():
    log = Log(slots=UP).ask().answer("perhaps", confidence=0.4)

    up = log.next
    assert isinstance(up, Reroute) and up.cause == "escalation"
    assert up.route.reason.startswith("the model was unsure (0.40 of 0.60)")
    assert log.take(up).next == CallModel(2, 1)
    assert log.ask(2).answer("still perhaps", confidence=0.4).next == Complete("still perhaps")


def test_an_unsure_step_with_tools_runs_them_first():
    log = Log(slots=UP).ask().answer("", "t", confidence=0.1)
    assert not isinstance(log.next, Reroute)

    up = log.result().next

    assert isinstance(up, Reroute) and up.note is None
    assert log.take(up).next == CallModel(2, 1)


def test_sure_locked_and_strongest_answers_do_not_escalate():
    locked = AgentConfig(routing=Routing(mode="locked"))

    assert Log(slots=UP).ask().answer("so", confidence=0.6).next == Complete("so")
    assert Log(slots=UP).ask().answer("so").next == Complete("so")
    assert Log(slots=UP, config=locked).ask().answer("so", confidence=0.1).next == Complete("so")
    assert Log().ask().answer("so", confidence=0.1).next == Complete("so")


def test_two_steps_without_a_valid_tool_call_escalate():
    log = Log(slots=UP).ask().answer("", "t").result(error="invalid_arguments")
    assert log.next == CallModel(2, 1)

    up = log.ask(2).answer("", "t").result(error="unknown_tool").next

    assert isinstance(up, Reroute) and "2 steps" in up.route.reason


def test_a_readable_call_in_between_starts_the_count_anew():
    log = Log(slots=UP).ask().answer("", "t").result(error="invalid_arguments")
    log.ask(2).answer("", "t").result(error="tool_failed")
    log.ask(3).answer("", "t").result(error="invalid_arguments")

    assert log.next == CallModel(4, 1)


def test_a_refusal_fails_the_job_and_no_other_model_is_asked():
    ended = Log(fallbacks=("other/spare",), slots=UP).ask().answer("I will not.", stop="refused").next

    assert isinstance(ended, Fail)
    assert (ended.error.code, ended.error.message) == ("refused", "acme/primary refused to answer: I will not.")


def test_an_answer_that_was_cut_is_partial_and_says_so():
    ended = Log().ask().answer("The moon and", stop="max_tokens").next

    assert isinstance(ended, Complete) and ended.partial and "cut" in (ended.reason or "")


def test_an_answer_that_money_cut_says_what_pays_more():
    ended = Log().ask(room_tokens=900).answer("The moon and", stop="max_tokens").next

    assert isinstance(ended, Complete) and ended.partial
    assert ended.reason == (
        "the answer was cut at its longest: what the job may spend paid 900 tokens of output, and a larger "
        "options.budget_usd pays more"
    )


def test_a_correction_stays_in_the_history():
    log = Log(cards=(JSON_CARD,))
    log.take(unread(log, 1).next)

    assert [message.role for message in log.job.conversation.messages] == ["user", "assistant", "note"]
    assert isinstance(log.events[-1], e.ContextInjected)


@pytest.mark.parametrize(("style", "confidence", "up"), [("tool_first", 0.9, True), ("direct", 0.9, False)])
def test_an_unsure_answer_without_tools_escalates_by_its_style(style, confidence, up):
    log = Log(config=AgentConfig(style=style), slots={"primary": "acme/primary", "escalation": "acme/strong"})

    assert isinstance(log.ask().answer("so it is", confidence=confidence).next, Reroute) is up


def test_after_a_tool_ran_the_confidence_of_the_agent_is_enough():
    log = Log(config=AgentConfig(style="tool_first"), slots={"primary": "acme/primary", "escalation": "acme/strong"})
    log.ask().answer("let me see", "t").result()

    assert isinstance(log.ask(2).answer("so it is", confidence=0.9).next, Complete)


def test_an_empty_answer_is_corrected_once_then_partial():
    log = Log().ask().answer("Let me look.", "t").result().ask(2).answer("")

    correction = log.next
    assert correction == Correct(EMPTY)
    ended = log.take(correction).ask(3).answer(" ").next

    assert ended == Complete("Let me look.", partial=True, reason=NO_WORDS)


def test_an_empty_answer_without_earlier_words_is_partial():
    log = Log(max_steps=1).ask().answer("")

    assert log.next == Complete("", partial=True, reason=NO_WORDS)


def test_a_cut_answer_without_words_is_not_corrected():
    ended = Log().ask().answer("", stop="max_tokens").next

    assert isinstance(ended, Complete) and ended.partial


def test_an_agent_with_a_schema_is_given_no_prose():
    log = Log(config=STRUCTURED, max_steps=1).ask().answer("Let me look.", "t").result()

    failed = log.next

    assert isinstance(failed, Fail) and failed.error.code == "step_limit"


@pytest.mark.parametrize(("on_refusal", "goes_on"), [("fail", False), ("fallback", True)])
def test_a_refusal_goes_to_a_fallback_where_its_agent_says_so(on_refusal: Any, goes_on: bool):
    config = AgentConfig(routing=Routing(on_refusal=on_refusal, fallbacks=("other/spare",)))
    log = Log(config=config, fallbacks=("other/spare",)).ask().answer("I cannot help.", stop="refused")

    action = log.next

    assert isinstance(action, Reroute if goes_on else Fail)
    if goes_on:
        log.take(action)
        assert [message.role for message in log.job.conversation.messages] == ["user"]
        assert log.next == CallModel(2, 1)


def test_the_last_fallback_that_refuses_fails_the_job():
    config = AgentConfig(routing=Routing(on_refusal="fallback", fallbacks=("other/spare",)))
    log = Log(config=config, fallbacks=("other/spare",)).ask().answer("No.", stop="refused")
    log.take(log.next).ask(2).answer("No.", stop="refused")

    failed = log.next

    assert isinstance(failed, Fail) and failed.error.code == "refused"
