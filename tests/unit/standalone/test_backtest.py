"""Recorded jobs, decided again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import AssistantMessage
from wayline.contracts.events import (
    AuxiliaryCompleted,
    Event,
    JobRerouted,
    JobRouted,
    JobSubmitted,
    Limits,
    ModelCompleted,
    SpanRef,
    TaskClassified,
)
from wayline.contracts.jobs import JobOptions, SubmitJob
from wayline.contracts.models import ModelCard, Prices, Rates, Tier
from wayline.contracts.money import Usage
from wayline.llm.prices import cost
from wayline.router.policy import current
from wayline.router.routing import choose_route
from wayline.router.rules import Asked
from wayline.standalone.backtest import Again, again, backtest, policy_of, summary
from wayline.standalone.cli import app
from wayline.standalone.client import ApiError
from wayline.standalone.drawing import backtest_table

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
USAGE = Usage(input=10_000, cache_read=4_000, output=1_000)


def card(tier: Tier, usd: str | None) -> ModelCard:
    rates = Rates(input=Decimal(usd), output=Decimal(usd) * 5, cache_read=Decimal(usd) / 10) if usd else None
    return ModelCard(provider="a", model=tier, tier=tier, prices=Prices(rates=rates) if rates else None)


CARDS = (card("flash", "0.1"), card("standard", "2"), card("premium", "4"))


ASKED_USD = Decimal("0.00004")


def recorded(
    task: str | None, *, cards: tuple[ModelCard, ...] = CARDS, classified: str | None = None, **facts: Any
) -> list[dict[str, Any]]:
    """The log of a job that called its model twice, after a classification where one is named."""
    config = AgentConfig(classify=classified is not None)
    job = SubmitJob(agent="a", input="Answer the letter.", options=JobOptions(task_type=task))
    decision = choose_route(Asked(job, config, **facts), default_model="offline/extractive", cards=cards)
    head: dict[str, Any] = {"job_id": "j1", "at": NOW, "trace": SpanRef(trace_id="t", span_id="s")}
    events: list[Event] = [
        JobSubmitted(seq=1, tenant="t", job=job, content_hash="h", **head),
        JobRouted(
            seq=2,
            agent="a",
            agent_version=1,
            config=config,
            route=decision.route,
            limits=Limits(max_steps=5, max_seconds=60, max_output_tokens=4_096),
            candidates=decision.candidates,
            policy=decision.policy,
            **facts,
            **head,
        ),
    ]
    route = decision.route
    if classified is not None:
        assert route.classifier == "a/flash"
        aside = {"purpose": "classification", "attempt_id": "t/j1/0/a1", "provider": "a", "model": "flash"}
        events.append(AuxiliaryCompleted(seq=3, **aside, cost_usd=ASKED_USD, **head))
        events.append(TaskClassified(seq=4, task_type=classified or None, **head))
        moved = decision.candidates.tasks.get(classified)
        if moved is not None:
            route = moved
            events.append(JobRerouted(seq=5, route=moved, cause="classification", **head))
    used = decision.candidates.card(route.name)
    assert used is not None
    for step in (1, 2):
        events.append(
            ModelCompleted(
                seq=len(events) + 1,
                step=step,
                attempt=1,
                attempt_id=f"{step}",
                message=AssistantMessage(text="so"),
                usage=USAGE,
                cost_usd=cost(used, USAGE),
                stop_reason="end",
                duration_ms=1,
                **head,
            )
        )
    return [event.model_dump(mode="json") for event in events]


@pytest.mark.parametrize("task", [None, "sentiment", "drafting", "negotiation"])
def test_the_policy_that_decided_decides_the_same_again(task):
    told = again(recorded(task, left_usd=Decimal("0.05")), current())

    assert told is not None and told.same
    assert (told.was, told.was_usd) == (told.now, told.now_usd)


@pytest.mark.parametrize("answer", ["sentiment", "drafting", "negotiation", ""])
def test_a_job_that_was_classified_goes_the_same_way_again(answer: str):
    told = again(recorded(None, classified=answer), current())

    assert told is not None and told.same
    assert (told.was, told.was_usd) == (told.now, told.now_usd)
    assert told.was_tier == {"drafting": "standard", "negotiation": "premium"}.get(answer, "flash")


def test_a_policy_that_would_not_have_asked_saves_what_the_question_cost():
    told = again(recorded(None, classified="drafting"), policy_of("locked"))

    assert told is not None and told.was_usd is not None and told.now_usd is not None
    assert (told.was, told.now, told.was_usd - told.now_usd) == ("a/standard", "a/standard", ASKED_USD)


def test_a_question_of_which_nobody_knows_what_it_used_leaves_the_calls_their_cost():
    log = recorded(None, classified="drafting")
    log[2] |= {"cost_usd": None, "unsettled": {"lower_usd": "0", "upper_usd": "0.001"}}
    told, named = again(log, current()), again(recorded("drafting"), current())

    assert log[2]["type"] == "aux.completed"
    assert told is not None and named is not None and told.was_usd == named.was_usd


def test_another_policy_decides_by_what_a_classification_said(tmp_path: Path):
    path = tmp_path / "mine.json"
    path.write_text('{"tiers": {"negotiation": "standard"}}')
    told = again(recorded(None, classified="negotiation"), policy_of(str(path)))

    assert told is not None
    assert (told.was, told.now, told.same) == ("a/premium", "a/standard", False)
    assert told.reason.startswith("it was classified as negotiation, which is standard work, so")


def test_another_policy_is_priced_by_what_was_used():
    assert again(recorded("sentiment"), policy_of("all-premium")) == Again(
        job_id="j1",
        by=current().label,
        was="a/flash",
        was_tier="flash",
        now="a/premium",
        now_tier="premium",
        reason="'sentiment' is no type of task that the policy knows, so the escalation slot takes it with a/premium",
        same=False,
        was_usd=Decimal("0.002280000"),
        now_usd=Decimal("0.091200000"),
    )


def test_an_answer_whose_usage_was_not_told_is_in_neither_sum():
    log = recorded("sentiment")
    log[-1] |= {"usage": {}, "cost_usd": None, "unsettled": {"lower_usd": "0", "upper_usd": "1"}}
    told = again(log, policy_of("all-premium"))

    assert told is not None
    assert (told.was_usd, told.now_usd) == (Decimal("0.001140000"), Decimal("0.045600000"))


def test_a_price_that_nobody_knows_stays_unknown():
    told = again(recorded("sentiment", cards=(CARDS[0], card("premium", None))), policy_of("all-premium"))

    assert told is not None
    assert (told.now, told.was_usd, told.now_usd) == ("a/premium", Decimal("0.002280000"), None)


def test_a_slot_that_was_not_recorded_leaves_the_job_where_it_can_go():
    told = again(recorded("sentiment", cards=CARDS[:1]), policy_of("all-premium"))

    assert told is not None and told.now == "a/flash"


def test_the_locked_policy_sends_everything_to_the_primary():
    for task in ("sentiment", "negotiation"):
        told = again(recorded(task), policy_of("locked"))
        assert told is not None and told.now == "a/standard"


def test_a_log_without_a_route_is_left_out():
    assert again(recorded(None)[:1], current()) is None


def test_the_summary_adds_up_what_changes():
    decided = [one for task in ("sentiment", "drafting") if (one := again(recorded(task), policy_of("all-standard")))]

    assert summary(policy_of("all-standard"), decided) == {
        "policy": "all-standard/3",
        "jobs": 2,
        "same": 0,
        "decided_by": {current().label: 2},
        "tiers": [{"was": "flash", "now": "standard", "jobs": 1}, {"was": "standard", "now": "standard", "jobs": 1}],
        "was_usd": "0.047880000",
        "now_usd": "0.091200000",
        "unknown_cost": 0,
        "changed": [
            {
                "job_id": "j1",
                "was": was,
                "now": "a/standard",
                "reason": f"'{task}' is no type of task that the policy knows, "
                "so the primary slot takes it with a/standard",
                "was_usd": usd,
                "now_usd": "0.045600000",
            }
            for task, was, usd in (
                ("sentiment", "a/flash", "0.002280000"),
                ("drafting", "a/standard", "0.045600000"),
            )
        ],
    }


class Aged:
    """The HTTP API of a system where one job's log is gone, and of another only its end is there."""

    async def get(self, path: str, **_: Any) -> dict[str, Any]:
        jobs = [{"job_id": name, "created_at": NOW.isoformat()} for name in ("whole", "gone", "cut")]
        return {"jobs": jobs, "next_cursor": None}

    async def log(self, job_id: str) -> list[dict[str, Any]]:
        if job_id == "gone":
            raise ApiError("no job 'gone'", code="not_found", status=404)
        return recorded("drafting")[1 if job_id == "cut" else 0 :]


