"""A job as one self-contained file: its log with every payload in place, its agent and the cards of its models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from wayline.contracts.base import explain
from wayline.contracts.chat import ChatMessage
from wayline.contracts.events import Event, HistoryEnd, read_event
from wayline.journal.histories import History, history_hash

FORMAT = "wayline.job"
VERSION = 1
_HISTORY: TypeAdapter[History] = TypeAdapter(tuple[ChatMessage, ...])
_CALLS = frozenset({"model.requested", "aux.requested"})


class NotAnExport(ValueError):
    """What should be a job's file is none that this version can read."""


def export_job(values: Sequence[Mapping[str, Any]], history: History | None = None) -> dict[str, Any]:
    """Return the file of a job from all events of its log, as decoded JSON.

    `history`: what its session's jobs before it said, as it was pinned; None: nothing, or it cannot be read.
    """
    first = values[0]
    routed = next((value for value in values if value["type"] == "job.routed"), {})
    return {
        "format": FORMAT,
        "version": VERSION,
        "job_id": first["job_id"],
        "agent": {
            "name": first["job"]["agent"],
            "version": routed.get("agent_version"),
            "config": routed.get("config"),
        },
        "models": _cards_used(values, routed),
        "history": None if history is None else _HISTORY.dump_python(history, mode="json"),
        "events": list(values),
    }


def pinned_end(values: Iterable[Mapping[str, Any]]) -> HistoryEnd | None:
    """Return where the history ends that a job's prompts begin with, from its events as decoded JSON."""
    end = None
    for value in values:
        if value["type"] == "session.continued" and value.get("after"):
            end = HistoryEnd.model_validate(value["after"], extra="ignore")
        elif value["type"] == "job.forked":
            end = pinned_end(value["prefix"])
    return end


def _cards_used(values: Iterable[Mapping[str, Any]], routed: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the cards, prices included, of the models that the job called."""
    used = {(value["provider"], value["model"]) for value in values if value["type"] in _CALLS}
    cards = routed.get("candidates", {}).get("cards", [])
    return [card for card in cards if (card["provider"], card["model"]) in used]


def read_export(file: object) -> list[Event]:
    """Read the log out of a job's file. Raises NotAnExport with what to do."""
    if not isinstance(file, dict) or file.get("format") != FORMAT:
        raise NotAnExport("it is no file of `wayline jobs export`")
    if file.get("version") != VERSION:
        raise NotAnExport(f"its version is {file.get('version')!r}, this build reads {VERSION}: export the job again")
    values = file.get("events")
    if not isinstance(values, list) or not values:
        raise NotAnExport("it holds no events")
    try:
        events = [read_event(value) for value in values]
    except (ValidationError, AttributeError) as error:
        why = explain(error) if isinstance(error, ValidationError) else "an event is no object"
        raise NotAnExport(f"an event of it cannot be read: {why}") from None
    if [event.seq for event in events] != list(range(1, len(events) + 1)):
        raise NotAnExport("its events are not numbered from 1 without a gap: part of the log is missing")
    return events


def read_exported_history(file: Mapping[str, Any]) -> History | None:
    """Read the messages before a job out of its file, None where there are none. Raises NotAnExport."""
    if file.get("history") is None:
        return None
    try:
        history = _HISTORY.validate_python(file["history"], extra="ignore")
    except ValidationError as error:
        raise NotAnExport(f"a message of its history cannot be read: {explain(error)}") from None
    end = pinned_end(file["events"])
    if end is None or history_hash(history) != end.hash:
        raise NotAnExport("its history is not the one that the job began with: export the job again")
    return history
