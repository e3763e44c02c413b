"""When a conversation is summarised, which part of it, by whom, and that nothing is torn apart."""

from __future__ import annotations

from decimal import Decimal
from itertools import cycle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import AssistantMessage, TextPart, ToolCall, ToolImage, ToolMessage, UserMessage, Verbatim
from wayline.contracts.jobs import Failure, Route
from wayline.contracts.models import MediaRules, ModelCard
from wayline.contracts.money import Usage
from wayline.contracts.tools import Effect
from wayline.contracts.working_context import WorkingContext
from wayline.executor.decide import compaction
from wayline.executor.decide.actions import CallModel, Compact, NoteLost
from wayline.executor.decide.compaction import (
    AGAIN_AFTER_STEPS,
    END_SHARE,
    START_SHARE,
    SUMMARY_TOKENS_MAX,
    TASK_BYTES_MAX,
    note,
    question,
)
from wayline.journal import with_history
from wayline.llm.tokens import BYTES_PER_TOKEN, estimate
from wayline.testkit.walks import examples

from ..logs import PRIMARY, ROUTE, Log, card

WINDOW = 20_000
SMALL = PRIMARY.model_copy(update={"context_window": WINDOW})
FLASH = ModelCard(provider="acme", model="flash", tier="flash", context_window=200_000)
RESULT = "found " * 500
HISTORY = (UserMessage(parts=(TextPart(text="Hello."),)), AssistantMessage(text="Hello."))
BLOCKS = Verbatim(provider="acme", model="primary", blocks=({"type": "thinking", "signature": "s"},))


