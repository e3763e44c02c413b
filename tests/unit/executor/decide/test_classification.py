"""What is asked about a job's type of task, how an answer is read, and where it sends the job."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest

from wayline.contracts import events as e
from wayline.contracts.jobs import Failure, Route
from wayline.executor.decide.actions import CallModel, Cancel, Classify, NoteLost, Reroute
from wayline.executor.decide.classification import (
    TEXT_CHARS_MAX,
    label,
    question,
    shortened,
    unreadable,
)
from wayline.llm.output_room import ASIDE_THINKING_TOKENS, LABEL_TOKENS

from ..logs import ROUTE, SMALL, Log, card

LABELS = ("contract_review", "negotiation", "review", "scoring")
DEAR = Route(provider="acme", model="strong", tier="premium", reason="it is dear work", task_type="negotiation")


@dataclass
class Asking(Log):
    """The log of a job whose type is to be asked for."""

    tasks: dict[str, Route | None] = field(default_factory=lambda: {"negotiation": DEAR, "search": None})

    def say(self, kind: type[e.Event], **fields: Any) -> Log:
        if kind is e.JobRouted:
            fields["route"] = ROUTE.model_copy(update={"classifier": "tiny/small"})
            fields["candidates"] = fields["candidates"].model_copy(update={"tasks": self.tasks})
        return super().say(kind, **fields)

    def asking(self) -> Log:
        return self.say(
            e.AuxiliaryRequested, **self._aside(), provider="tiny", model="small", worst_usd=Decimal("0.01")
        )

    def failed(self, code: str = "timeout") -> Log:
        return self.say(e.AuxiliaryFailed, **self._aside(), error=Failure(code=code, message="no"))

    def classified(self, task_type: str | None) -> Log:
        self.say(e.AuxiliaryCompleted, **self._aside(), provider="tiny", model="small", cost_usd=Decimal("0.001"))
        return self.say(e.TaskClassified, task_type=task_type)

    def _aside(self) -> dict[str, Any]:
        return {"purpose": "classification", "attempt_id": "default/j/0/a1"}


def test_a_job_without_a_type_is_classified_first():
    assert Asking().next == Classify(SMALL, ("negotiation", "search"))


def test_a_job_without_a_classifier_makes_its_first_call():
    assert Asking(tasks={}).next == CallModel(1, 1)


def test_an_answer_that_means_another_model_sends_the_job_there_once():
    log = Asking()
    log.asking()
    log.classified("negotiation")
    moved = log.next

    assert moved == Reroute(DEAR, "classification")
    assert log.take(moved).next == CallModel(1, 1)
    assert log.job.routing.route == DEAR


def test_an_answer_that_means_the_same_model_is_only_written_down():
    log = Asking()
    log.asking()
    log.classified("search")

    assert log.next == CallModel(1, 1)
    assert log.job.routing.route is not None and log.job.routing.route.task_type == "search"


@pytest.mark.parametrize("code", ["timeout", "rate_limited", e.LOST])
def test_a_failed_classification_is_not_repeated(code: str):
    log = Asking()
    log.asking()
    log.failed(code)

    assert log.next == CallModel(1, 1)


def test_an_open_classification_is_first_noted_as_lost():
    log = Asking()
    log.asking()
    log.say(e.CancelRequested)
    lost = log.next

    assert isinstance(lost, NoteLost) and isinstance(lost.asked, e.AuxiliaryRequested)
    log.failed(e.LOST)
    assert isinstance(log.next, Cancel)


def test_a_job_that_left_its_classified_model_stays_away():
    log = Asking(fallbacks=("other/spare",))
    log.asking()
    log.classified("negotiation")
    log.take(log.next)
    log.take(Reroute(DEAR.model_copy(update={"provider": "other", "model": "spare"}), "fallback"))

    assert log.next == CallModel(1, 1)


def test_a_job_that_made_a_call_is_not_classified():
    log = Asking()
    log.ask()
    log.answer("", "t")
    log.result()

    assert log.next == CallModel(2, 1)


@pytest.mark.parametrize(
    ("answer", "meant"),
    [
        ("negotiation", "negotiation"),
        (" Negotiation.\n", "negotiation"),
        ("**contract review**", "contract_review"),
        ("The type is `contract-review`.", "contract_review"),
        ("review", "review"),
        ("scoring or negotiation", None),
        ("renegotiations", None),
        ("none", None),
        ("", None),
    ],
)
def test_an_answer_is_read_however_it_is_dressed(answer: str, meant: str | None):
    assert label(answer, LABELS) == meant


def test_what_cannot_be_read_says_why():
    assert unreadable("None.") == "no known type of task fits it"
    assert unreadable("I cannot say") == "the answer names no known type of task: 'I cannot say'"


def test_classification_prompts_share_a_prefix_and_end_with_the_input():
    asked = Classify(SMALL, LABELS)
    one, other = Log(), Log()
    other.events[0] = other.events[0].model_copy(
        update={"job": other.job.life.submitted.model_copy(update={"input": "so"})}
    )
    first, second = (question(log.job, asked, attempt_id="a") for log in (one, other))

    assert (first.system, first.cache_key, first.tools) == (second.system, second.cache_key, ())
    assert [part.text for part in first.messages[0].parts] == ["why?"]
    assert all(f"- {each}\n" in first.system for each in LABELS)
    assert first.max_output_tokens == LABEL_TOKENS


def test_a_model_that_thinks_first_has_room_to():
    thinking = Classify(card("tiny/small", reasoning="adaptive", output_limit=100_000), LABELS)

    assert question(Log().job, thinking, attempt_id="a").max_output_tokens == LABEL_TOKENS + ASIDE_THINKING_TOKENS


def test_of_a_long_text_both_ends_are_shown():
    text = "begin " + "x" * 10_000 + " end"

    assert len(shortened(text)) == TEXT_CHARS_MAX + len("\n…\n")
    assert shortened(text).startswith("begin ") and shortened(text).endswith(" end")
    assert shortened("short") == "short"
