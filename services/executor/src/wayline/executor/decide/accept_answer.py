"""What becomes of a model's last word: the answer, a turn to mend it, a stronger model, or a failure. Pure."""

from __future__ import annotations

from typing import Final, Literal

from wayline.contracts.chat import AssistantMessage, NoteMessage, ToolMessage
from wayline.contracts.events import LOST
from wayline.contracts.jobs import Failure
from wayline.executor.decide.absent_tools import began_without
from wayline.executor.decide.actions import Action, Complete, Correct, Fail
from wayline.executor.decide.final_result import final_result, missing_records, without_result
from wayline.executor.decide.retry_or_reroute import escalate, next_fallback
from wayline.journal import Job
from wayline.llm.json_protocol import needs_correction
from wayline.llm.structured import problem, unwrapped
from wayline.routing import confidence_needed

Wrong = Literal["envelope", "schema", "empty"]
CORRECTIONS_MAX: dict[Wrong, int] = {"envelope": 2, "schema": 1, "empty": 1}
"""Turns a model gets to mend its words, by what is wrong with them."""
MISREAD_MAX = 2
"""Steps in a row without one readable tool call; so many, and a stronger model goes on."""
CUT = {
    "max_tokens": "the answer was cut at its longest",
    "context_full": "the answer was cut: the model's window is full",
    "paused": "the answer was cut: its provider paused it",
    "unknown": "the answer may be cut: its provider ended it with a word that is not known",
}
CUT_BY_TIME: Final = "time_limit"
"""Why a model stopped whose job had no more time: what it had written is kept."""
REFUSAL_MAX_CHARS = 500
MISSING = "That answer comes too early: this task requires tools that have not run yet: {}."
EMPTY = "That answer is empty. Say the answer, or say what is missing for one."
NO_WORDS = "the model ended without an answer"
PLAIN = "the model did not keep to its protocol: this is its plain text"


def after_answer(job: Job, answer: AssistantMessage, *, more: bool) -> Action:
    """Return what a message without tool calls means; `more`: there is a step left to mend it in."""
    if job.model.stop_reason == "refused":
        assert job.routing.route is not None
        # The model's own decision, not a breakdown: another one is asked only where the agent says so.
        if more and job.routing.config is not None and job.routing.config.routing.on_refusal == "fallback":
            fallen = next_fallback(job, why=f"{job.routing.route.name} refused to answer")
            if fallen is not None:
                return fallen
        words = f": {answer.text[:REFUSAL_MAX_CHARS]}" if answer.text else ""
        named = f" ({job.model.refusal})" if job.model.refusal else ""
        return Fail(Failure(code="refused", message=f"{job.routing.route.name} refused to answer{named}{words}"))
    if job.model.stop_reason == CUT_BY_TIME:
        assert job.routing.limits is not None
        return cut_short(job, f"the job's {job.routing.limits.max_seconds:g} s are over", CUT_BY_TIME)
    wrong = _wrong(job, answer)
    if wrong is not None:
        return _mend(job, answer, *wrong, more=more)
    missing = _missing_tools(job)
    if missing and more and not job.tools.sent_back:
        return Correct(f"{MISSING.format(missing)} Call each of them first, then answer.", about="required_tools")
    if more and (up := escalate_weak(job, answer)):
        return up
    cut = _cut(job)
    # Words or a fence around the JSON are not worth another call.
    text = (
        answer.text
        if job.routing.config is None or job.routing.config.answer_schema is None
        else unwrapped(answer.text)
    )
    lacking = f"the answer was given without required tools: {missing}" if missing else _began_without(job)
    return final_result(job, Complete(text, answer.citations, partial=cut is not None, reason=cut or lacking))


def _began_without(job: Job) -> str | None:
    return None if job.routing.config is None else began_without(job.routing.config.tools, job.tools.absent)


def _missing_tools(job: Job) -> str:
    """Return the required tools that have not run yet, by name."""
    required = job.life.submitted.options.required_tools if job.life.submitted else ()
    return ", ".join(sorted({*(set(required) - set(job.tools.ran)), *missing_records(job)}))


def _cut(job: Job) -> str | None:
    """Return why an answer is not whole; None: it is."""
    why, room = CUT.get(job.model.stop_reason), job.model.asked.room_tokens if job.model.asked else None
    if job.model.stop_reason != "max_tokens" or room is None:
        return why
    return f"{why}: what the job may spend paid {room} tokens of output, and a larger options.budget_usd pays more"