class Long(Log):
    """A log whose conversation fills a small window."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(**{"cards": (SMALL,), "max_steps": 99, **fields})

    def step(self, *results: str) -> Long:
        """A call of the model, its tool calls and their results; what the provider counts is what we estimate."""
        n = self.job.model.step + 1
        self.ask(n)
        calls = tuple(ToolCall(call=str(at), tool="t") for at, _ in enumerate(results, 1))
        message = AssistantMessage(text="Looking.", tool_calls=calls, verbatim=BLOCKS)
        prompt = sum(estimate(each.model_dump_json(exclude={"verbatim"})) for each in self.job.conversation.messages)
        named = {"step": n, "attempt": 1, "attempt_id": ids.attempt_id("default", "j", n, 1)}
        self.say(
            e.ModelCompleted,
            **named,
            message=message,
            usage=Usage(input=prompt, output=5),
            cost_usd=Decimal(0),
            stop_reason="tools",
            duration_ms=1,
        )
        for at, content in enumerate(results, 1):
            call = {"step": n, "call": str(at), "tool": "t"}
            self.say(e.ToolRequested, **call, arguments={}, effect=Effect.READ, key=f"k{n}{at}")
            self.say(e.ToolCompleted, **call, status="success", content=content)
        return self

    def until_due(self) -> Compact:
        while isinstance(self.next, CallModel):
            self.step(RESULT)
        assert isinstance(self.next, Compact)
        return self.next

    def aside(self) -> dict[str, Any]:
        return {
            "purpose": "compaction",
            "attempt_id": f"default/j/{self.job.model.step}/a{self.job.model.aux_calls + 1}",
        }

    def asked(self) -> dict[str, Any]:
        named = self.aside()
        self.say(e.AuxiliaryRequested, **named, provider="acme", model="primary", worst_usd=Decimal(1))
        return named

    def compacted(self, action: Compact) -> None:
        named = self.asked()
        self.say(e.AuxiliaryCompleted, **named, provider="acme", model="primary", cost_usd=Decimal(0))
        self.say(e.ContextCompacted, note=note("In short."), kept=action.kept)

    @property
    def tokens(self) -> int:
        return sum(estimate(each.model_dump_json(exclude={"verbatim"})) for each in self.job.conversation.messages)


def test_a_conversation_filling_most_of_the_window_is_compacted():
    log = Long()
    log.until_due()

    assert START_SHARE * WINDOW < log.tokens < WINDOW
    assert log.events[-1].type == "tool.completed", "between a step's results and the next call"


def test_a_summary_names_the_tools_where_no_entity_is_known():
    known = WorkingContext(tools_used=("shop__find",), tools_discovered=("shop__pay",))

    text = note("In short.", known).text

    assert text.endswith("In short.\n\nTools used so far: shop__find.\nTools found on the way: shop__pay.")
    assert note("In short.", WorkingContext()).text.endswith("In short.")


def test_what_is_left_has_room_for_long():
    log = Long()
    log.compacted(log.until_due())

    assert log.next == CallModel(log.job.model.step + 1, 1)
    assert log.tokens <= END_SHARE * WINDOW
    log.step(RESULT)
    assert isinstance(log.next, CallModel)


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(st.lists(st.integers(2_000, 8_000), min_size=1, max_size=3), min_size=1, max_size=6))
def test_no_answer_is_parted_from_its_results_and_the_task_stays(steps: list[list[int]]):
    log = Long()
    for sizes in cycle(steps):
        if isinstance(action := log.next, Compact):
            break
        log.step(*("x" * size for size in sizes))
    before = log.job.conversation.messages
    log.compacted(action)
    first, summary, *kept = log.job.conversation.messages

    assert first == before[0] and isinstance(first, UserMessage)
    assert summary == note("In short.")
    assert isinstance(kept[0], AssistantMessage)
    asked: set[str] = set()
    for message in kept:
        if isinstance(message, AssistantMessage):
            assert not asked
            asked = {call.call for call in message.tool_calls}
        elif isinstance(message, ToolMessage):
            asked.remove(message.call)
    assert not asked
    assert [m.model_copy(update={"verbatim": None}) if isinstance(m, AssistantMessage) else m for m in before][
        -action.kept :
    ] == kept


def test_each_message_is_measured_once_whatever_is_kept(monkeypatch: pytest.MonkeyPatch):
    log, measured, size = Long(), list[object](), compaction._size
    log.until_due()
    monkeypatch.setattr(compaction, "_size", lambda message, card: measured.append(message) or size(message, card))

    assert isinstance(log.next, Compact)
    assert len(measured) <= 2 * len(log.job.conversation.messages)


def test_blocks_bound_to_the_old_history_are_dropped():
    log = Long()
    log.compacted(log.until_due())
    log.step(RESULT)

    answers = [message for message in log.job.conversation.messages if isinstance(message, AssistantMessage)]
    assert [message.verbatim for message in answers] == [None] * (len(answers) - 1) + [BLOCKS]


@pytest.mark.parametrize("made", [True, False])
def test_a_failed_summary_is_retried_some_steps_later(made: bool):
    log = Long()
    log.until_due()
    tried, named = log.job.model.step, log.asked() if made else log.aside()
    log.say(e.AuxiliaryFailed, **named, error=Failure(code="overloaded", message="no"))

    assert isinstance(log.next, CallModel)
    log.until_due()
    assert log.job.model.step == tried + AGAIN_AFTER_STEPS
    assert log.aside()["attempt_id"] != named["attempt_id"]


def test_a_killed_executors_summary_is_lost_and_the_job_continues():
    log = Long()
    log.until_due()
    named = log.asked()
    lost = log.next

    assert isinstance(lost, NoteLost) and lost.asked.attempt_id == named["attempt_id"]
    log.say(e.AuxiliaryFailed, **named, error=Failure(code=e.LOST, message="gone"))
    assert log.next == CallModel(log.job.model.step + 1, 1)


def test_a_flash_model_with_room_summarises_else_the_jobs_own():
    own, blind = Long(), Long(cards=(SMALL, FLASH.model_copy(update={"context_window": 5_000})))
    flash = Long(cards=(SMALL, FLASH))

    assert [log.until_due().card for log in (own, blind, flash)] == [SMALL, SMALL, FLASH]


def test_the_summary_prompt_shows_task_and_replaced_messages():
    log = Long()
    action = log.until_due()
    request = question(log.job, action, attempt_id="a")

    [message] = request.messages
    assert isinstance(message, UserMessage)
    text = message.parts[0].text
    assert text.startswith("The task:\nUSER: why?")
    assert text.count("CALL OF t") == (len(log.job.conversation.messages) - 1 - action.kept) // 2
    assert request.tools == () and request.max_output_tokens == SUMMARY_TOKENS_MAX


def test_a_long_task_is_shown_by_beginning_and_end():
    task = "BEGIN " + "word " * 12_000 + "END"
    roomy = PRIMARY.model_copy(update={"context_window": 60_000})
    small = FLASH.model_copy(update={"context_window": 12_000})
    action = Long(cards=(roomy, small), input=task).until_due()
    log = Long(cards=(roomy, FLASH), input=task)
    text = question(log.job, log.until_due(), attempt_id="a").messages[0].parts[0].text

    assert action.card == roomy
    shown, _, _ = text.partition("The part of the conversation")
    assert len(shown) < TASK_BYTES_MAX + 200
    assert "BEGIN word" in shown and "word END" in shown and "left out" in shown


@pytest.mark.parametrize("result", ["word " * 3_000, "[1,2,3]," * 2_000, "\U0001f9ff" * 2_000])
@pytest.mark.parametrize("window", [6_000, 20_000])
def test_the_summary_prompt_fits_the_summarisers_window(result: str, window: int):
    log = Long(cards=(PRIMARY.model_copy(update={"context_window": window}),))
    for _ in range(6):
        log.step(result)
    action = Compact(log.job.routing.card, 2)
    request = question(log.job, action, attempt_id="a")

    sent = estimate(request.system) + estimate(request.messages[0].parts[0].text)
    assert sent + request.max_output_tokens <= window * 1.05


def test_the_offline_model_is_not_compacted_for():
    log = Long(cards=(card("offline/offline", None, context_window=WINDOW),))
    route = Route(provider="offline", model="offline", tier="flash", reason="r")
    log.say(e.JobRerouted, route=route, cause="fallback")
    for _ in range(40):
        log.step(RESULT)

    assert isinstance(log.next, CallModel)


def test_without_usage_the_prompt_is_as_long_as_estimated():
    log = Log().ask(
        prefix=(e.Segment(part="system", hash="s", tokens=50), e.Segment(part="messages", hash="m", tokens=700))
    )
    log.say(
        e.ModelCompleted,
        step=1,
        attempt=1,
        attempt_id=ids.attempt_id("default", "j", 1, 1),
        message=AssistantMessage(text="Looking."),
        usage=Usage(),
        cost_usd=None,
        unsettled=e.Bounds(lower_usd=Decimal(0), upper_usd=Decimal(1)),
        stop_reason="end",
        duration_ms=1,
    )

    assert log.job.conversation.prompt_tokens == 750


def test_what_is_pinned_leaves_less_room_for_what_is_kept():
    def until_due(**fields: Any) -> Compact:
        log = Long(**fields)
        for _ in range(24):
            log.step(RESULT)
        assert isinstance(log.next, Compact)
        return log.next

    pinned = AgentConfig(tools=("*",), pinned=(TextPart(text="rule " * 3_000),))

    assert until_due(config=pinned).kept < until_due(config=AgentConfig(tools=("*",))).kept


def test_tool_images_are_words_in_summaries_and_tokens_when_seen():
    about = {"media_type": "image/png", "sha256": "0" * 64, "size_bytes": 9, "width": 80, "height": 40}
    image = ToolImage(content_base64="AAAA" * 9_999, **about)
    seeing = PRIMARY.model_copy(update={"images": True, "media": MediaRules(patch_px=10, patches_max=50)})
    seen = ToolMessage(call="1", tool="t", content=image.note, images=(image,))

    beside = compaction._size(seen, seeing) - compaction._size(seen, None)

    assert beside == 32 * BYTES_PER_TOKEN
    assert compaction._size(seen, PRIMARY) == compaction._size(seen, None) < 500
    assert [*compaction._lines([seen])] == ["RESULT OF t: [image image/png, 80x40]"]


BUDGETED = AgentConfig(context="budgeted")
WIDE = PRIMARY.model_copy(update={"context_window": 200_000})


def test_a_budgeted_job_is_compacted_before_its_budget_is_full():
    plain, budgeted = Long(cards=(WIDE,)), Long(cards=(WIDE,), config=BUDGETED)
    while not isinstance(budgeted.next, Compact):
        for log in (plain, budgeted):
            log.step(RESULT)

    prompt = budgeted.job.conversation.prompt_tokens
    # Of 30,000 tokens 6,000 are for the answer, and 18,000 for what was said and done.
    assert prompt is not None and 15_000 < prompt <= 18_000
    assert isinstance(plain.next, CallModel)


def test_a_budget_is_kept_by_an_outline_where_no_summary_comes():
    log = Long(cards=(WIDE,), config=BUDGETED)
    while not isinstance(log.next, Compact):
        log.step(RESULT)
    asked = log.next
    assert isinstance(asked, Compact) and asked.card is not None
    error = Failure(code="not_made", message="no")
    log.say(e.AuxiliaryFailed, purpose="compaction", attempt_id="default/j/1/a1", error=error)

    action = log.next

    assert action == Compact(None, asked.kept)
    text = compaction.outline(log.job, action.kept)
    assert "- t: 2.9 KiB" in text
    log.say(e.ContextCompacted, note=note(text), kept=action.kept)
    assert isinstance(log.next, CallModel)


DENSE = e.Observed(
    model="acme/primary", slot="primary", jobs=5, calls=1, output_tokens=9, longest_tokens=9, density=1.5
)
THIN = DENSE.model_copy(update={"model": "acme/strong", "density": 0.6})


def test_a_job_begins_with_the_density_that_its_agent_has_seen():
    plain, learned = Log(), Log(observed=(DENSE, THIN))
    strong = ROUTE.model_copy(update={"model": "strong"})
    other = ROUTE.model_copy(update={"provider": "other", "model": "spare"})

    assert (plain.job.conversation.density, learned.job.conversation.density) == (None, 1.5)
    learned.say(e.JobRerouted, route=strong, cause="escalation")
    assert learned.job.conversation.density == 0.6
    learned.say(e.JobRerouted, route=other, cause="fallback")
    assert learned.job.conversation.density is None


def test_a_job_goes_on_with_the_density_of_its_session():
    log = Log(observed=(DENSE,)).say(e.SessionContinued, density=1.2)

    assert log.job.conversation.density == 1.2


@pytest.mark.parametrize(("density", "expected"), [(None, 1.0), (0.6, 1.0), (1.5, 1.5)])
def test_a_windows_estimate_is_corrected_upwards_only(density: float | None, expected: float):
    observed = () if density is None else (DENSE.model_copy(update={"density": density}),)
    log = Log(cards=(SMALL,), observed=observed).say(e.SessionContinued, tokens=7_000, messages=2)
    job = with_history(log.job, HISTORY, is_unbound=False)

    said = compaction._filled(job)

    own = compaction._tokens(job.conversation.messages, SMALL)
    assert said == 7_000 + int(own * expected)


def test_a_budgets_estimate_is_corrected_both_ways():
    thin = DENSE.model_copy(update={"density": 0.6})
    log = Log(cards=(WIDE,), config=BUDGETED, observed=(thin,)).say(e.SessionContinued, tokens=7_000, messages=2)
    job = with_history(log.job, HISTORY, is_unbound=False)

    assert compaction._filled(job) == 7_000 + int(compaction._tokens(job.conversation.messages, WIDE) * 0.6)


def test_a_window_of_an_earlier_builds_log_is_not_corrected():
    log = Long(cards=(WIDE,)).step(RESULT)
    assert log.job.conversation.density is None or not log.job.conversation.is_density_known

    assert compaction._density(log.job) == 1.0


def test_what_a_job_used_says_how_dense_its_prompts_were_counted():
    segment = e.Segment(part="messages", hash="h", count=1, tokens=8)
    log = Log().ask(1, prefix=(segment,)).answer("so")

    [used] = log.job.money.used
    assert (used.counted_tokens, used.estimated_tokens, used.density) == (10, 8, 1.25)
