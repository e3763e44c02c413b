"""What a job can be parked for: whether the wait ends by itself or a person has to end it, and how to say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple


class ParkReason(NamedTuple):
    """One reason of `waiting_for.why`."""

    ended_by: Literal["itself", "person"]
    words: str
    """What the job waits for, with the fields of its `waiting_for` in braces."""
    answer: str = ""
    """What a person can do about it, in the words of the command line; empty: nothing."""


PARK_REASONS: Mapping[str, ParkReason] = {
    "turn": ParkReason("itself", "its turn in its session, after job {after}"),
    "children": ParkReason(
        "itself", "the jobs that it started: {children}", "wayline approvals list shows what one of them asks a person"
    ),
    "provider": ParkReason("itself", "a provider that does not answer: {question}"),
    "pause": ParkReason("itself", "its pause to end: {question}", "wayline pauses shows what is paused"),
    "limit": ParkReason("itself", "a place among the jobs that may run: {question}"),
    "needs_decision": ParkReason(
        "person",
        "a decision about {tool}: {question}",
        "answer with: wayline jobs answer {job_id} {wait_id} succeeded|failed|retry",
    ),
    "budget": ParkReason(
        "person", "its budget: {question}", "raise it with: wayline jobs raise {job_id} USD, or wayline budgets set"
    ),
    "approval": ParkReason("person", "a person's approval"),
    "tool_results": ParkReason(
        "person", "what its caller's own tools return: {calls}", "give one with: wayline jobs result {job_id} KEY TEXT"
    ),
}
UNKNOWN = ParkReason("itself", "{why}, which this version does not know")
"""Of a newer server: to leave early would be to say that a person has to do something."""


def park_reason(why: str) -> ParkReason:
    """Return what is known of a reason."""
    return PARK_REASONS.get(why, UNKNOWN)


def in_words(job_id: str, waiting: Mapping[str, Any]) -> str:
    """Return what a parked job waits for, and on a second line what a person can do about it."""
    reason = park_reason(waiting["why"])
    fields = {
        "job_id": job_id,
        "why": waiting["why"],
        "wait_id": waiting.get("wait_id", ""),
        "after": waiting.get("after"),
        "tool": waiting.get("tool") or "a call",
        "question": waiting.get("question") or "nothing more is known",
        "calls": ", ".join(f"{one['tool']} ({one['key']})" for one in waiting.get("tool_calls") or ()) or "some",
        "children": ", ".join(waiting.get("children") or ()) or "some",
    }
    return "\n".join(filter(None, (line.format_map(fields) for line in (reason.words, reason.answer))))
