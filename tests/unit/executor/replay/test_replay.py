"""Replays: recorded logs come out identical, and each kind of change is caught at its step."""

import sys
from decimal import Decimal
from importlib import util
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings

from wayline.contracts import events as e
from wayline.contracts.models import ModelCard
from wayline.contracts.working_context import WorkingContext
from wayline.executor.decide import accept_answer, compaction, session_history
from wayline.executor.replay import replay, with_config, with_model, with_prompt
from wayline.journal import NotAnExport, export_job, read_export, read_exported_history

from ..logs import Log

_path = Path(__file__).parents[2] / "journal" / "histories.py"
_spec = util.spec_from_file_location("histories", _path)
assert _spec and _spec.loader
histories = sys.modules.setdefault("histories", util.module_from_spec(_spec))
_spec.loader.exec_module(histories)

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.json"))
CARD = ModelCard.model_validate(
    {"provider": "x", "model": "y", "tier": "premium", "prices": {"rates": {"input": "30", "output": "300"}}}
)


def history(environment) -> list[e.Event]:
    return [event for record in histories.play(environment).records for event in record]


def golden(name: str) -> list[e.Event]:
    [path] = [path for path in GOLDEN if path.stem == name]
    return read_export(orjson.loads(path.read_bytes()))


@settings(deadline=None)
@given(environment=histories.environments)
def test_every_history_replays_identically(environment):
    assert replay(history(environment)).divergence is None


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_golden_logs_replay_identically(path):
    file = orjson.loads(path.read_bytes())
    events = read_export(file)

    replayed = replay(events, history=read_exported_history(file))

    assert replayed.divergence is None
    assert replayed.is_history_compared
    assert replayed.steps > 0
    assert replayed.cost.difference_usd == 0


def test_another_system_prompt_is_caught_at_the_first_step():
    divergence = replay(with_prompt(golden("tools"), "Be brief.")).divergence

    assert divergence is not None
    assert (divergence.step, divergence.what, divergence.event) == (1, "prompt", "model.requested")
    assert divergence.recorded.startswith("system ")


def test_an_edited_message_is_caught_at_the_step_that_sends_it():
    events = golden("tools")
    at = next(n for n, event in enumerate(events) if isinstance(event, e.ToolCompleted) and event.step == 2)
    events[at] = events[at].model_copy(update={"content": "something else"})

    divergence = replay(events).divergence

    assert divergence is not None
    assert (divergence.step, divergence.what) == (3, "prompt")
    assert divergence.recorded.startswith("messages ")


def session_turn() -> tuple[dict, list[e.Event]]:
    """Return the golden log of a session's second turn, which has two steps."""
    file = orjson.loads((Path(__file__).parent / "golden" / "session.json").read_bytes())
    return file, read_export(file)


def test_an_edited_message_in_a_session_is_caught_at_its_step():
    file, events = session_turn()
    at = next(n for n, event in enumerate(events) if isinstance(event, e.ToolCompleted))
    events[at] = events[at].model_copy(update={"content": "something else"})

    divergence = replay(events, history=read_exported_history(file)).divergence

    assert divergence is not None
    assert (divergence.step, divergence.what) == (2, "prompt")
    assert divergence.recorded.startswith("messages ")


def test_another_prompt_in_a_session_is_caught_at_its_first_step():
    file, events = session_turn()

    divergence = replay(with_prompt(events, "Be brief."), history=read_exported_history(file)).divergence

    assert divergence is not None
    assert (divergence.step, divergence.what, divergence.event) == (1, "prompt", "model.requested")


def test_a_history_in_other_words_is_caught_at_once():
    file, events = session_turn()
    history = read_exported_history(file)
    assert history is not None

    divergence = replay(events, history=(*history[:-1], history[-1].model_copy(update={"text": "No."}))).divergence

    assert divergence is not None
    assert (divergence.step, divergence.what) == (1, "prompt")
    assert divergence.recorded.startswith("messages ")


def test_a_file_whose_history_was_edited_is_refused():
    file, _ = session_turn()
    file["history"][-1]["text"] = "It is not."

    with pytest.raises(NotAnExport, match="not the one that the job began with"):
        read_exported_history(file)


def test_a_replay_without_the_history_says_that_it_compared_none():
    _, events = session_turn()

    replayed = replay(events)

    assert (replayed.divergence, replayed.is_history_compared) == (None, False)


