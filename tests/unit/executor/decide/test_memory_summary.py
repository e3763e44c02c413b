"""How a job summarises what is remembered of its user: what is shown, what an answer is, and when nobody is asked."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.budgets import Extended
from wayline.contracts.jobs import Failure, SubmitJob
from wayline.contracts.memory import Fact, FactOutcome
from wayline.contracts.models import ModelCard
from wayline.executor.decide.actions import Complete, KeepSummaries, Park, SummarizeFacts
from wayline.executor.decide.extraction import LATE, OFF, SAVE_WITHIN
from wayline.executor.decide.memory_summary import (
    FEW,
    NO_LIST,
    groups_of,
    keep_request,
    question,
    summarized,
    summarizes_for,
)
from wayline.executor.decide.worst_case import OWN, wait_for_room

from ..logs import AT, PRIMARY, Log

FLASH = ModelCard(provider="acme", model="flash", tier="flash", context_window=200_000)
USAGE: dict[str, Any] = {"purpose": "memory", "attempt_id": "default/j/0/a1"}


def summarizes(config: AgentConfig | None = None, **fields: Any) -> Log:
    """A log of a job that summarises."""
    log = Log(config=config or AgentConfig(), cards=(PRIMARY, FLASH))
    submitted = {"tenant": "default", "agent": "a", "input": "x", "user_id": "ann", "summarize": {}}
    job = SubmitJob.model_validate(submitted | fields)
    first = log.events[0]
    assert isinstance(first, e.JobSubmitted)
    log.events[0] = first.model_copy(update={"job": job})
    return log


def fact(number: int, **fields: Any) -> Fact:
    at = AT + timedelta(seconds=number)
    given = {"fact_id": f"f{number}", "version": number, "text": f"Likes thing {number}.", "category": "preference"}
    given |= {"tier": "important", "trust": "own", "recorded_at": at, "last_said_at": at}
    return Fact.model_validate(given | fields)


GROUPS = groups_of([fact(number) for number in range(1, 5)])


def answered(*summaries: Any) -> dict[str, Any]:
    return summarized(GROUPS, f"Here:\n```json\n{json.dumps({'summaries': list(summaries)})}\n```")


def test_a_helper_is_asked_once_and_its_summaries_are_kept_once():
    log = summarizes()
    assert log.next == SummarizeFacts(FLASH)

    log.say(e.AuxiliaryRequested, **USAGE, provider="acme", model="flash")
    log.say(e.AuxiliaryCompleted, **USAGE, provider="acme", model="flash", cost_usd=None)
    log.say(e.MemorySummarized, **answered({"of": [1, 2], "text": "Likes things 1 and 2."}))
    action = log.next
    assert isinstance(action, KeepSummaries)
    asked = keep_request(log.job, action.summarized)
    assert (asked.key, asked.user_id, asked.dry_run) == ("default/j/memory", "ann", False)

    log.say(e.MemorySaved, outcomes=(FactOutcome(outcome="saved", fact_id="f"),), run_id="r1")
    assert log.next == Complete("1 saved; undo with run r1")


def test_a_dry_run_says_what_would_be():
    log = summarizes(summarize={"dry_run": True})
    log.say(e.MemorySummarized, **answered({"of": [1, 2], "text": "Likes things 1 and 2."}))
    found = log.job.remembering.summarized
    assert found is not None and keep_request(log.job, found).dry_run

    log.say(e.MemorySaved, outcomes=(FactOutcome(outcome="saved", fact_id="f"),))
    assert log.next == Complete("would be: 1 saved")


def test_nothing_is_kept_where_nothing_was_summarised():
    assert summarizes().say(e.MemorySummarized, reason=FEW).next == Complete("nothing to summarise", reason=FEW)
    unreadable = summarizes().say(e.MemorySummarized, **summarized(GROUPS, "No."))
    assert unreadable.next == Complete("nothing to summarise", partial=True, reason=NO_LIST)


def test_a_lost_call_is_not_made_again():
    log = summarizes().say(e.AuxiliaryRequested, **USAGE, provider="acme", model="flash")
    log.say(e.AuxiliaryFailed, **USAGE, error=Failure(code=e.LOST, message="gone"))

    assert log.next == Complete("", partial=True, reason="gone")


def test_summaries_are_offered_for_a_day():
    log = summarizes().say(e.MemorySummarized, **answered({"of": [1, 2], "text": "Likes things."}))
    log.say(e.JobHandedBack, reason="the memory does not answer")
    late = log.events[-1].model_copy(update={"at": log.events[-2].at + SAVE_WITHIN + timedelta(seconds=1)})
    log.events[-1] = late

    assert log.next == Complete("", partial=True, reason=LATE)


def test_a_long_wait_for_a_budget_loses_no_answer():
    log = summarizes().say(e.MemorySummarized, **answered({"of": [1, 2], "text": "Likes things."}))
    log.events[-1] = log.events[-1].model_copy(update={"at": log.events[0].at + 3 * SAVE_WITHIN})

    assert isinstance(log.next, KeepSummaries)


def test_an_agent_that_may_not_write_memories_summarises_nothing():
    assert summarizes(AgentConfig(memory="read")).next == Complete("", partial=True, reason=OFF)


def test_facts_of_one_kind_are_shown_where_there_are_enough():
    facts = [
        fact(1),
        fact(2, trust="inferred"),
        fact(3),
        fact(4, conflicts_with=("f1",)),
        fact(5),
        fact(6, tier="core"),
    ]
    facts += [fact(7, state="quarantined", trust="stranger")]

    assert [[one.fact_id for one in group] for group in groups_of(facts)] == [["f1", "f3", "f5"]]
    assert groups_of(facts[:4]) == []
    text = question(FLASH, groups_of(facts), attempt_id="a").messages[0].parts[0].text  # type: ignore[union-attr]
    assert "preference, important:\n[1] Likes thing 1.\n[2] Likes thing 3.\n[3] Likes thing 5." in text


def test_a_summary_names_its_facts_by_version():
    found = answered({"of": [2, 4, 2], "text": "Likes things."})

    [summary] = found["summaries"]
    assert [(one.fact_id, one.version) for one in summary.of] == [("f2", 2), ("f4", 4)]
    assert found["shown"] == ("f1", "f2", "f3", "f4")


@pytest.mark.parametrize(
    "given",
    [
        "no object",
        {"of": [1, 2]},
        {"of": [1], "text": "x y"},
        {"of": [1, 1], "text": "x y"},
        {"of": [0, 1], "text": "x y"},
        {"of": [1, 5], "text": "x y"},
        {"of": [1, True], "text": "x y"},
        {"of": ["1", "2"], "text": "x y"},
        {"of": "12", "text": "x y"},
        {"of": [1, 2], "text": "x" * 2_000},
    ],
)
def test_what_has_not_the_form_of_a_summary_is_left_out(given: Any):
    assert len(answered(given, {"of": [1, 2], "text": "Likes things."})["summaries"]) == 1


@pytest.mark.parametrize(
    ("config", "fields", "whose"),
    [
        (AgentConfig(summarize_memories=True), {"summarize": None}, "ann"),
        (AgentConfig(summarize_memories=True), {}, None),
        (AgentConfig(summarize_memories=True), {"summarize": None, "user_id": None}, None),
        (AgentConfig(summarize_memories=True, memory="read"), {"summarize": None}, None),
        (AgentConfig(), {"summarize": None}, None),
    ],
)
def test_summaries_are_wanted_where_the_agent_says_so(config: AgentConfig, fields: dict[str, Any], whose: str | None):
    assert summarizes_for(summarizes(config, **fields).job) == whose


@pytest.mark.parametrize(
    "fields", [{"user_id": None}, {"session_id": "s"}, {"fork": {"job_id": "j1"}}, {"extract": {"jobs": ["j1"]}}]
)
def test_what_summarises_is_of_a_user_and_nothing_else(fields: dict[str, Any]):
    with pytest.raises(ValidationError):
        summarizes(**fields)


def test_a_shared_budget_is_waited_for_and_an_own_not():
    job, at = summarizes().job, AT + timedelta(days=1)

    def refused(by: str) -> Extended:
        return Extended(granted=False, held_usd=Decimal(0), limited_by=by)

    parked = wait_for_room(job, refused("daily"), "no room", expires_at=at)
    assert isinstance(parked, Park)
    assert (parked.waiting.why, parked.waiting.budget, parked.waiting.expires_at) == ("budget", "daily", at)
    assert [wait_for_room(job, refused(by), "no room", expires_at=at) for by in ("", OWN)] == [None, None]