def escalate_weak(job: Job, answer: AssistantMessage) -> Action | None:
    """Choose a stronger model for a step that was weak, where the agent lets the router choose."""
    assert job.routing.config is not None
    routing = job.routing.config.routing
    if routing.mode != "auto" or job.routing.escalated:
        return None
    final = job.conversation.messages[-1] is answer
    used_tools = not final or bool(job.tools.repeats)
    needed = confidence_needed(job.routing.config, used_tools=used_tools)
    if answer.confidence is not None and answer.confidence < needed:
        why = f"the model was unsure ({answer.confidence:.2f} of {needed:.2f})"
        return escalate(
            job, why=why, note="That answer was not sure enough: think again, and answer." if final else None
        )
    if not final and job.tools.misread >= MISREAD_MAX:
        return escalate(job, why=f"no tool call of {job.tools.misread} steps could be read")
    return None


def cut_short(job: Job, reason: str, code: str) -> Complete | Fail:
    """End at a limit with what there is: the model's last words, else what its tools found.

    An agent with an output schema is given what fits it, or nothing.
    """
    said = [m for m in job.conversation.messages if m.role == "assistant" and m.text.strip()]
    schema = job.routing.config.answer_schema if job.routing.config is not None else None
    if schema is not None:
        fitting = (unwrapped(m.text) for m in reversed(said) if problem(schema, unwrapped(m.text)) is None)
        text = next(fitting, None)
        message = f"{reason} and nothing that was said fits the output schema"
        failure = Failure(code=code, message=message)
        return without_result(job, failure) if text is None else final_result(job, _partial(text, reason))
    if said:
        return _partial(said[-1].text, reason)
    found = [m for m in job.conversation.messages if isinstance(m, ToolMessage) and not m.failed]
    if found:
        return Complete(found[-1].content, found[-1].citations, partial=True, reason=reason)
    failed = job.model.failed
    if failed is not None and failed.error.code != LOST:
        # What the provider said last is why there is nothing, whatever was in the way of the next try.
        return Fail(Failure(code=failed.error.code, message=f"{failed.error.message.removesuffix('.')}; {reason}"))
    return Fail(Failure(code=code, message=f"{reason} and there is nothing to answer with"))


def _partial(text: str, reason: str) -> Complete:
    return Complete(text, (), partial=True, reason=reason)


def _wrong(job: Job, answer: AssistantMessage) -> tuple[Wrong, str] | None:
    """Return what is wrong with an answer, in words for its model."""
    assert job.routing.config is not None
    offered = [tool.name for tool in job.tools.offered or ()]
    if job.routing.card.tools == "json" and (words := needs_correction(answer, offered)):
        return "envelope", words
    schema = job.routing.config.answer_schema
    if schema is not None and (found := problem(schema, unwrapped(answer.text))):
        return "schema", f"That answer does not fit its JSON Schema: {found}. Answer again, with nothing but the JSON."
    if schema is None and not answer.text.strip() and job.model.stop_reason not in CUT:
        return "empty", EMPTY
    return None


def _mend(job: Job, answer: AssistantMessage, wrong: Wrong, words: str, *, more: bool) -> Action:
    assert job.routing.config is not None
    if more and _corrections(job, wrong) < CORRECTIONS_MAX[wrong]:
        return Correct(words)
    if more and job.routing.config.routing.mode == "auto":
        up = escalate(job, why=f"the model's {wrong} was wrong to the last", note=words)
        if up:
            return up
    if wrong == "empty":
        return _without_words(job)
    if wrong == "schema":
        return without_result(job, Failure(code="invalid_output", message=words))
    return _plain(job, answer)


def _plain(job: Job, answer: AssistantMessage) -> Complete | Fail:
    """End with words outside of the JSON protocol; an agent with an output schema is given no other words."""
    schema = job.routing.config.answer_schema if job.routing.config is not None else None
    if schema is None:
        return Complete(answer.text, answer.citations, reason=PLAIN)
    text = unwrapped(answer.text)
    if found := problem(schema, text):
        return without_result(job, Failure(code="invalid_output", message=f"{PLAIN}, and no JSON of it fits: {found}"))
    return final_result(job, Complete(text, answer.citations, reason=PLAIN))


def _without_words(job: Job) -> Complete:
    """End a job whose model has nothing more to say: what it said before, or its tools found, is never the whole."""
    ended = cut_short(job, NO_WORDS, "empty_answer")
    return ended if isinstance(ended, Complete) else Complete("", partial=True, reason=NO_WORDS)


def _corrections(job: Job, wrong: Wrong) -> int:
    """Count how often in a row the model was told that this is wrong."""
    told, corrected = 0, False
    for message in reversed(job.conversation.messages[:-1]):
        if isinstance(message, NoteMessage):
            corrected = corrected or message.label == "CORRECTION"
        elif isinstance(message, AssistantMessage) and corrected:
            found = _wrong(job, message)
            told += found is not None and found[0] == wrong
            corrected = False
        else:
            break
    return told
