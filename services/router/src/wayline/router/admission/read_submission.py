"""Reads a submission: its job's id, its caller, where the result goes; of a refused one what can be read. Pure."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, TypeGuard

from pydantic import ValidationError
from pydantic_core import from_json

from wayline.chassis import Delivery
from wayline.contracts import headers as h
from wayline.contracts import ids
from wayline.contracts.errors import InvalidMessage
from wayline.contracts.jobs import (
    REPLY_TO_MAX,
    SubmitJob,
    SubmittedBy,
    may_reply_to,
)

SUBMITTED_BY_MAX = 2_000
"""Characters of the header that says who submitted a job."""
DOORS = frozenset({"key", "openai", "mcp"})
"""Ways to submit that only a gateway knows of."""
AGENT_MAX = 64
"""Characters of an agent's name."""
USER_MAX = 128
"""Characters of a user's id."""
UNREADABLE = "unreadable"
"""The agent of a submission that names none which a table takes."""


def job_id_of(asked: str | None, delivery: Delivery) -> str:
    """Return the body's id, else the message's own, else one derived from its place in the stream: the same each time.

    Beside an id in the body the message's own may begin with the tenant: `acme/order-1` for `order-1`.

    Raises InvalidMessage when the body and the header name different jobs, or for a word of the API's paths.
    """
    if asked in ids.WORDS_OF_PATHS:
        reason = f"job_id {asked!r} is a word of the API's paths: choose another id"
        raise InvalidMessage(schema=SubmitJob.schema_id(), reason=reason)
    named = delivery.headers.get(h.MSG_ID)
    if asked and named and named != f"{_tenant(delivery)}/{asked}" and ids.job_id_from(named) != asked:
        raise InvalidMessage(
            schema=SubmitJob.schema_id(), reason=f"{h.MSG_ID} is {named!r} but job_id in the body is {asked!r}"
        )
    if asked:
        return asked
    if named:
        return ids.job_id_from(named)
    return f"job_{sha256(f'{delivery.sequence}/{delivery.stored_ns}'.encode()).hexdigest()[:20]}"


def may_hide_others(asked: str | None, delivery: Delivery) -> bool:
    """Return whether the job is named by nothing but a message id that another tenant may use as well.

    The server compares message ids over the whole stream: of two tenants' the second is not stored, within its window.
    """
    named = delivery.headers.get(h.MSG_ID)
    return asked is None and named is not None and not named.startswith(f"{_tenant(delivery)}/")


def _tenant(delivery: Delivery) -> str:
    return SubmitJob.address(delivery.subject)["tenant"]


def require_text(job: SubmitJob) -> None:
    """Refuse names that no table takes with InvalidMessage: looking one up would fail as if we were broken."""
    for name in ("agent", "session_id", "user_id"):
        if "\0" in (getattr(job, name) or ""):
            raise InvalidMessage(schema=SubmitJob.schema_id(), reason=f"{name} has a NUL character in it")


def reply_to_of(tenant: str, delivery: Delivery) -> str | None:
    """Return where the result goes. Raises InvalidMessage where that is no inbox and no reply of the tenant's own."""
    subject = delivery.headers.get(h.REPLY_TO)
    if subject is not None and not may_reply_to(tenant, subject):
        raise InvalidMessage(
            schema=SubmitJob.schema_id(),
            reason=f"{h.REPLY_TO} is {subject[:REPLY_TO_MAX]!r}; it must begin with _INBOX. or replies.{tenant}. and "
            f"have no white space, wildcard, empty part or more than {REPLY_TO_MAX} characters",
        )
    return subject


def caller_of(delivery: Delivery, tenant: str, job_id: str) -> str | None:
    """Return the caller's own `traceparent`, which becomes a link; a span of the job's own trace is not a caller."""
    handed_on = delivery.headers.get(h.CALLER)
    if handed_on:
        return handed_on
    sender = delivery.headers.get(h.TRACEPARENT)
    ours = sender is not None and sender.split("-")[1:2] == [ids.trace_id(tenant, job_id)]
    return None if ours else sender


def submitted_by(delivery: Delivery) -> SubmittedBy:
    """Return who asked for a job, as its gateway says; a client of the bus that says so itself is believed, too."""
    told = delivery.headers.get(h.SUBMITTED_BY, "")
    if told and len(told) <= SUBMITTED_BY_MAX:
        with suppress(ValidationError):
            said = SubmittedBy.model_validate_json(told)
            if said.how in DOORS:
                return said
    return SubmittedBy(how="bus")


@dataclass(frozen=True, slots=True)
class PartialSubmission:
    """As much of a refused submission as can be read."""

    job: SubmitJob
    job_id: str
    has_log: bool
    """Whether it gets a log: what is no JSON object is only answered."""


def read_partial(delivery: Delivery) -> PartialSubmission:
    """Read what can be read of a refused submission.

    One that can be read whole is kept whole, so that it is the same job when it comes again.
    """
    with suppress(InvalidMessage):
        job = SubmitJob.from_wire(delivery.body, delivery.subject)
        return PartialSubmission(_with_storable_names(job), _log_id(job.job_id, delivery), has_log=True)
    tenant = _tenant(delivery)
    value: Any = None
    with suppress(ValueError):
        value = from_json(delivery.body)
    fields: dict[str, Any] = value if isinstance(value, dict) else {}
    agent, text, user = fields.get("agent"), fields.get("input"), fields.get("user_id")
    job = SubmitJob(
        tenant=tenant,
        agent=agent if _is_name(agent, AGENT_MAX) else UNREADABLE,
        input=text if isinstance(text, str) else "",
        # With it the job is forgotten with its user.
        user_id=user if _is_name(user, USER_MAX) else None,
    )
    return PartialSubmission(job, _log_id(fields.get("job_id"), delivery), has_log=isinstance(value, dict))


def _with_storable_names(job: SubmitJob) -> SubmitJob:
    """Return a job without names that no table takes."""
    names = {"agent": UNREADABLE, "user_id": None}
    wrong = {name: kept for name, kept in names.items() if "\0" in (getattr(job, name) or "")}
    return job.model_copy(update=wrong) if wrong else job


def _is_name(value: Any, most: int) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= most and "\0" not in value


def _log_id(asked: Any, delivery: Delivery) -> str:
    """Return the id that was asked for, where it is one that a client may choose, else the message's own."""
    own = asked if isinstance(asked, str) and ids.job_id_from(asked) == asked else None
    return own or job_id_of(None, delivery)