async def test_jobs_whose_logs_have_aged_out_are_skipped_and_counted():
    told = await backtest(Aged(), current(), since=NOW - timedelta(days=40))  # type: ignore[arg-type]

    assert (told["jobs"], told["same"], told["aged_out"]) == (1, 1, 2)
    console = Console(width=200, record=True)
    console.print(backtest_table(told))
    assert "2 more were skipped, because their logs have aged out" in console.export_text()


async def test_another_refusal_of_a_log_still_ends_the_backtest():
    class Refused(Aged):
        async def log(self, job_id: str) -> list[dict[str, Any]]:
            raise ApiError("no key", code="unauthenticated", status=401)

    with pytest.raises(ApiError, match="no key"):
        await backtest(Refused(), current(), since=NOW - timedelta(days=40))  # type: ignore[arg-type]


def test_a_policy_is_a_name_or_a_file_of_overrides(tmp_path: Path):
    (tmp_path / "mine.yaml").write_text("tiers: {sentiment: premium}\n")
    (tmp_path / "mine.json").write_text('{"levels": {"complex": 0.1}}')

    mine = policy_of(str(tmp_path / "mine.yaml"))
    assert (mine.label, mine.tiers["sentiment"], mine.tiers["drafting"]) == ("mine/3", "premium", "standard")
    assert policy_of(str(tmp_path / "mine.json")).levels == {"complex": 0.1}
    assert policy_of("current") == current()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tiers: {sentiment: huge}", "tiers.sentiment"),
        ("nonsense: 1", "nonsense"),
        ("levels: {simple: 0.5}", "levels.simple"),
        ("- 1", "names and values"),
        ("{", "read"),
    ],
)
def test_a_file_that_is_no_policy_says_where(tmp_path: Path, text: str, told: str):
    path = tmp_path / "mine.yaml"
    path.write_text(text)

    with pytest.raises(ValueError, match=told):
        policy_of(str(path))


def test_what_is_neither_a_policy_nor_a_file_names_the_policies():
    with pytest.raises(ValueError, match="current, locked, all-standard, all-premium"):
        policy_of("nobody")


def test_the_command_says_in_one_line_what_is_wrong_with_its_words():
    for words, told in ((["nobody"], "neither a policy"), (["current", "--since", "soon"], "neither an age")):
        done = CliRunner().invoke(app, ["router", "backtest", *words])
        assert done.exit_code == 1
        assert done.stderr.startswith("wayline: ") and told in done.stderr
