"""When a helper model summarises a long result, and what the job's model is shown of it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import AssistantMessage, ToolCall, ToolMessage
from wayline.contracts.jobs import Failure
from wayline.contracts.models import ModelCard
from wayline.contracts.money import Usage
from wayline.contracts.tools import RECALL, Effect, ToolDefinition
from wayline.executor.decide.actions import CallModel, Complete, NoteLost, Summarize
from wayline.executor.decide.helper_model import too_dear
from wayline.executor.decide.result_summary import READ_TOKENS_MAX, SUMMARY_TOKENS_MAX, question, shown
from wayline.llm.tokens import estimate

from ..logs import PRIMARY, Log

FLASH = ModelCard(provider="acme", model="flash", tier="flash", context_window=200_000)
OFFLINE = ModelCard(provider="offline", model="extractive", tier="flash")
WHOLE = "\n".join(f"order {n}: late, 12.50 EUR" for n in range(4_000))
EXTRACT = "order 0: late " * 400
TOOLS = (ToolDefinition(name="orders"), ToolDefinition(name="web", untrusted=True), ToolDefinition(name=RECALL))
REFERENCE = f'{RECALL} {{"step": 1, "call": "1"}}'


class Long(Log):
    """A log whose tools return more than is shown."""

    def __init__(self, *, summarize: bool = True, **fields: Any) -> None:
        config = AgentConfig(summarize_results=summarize)
        super().__init__(**{"config": config, "cards": (PRIMARY, FLASH), "input": "Which are late?", **fields})

    def step(self, *calls: ToolCall, short: tuple[str, ...] = ()) -> Long:
        """A step with these calls; the results of those named in `short` are shown whole."""
        n = self.job.model.step + 1
        named = {"step": n, "attempt": 1, "attempt_id": ids.attempt_id("default", "j", n, 1)}
        self.say(e.ModelRequested, **named, provider="acme", model="primary", tools=TOOLS if n == 1 else None)
        self.say(
            e.ModelCompleted,
            **named,
            message=AssistantMessage(text="Looking.", tool_calls=calls),
            usage=Usage(input=10, output=5),
            cost_usd=Decimal(0),
            stop_reason="tools",
            duration_ms=1,
        )
        for call in calls:
            about = {"step": n, "call": call.call, "tool": call.tool}
            full = None if call.call in short else WHOLE
            self.say(e.ToolRequested, **about, arguments={}, effect=Effect.READ, key=f"k{n}{call.call}")
            self.say(e.ToolCompleted, **about, status="success", content=EXTRACT, full=full)
        return self

    def aside(self, call: str = "1") -> dict[str, Any]:
        return {"purpose": "summary", "about": f"1/{call}", "attempt_id": f"default/j/1/a{call}"}

    def ask_helper(self, call: str = "1") -> Log:
        return self.say(e.AuxiliaryRequested, **self.aside(call), provider="acme", model="flash")

    def results(self) -> list[str]:
        return [m.content for m in self.job.conversation.messages if isinstance(m, ToolMessage)]


ORDERS = ToolCall(call="1", tool="orders", arguments={"since": "May"})


def test_a_shortened_result_is_summarised_by_the_flash_model_once():
    log = Long().step(ORDERS)

    assert log.next == Summarize(FLASH, "1")
    log.ask_helper()
    log.say(e.AuxiliaryCompleted, **log.aside(), provider="acme", model="flash", cost_usd=Decimal("0.001"))
    log.say(e.ResultSummarized, step=1, call="1", content="All are late.")
    assert log.results() == ["All are late."]
    assert log.next == CallModel(2, 1)
    assert log.job.money.costs.aux == {"summary": Decimal("0.001")}


@pytest.mark.parametrize("log", [Long(summarize=False), Long(cards=(OFFLINE,))], ids=["off", "no helper"])
def test_results_stay_shortened_where_no_summary_is_wanted_or_possible(log: Long):
    if log.cards == (OFFLINE,):
        log.say(e.JobRerouted, route=log.job.routing.route.model_copy(update={"provider": "offline"}), cause="fallback")

    log.step(ORDERS)

    assert log.next == CallModel(2, 1)
    assert log.results() == [EXTRACT]


def test_only_results_that_were_shortened_are_summarised_in_order():
    log = Long().step(ORDERS, ToolCall(call="2", tool="orders"), ToolCall(call="3", tool="web"), short=("2",))

    assert log.next == Summarize(FLASH, "1")
    log.ask_helper().say(e.AuxiliaryFailed, **log.aside(), error=Failure(code="overloaded", message="busy"))
    assert log.next == Summarize(FLASH, "3")


def test_a_call_whose_holder_was_killed_is_not_made_again():
    log = Long().step(ORDERS)
    log.ask_helper()

    assert isinstance(log.next, NoteLost)
    log.say(e.AuxiliaryFailed, **log.aside(), error=Failure(code=e.LOST, message="gone"))
    assert log.next == CallModel(2, 1)
    assert log.results() == [EXTRACT]


def test_a_summary_that_failed_is_not_tried_again():
    log = Long().step(ORDERS)

    log.say(e.AuxiliaryFailed, **log.aside(), error=Failure(code="not_made", message="no budget"))

    assert log.next == CallModel(2, 1)


def test_what_a_prompt_has_held_is_never_another_one_later():
    log = Long().step(ORDERS).step(ToolCall(call="1", tool="web"), short=("1",))

    late = log.say(e.ResultSummarized, step=1, call="2", content="too late")

    assert late.results() == [EXTRACT, EXTRACT]  # type: ignore[attr-defined]
    assert log.next == CallModel(3, 1)


def test_a_job_at_its_step_limit_pays_for_no_summary():
    assert isinstance(Long(max_steps=1).step(ORDERS).next, Complete)


def test_the_helper_sees_task_call_and_as_much_as_fits():
    log = Long().step(ORDERS)
    action = log.next
    assert isinstance(action, Summarize)

    asked = question(log.job, action, WHOLE * 3, attempt_id="a")

    [message] = asked.messages
    text = message.parts[0].text  # type: ignore[union-attr]
    assert asked.card == FLASH
    assert "Which are late?" in text
    assert 'orders {"since":"May"}' in text
    assert estimate(text) <= READ_TOKENS_MAX + 200
    assert "left out" in text


@pytest.mark.parametrize("words", ["All are late. ", "12,50 €; ", "都晚了。"])
def test_a_summary_is_shown_within_its_tokens_and_names_its_call(words: str):
    log = Long().step(ORDERS)

    content = shown(log.job, "1", words * 2_000, whole=WHOLE)

    assert estimate(content) <= SUMMARY_TOKENS_MAX
    assert REFERENCE in content
    assert words.strip() in content


def test_a_summary_of_an_untrusted_tools_words_says_so():
    through = ToolCall(call="1", tool="use_tool", arguments={"name": "web", "arguments": {}})

    contents = [
        shown(Long().step(call).job, "1", "Short.", whole=WHOLE)
        for call in (ORDERS, ToolCall(call="1", tool="web"), through)
    ]

    assert ["not trusted" in content for content in contents] == [False, True, True]


@pytest.mark.parametrize(
    ("worst", "left", "dear"),
    [("0.05", "0.10", False), ("0.051", "0.10", True), (None, "0.10", False), ("9", None, False)],
)
def test_a_summary_leaves_half_of_the_jobs_budget(worst: str | None, left: str | None, dear: bool):
    assert too_dear(*(None if one is None else Decimal(one) for one in (worst, left))) is dear
