"""The turns of submissions that were accepted before another one of their session. Pure."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from wayline.chassis import Delivery
from wayline.contracts.errors import InvalidMessage
from wayline.contracts.jobs import SubmitJob, WhenBusy
from wayline.router.admission.read_submission import job_id_of, require_text

TURN_FIELDS = ("job_id", "agent", "session_id", "user_id", "options")


@dataclass(frozen=True, slots=True)
class EarlierTurn:
    """A submission of a session that is to take its turn before later ones do."""

    job_id: str
    session_id: str
    agent: str
    user_id: str | None
    when_busy: WhenBusy
    sequence: int
    """Its place among all submissions."""


def turn_of(job: SubmitJob, delivery: Delivery) -> EarlierTurn | None:
    """Return the turn that a submission has to take; None: it takes none, or is refused."""
    if job.session_id is None or job.options.dry_run:
        return None
    try:
        require_text(job)
        job_id = job_id_of(job.job_id, delivery)
    except InvalidMessage:
        return None
    return EarlierTurn(job_id, job.session_id, job.agent, job.user_id, job.options.when_busy, delivery.sequence)


def turn_in(delivery: Delivery) -> EarlierTurn | None:
    """Return the turn that a stored submission has to take; its large fields may still be elsewhere."""
    value: Any = None
    with suppress(ValueError):
        value = from_json(delivery.body)
    if not isinstance(value, dict) or not value.get("session_id"):
        return None
    fields: dict[str, Any] = {name: value[name] for name in TURN_FIELDS if name in value} | {"input": ""}
    try:
        return turn_of(SubmitJob.read(fields, delivery.subject), delivery)
    except InvalidMessage:
        return None
