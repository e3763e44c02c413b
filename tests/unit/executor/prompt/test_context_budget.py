"""The shares of a budgeted context, by complexity, and what holds each of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import AssistantMessage, TextPart, UserMessage
from wayline.executor.decide.actions import CallModel, Compact
from wayline.executor.decide.next_action import decide
from wayline.executor.prompt.context_window import (
    answer_room,
    context_budget,
    history_window,
    prompt_window,
    scratchpad_window,
)
from wayline.journal import Job, with_history
from wayline.routing.context_budget import message_problem, system_warning

from ..logs import PRIMARY, Log

WIDE = PRIMARY.model_copy(update={"context_window": 200_000})
BUDGETED = AgentConfig(context="budgeted")
HISTORY = (UserMessage(parts=(TextPart(text="Hello."),)), AssistantMessage(text="Hello."))
HEADS = 700
ROWS = [
    ("simple", (20, 0.5, 3, 0.5, 12, 4)),
    ("moderate", (30, 0.5, 5, 0.5, 18, 6)),
    ("complex", (40, 0.5, 4, 0.5, 28, 7)),
]
"""Of each level thousands of tokens: total, system, history, message, scratchpad, response."""


def log(level: str | None, **fields: Any) -> Log:
    return Log(cards=(WIDE,), config=BUDGETED, context_level=level, **fields)


def continued(level: str | None, *, history_tokens: int) -> Job:
    """A job whose session's provider counted so many tokens of history."""
    segment = e.Segment(part="system", hash="h", count=1, tokens=HEADS)
    call = e.SessionCall(at=datetime(2026, 11, 25, tzinfo=UTC), provider="acme", model="primary", prefix=(segment,))
    after = e.HistoryEnd(job_id="before", seq=9, hash="h")
    story = log(level).say(
        e.SessionContinued, after=after, messages=len(HISTORY), tokens=HEADS + history_tokens, call=call
    )
    return with_history(story.job, HISTORY, is_unbound=False)


@pytest.mark.parametrize(("level", "thousands"), ROWS)
def test_each_level_has_its_shares_and_each_share_is_kept(level: Any, thousands: tuple[float, ...]):
    total, system, history, message, scratchpad, response = thousands
    job = log(level).job

    assert context_budget(job) == tuple(1_000 * share for share in thousands)
    assert prompt_window(job) == 1_000 * (total - response)
    assert answer_room(job, 100_000) == 1_000 * response
    assert (scratchpad_window(job), history_window(job)) == (1_000 * scratchpad, 1_000 * history)
    words = "word " * int(1_000 * message * 4 / 5)
    assert message_problem(words, level) is None
    assert f"takes {1_000 * message:.0f}" in (message_problem(words + "word", level) or "")
    assert system_warning(BUDGETED.model_copy(update={"instructions": "Answer."})) is None
    long = BUDGETED.model_copy(update={"instructions": "word " * int(1_000 * system)})
    assert f"plans {1_000 * system:.0f}" in (system_warning(long) or "")
    assert system_warning(long.model_copy(update={"context": "window"})) is None


@pytest.mark.parametrize(("level", "share"), [(level, 1_000 * thousands[2]) for level, thousands in ROWS])
def test_a_history_above_its_share_alone_is_compacted(level: str, share: int):
    within, above = (continued(level, history_tokens=tokens) for tokens in (share, share + 1))

    assert isinstance(decide(within), CallModel)
    action = decide(above)
    assert isinstance(action, Compact) and action.card is not None and action.kept == 0


def test_a_log_without_a_level_keeps_its_bounds():
    job = continued(None, history_tokens=6_000)

    assert (history_window(job), scratchpad_window(job)) == (None, 23_000)
    assert isinstance(decide(job), CallModel)


def test_an_unbudgeted_job_has_no_shares():
    job = Log(cards=(WIDE,)).job

    assert (context_budget(job), history_window(job), scratchpad_window(job)) == (None, None, None)
    assert (prompt_window(job), answer_room(job, 100_000)) == (200_000, 100_000)
