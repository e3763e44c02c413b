"""What a fork's model is not told: facts are taken out of the recorded memory, the store is never asked. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from wayline.contracts import events as e
from wayline.journal.forked_calls import ForkRefused

Value = dict[str, Any]
INJECTED = "memory.injected"


def told_at(events: Sequence[e.Event], fact_ids: Collection[str]) -> int:
    """Return the event by which the model was told the first of some facts. Raises ForkRefused."""
    for event in events:
        if isinstance(event, e.MemoryInjected) and any(one.fact_id in fact_ids for one in event.facts):
            return event.seq
    raise ForkRefused(
        f"the job was not told {', '.join(sorted(fact_ids))}: GET /v1/jobs/{{job_id}}/memories names what it was told. "
        "What an earlier job of its session was told is in the history, which a fork cannot change"
    )


def without_facts(values: Sequence[Value], fact_ids: Collection[str]) -> list[Value]:
    """Return events in which the model is not told some facts. Raises ForkRefused where it was not told one of them."""
    told = {one["fact_id"] for value in values if value["type"] == INJECTED for one in value["facts"]}
    if missing := sorted(set(fact_ids) - told):
        raise ForkRefused(f"the job was not told {', '.join(missing)} by the event after which it branches off")
    kept = (_without(value, fact_ids) if value["type"] == INJECTED else value for value in values)
    return [value for value in kept if value is not None]


def _without(value: Mapping[str, Any], fact_ids: Collection[str]) -> Value | None:
    """Return an injection without some facts; None: nothing is left of it.

    The first line of its note says what it is, and each fact has a line, in their order.
    """
    left = [one for one in value["facts"] if one["fact_id"] not in fact_ids]
    if not left and not value.get("gone"):
        return None
    head, *lines = value["note"]["text"].split("\n")
    facts, ending = lines[: len(value["facts"])], lines[len(value["facts"]) :]
    shown = [line for one, line in zip(value["facts"], facts, strict=False) if one["fact_id"] not in fact_ids]
    note = {**value["note"], "text": "\n".join([head, *shown, *ending])}
    return {**value, "facts": left, "note": note}
