"""A job as one self-contained file: its log with every payload in place, its agent and the cards of its models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from wayline.contracts.base import explain
from wayline.contracts.events import Event, read_event

FORMAT = "wayline.job"
VERSION = 1
_CALLS = frozenset({"model.requested", "aux.requested"})


class NotAnExport(ValueError):
    """What should be a job's file is none that this version can read."""


def export_job(values: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the file of a job from all events of its log, as decoded JSON."""
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
        "events": list(values),
    }


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