def test_other_words_about_a_lost_history_are_caught(monkeypatch):
    monkeypatch.setattr(session_history, "FORGOTTEN", "Forgotten")

    divergence = replay(golden("lost")).divergence

    assert divergence is not None
    assert (divergence.what, divergence.event) == ("note", "context.injected")


def test_changed_words_of_a_correction_are_caught_where_they_are_said(monkeypatch):
    events = history(histories.Environment(replies=(histories.Reply("words"), histories.Reply("{}")), json_only=True))
    assert replay(events).is_identical
    monkeypatch.setattr(accept_answer, "problem", lambda schema, text: "no JSON" if text != "{}" else None)

    divergence = replay(events).divergence

    assert divergence is not None
    assert (divergence.step, divergence.what, divergence.event) == (1, "note", "context.injected")


KNOWN = WorkingContext(tools_used=("shop__find",), tools_discovered=("shop__pay",))


def test_a_summary_without_what_is_known_is_caught():
    def compacted(known: WorkingContext) -> list[e.Event]:
        log = Log().say(e.SessionContinued, context=KNOWN)
        return log.say(e.ContextCompacted, note=compaction.note("In short.", known), kept=0).events

    assert replay(compacted(KNOWN)).is_identical

    divergence = replay(compacted(WorkingContext())).divergence

    assert divergence is not None
    assert (divergence.what, divergence.event) == ("note", "context.compacted")
    assert "shop__find" in divergence.now


def test_arguments_that_would_be_others_are_caught():
    events = golden("tools")
    at = next(n for n, event in enumerate(events) if isinstance(event, e.ToolRequested))
    events[at] = events[at].model_copy(update={"arguments": {"key": "another"}})

    divergence = replay(events).divergence

    assert divergence is not None
    assert (divergence.seq, divergence.what) == (events[at].seq, "arguments")


def test_an_agent_that_may_take_fewer_steps_ends_sooner():
    events = golden("tools")
    routed = next(event for event in events if isinstance(event, e.JobRouted))
    shorter = routed.config.model_copy(update={"max_steps": 2})
    submitted = events[0].model_copy(
        update={"job": events[0].job.model_copy(update={"options": type(events[0].job.options)()})}
    )

    divergence = replay(with_config([submitted, *events[1:]], shorter)).divergence

    assert divergence is not None
    assert (divergence.step, divergence.what) == (3, "decision")


def test_differences_that_are_not_compared_are_passed_over():
    events = with_prompt(golden("tools"), "Be brief.")

    assert replay(events, compare={"decision", "arguments"}).is_identical


def test_another_model_is_the_same_job_at_other_prices():
    events = golden("tools")

    replayed = replay(with_model(events, CARD))

    assert replayed.is_identical
    used = [event.usage for event in events if isinstance(event, e.ModelCompleted)]
    now = sum((u.input * Decimal(30) + u.output * Decimal(300)) / 1_000_000 for u in used)
    assert replayed.cost.now_usd == now
    assert replayed.cost.difference_usd == now - replayed.cost.recorded_usd


def test_an_unfinished_log_is_replayed_to_its_end():
    events = golden("tools")

    assert all(replay(events[:count]).is_identical for count in range(1, len(events)))


def test_a_cancel_heard_during_a_call_does_not_make_a_difference():
    events = history(histories.Environment(replies=(histories.Reply(calls=1), histories.Reply("done")), cancel_after=1))

    assert replay(events).is_identical


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"format": "other"}, "no file of"),
        ({"version": 2}, "its version is 2"),
        ({"events": []}, "no events"),
        ({"events": [{"type": "job.submitted"}]}, "cannot be read"),
    ],
)
def test_what_is_no_job_file_says_what_is_wrong(change, why):
    file = orjson.loads(GOLDEN[0].read_bytes()) | change

    with pytest.raises(NotAnExport, match=why):
        read_export(file)


def test_a_job_file_with_a_gap_is_refused():
    file = orjson.loads(GOLDEN[0].read_bytes())
    del file["events"][3]

    with pytest.raises(NotAnExport, match="without a gap"):
        read_export(file)


def test_an_exported_job_reads_back_whole():
    events = history(histories.Environment(replies=(histories.Reply(calls=2), histories.Reply("done"))))
    values = [event.model_dump(mode="json") for event in events]

    file = export_job(values)

    read = read_export(orjson.loads(orjson.dumps(file)))
    assert [event.model_dump(mode="json") for event in read] == values
    assert [card["model"] for card in file["models"]] == ["m"]
    assert (file["agent"]["name"], file["agent"]["version"]) == ("a", 1)
