"""What each call of a model was told, part by part, and what of it came from a cache. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

BAR_UNITS = 1_000


@dataclass(slots=True)
class ModelCall:
    """One call of the conversation's model."""

    step: int
    attempt: int
    model: str
    parts: list[dict[str, Any]]
    """Tools, system prompt and messages, each with its tokens as estimated and whether it is the same as before."""
    cache_break: str | None = None
    deferred_tokens: int = 0
    room_tokens: int | None = None
    usage: dict[str, Any] | None = None
    """None: it has not ended, or nobody was told."""
    cost_usd: str | None = None
    saved_usd: str | None = None
    notes: tuple[str, ...] = ()
    error: str = ""

    @property
    def estimated(self) -> int:
        return sum(part["tokens"] for part in self.parts)

    def bars(self, most: int) -> list[tuple[str, int, int]]:
        """Return the parts as places on a bar, beside the largest prompt."""
        found, x = list[tuple[str, int, int]](), 0
        for part in self.parts:
            width = round(part["tokens"] / most * BAR_UNITS) if most else 0
            found.append((part["part"], x, width))
            x += width
        return found


def model_calls(events: Iterable[dict[str, Any]]) -> list[ModelCall]:
    """Return the calls of a log in order, each with what its prompt was made of and what came of it."""
    calls = dict[str, ModelCall]()
    before: dict[str, str] = {}
    for event in events:
        if event["type"] == "model.requested":
            parts = [{**part, "same": before.get(part["part"]) == part["hash"]} for part in event.get("prefix", ())]
            before = {part["part"]: part["hash"] for part in event.get("prefix", ())}
            calls[event["attempt_id"]] = ModelCall(
                event["step"],
                event["attempt"],
                f"{event['provider']}/{event['model']}",
                parts,
                event.get("cache_break"),
                event.get("deferred_tokens", 0),
                event.get("room_tokens"),
            )
        elif event["type"] in ("model.completed", "model.failed") and (call := calls.get(event["attempt_id"])):
            call.usage, call.cost_usd = event.get("usage"), event.get("cost_usd")
            call.saved_usd, call.notes = event.get("saved_usd"), tuple(event.get("notes") or ())
            call.error = (event.get("error") or {}).get("message", "")
    return list(calls.values())
