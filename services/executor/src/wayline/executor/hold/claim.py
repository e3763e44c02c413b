"""What a run ticket is still good for: rule 11 of the protocol, decided from the log's last record alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from wayline.journal import Head, State

CLAIMS_MAX = 5
"""Claims in a row without progress; one more ends the job as a crash loop."""

SILENT_MAX = 10
"""Deliveries in a row that left nothing in the log; the next one claims before it even reads."""

CLAIM = frozenset({"job.claimed", "job.resumed"})
"""What a record holds that only claims."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """A delivered run ticket."""

    tenant: str
    job_id: str
    at: int
    sequence: int
    delivery: int

    @property
    def owner(self) -> str:
        """Return the owner of a job held by this ticket, as its records name it."""
        return f"{self.sequence}:{self.delivery}"


class Verdict(StrEnum):
    """What a ticket is still good for."""

    CLAIM = "claim"
    SETTLE = "settle"
    """The job has ended: finish what comes after the end, then ack."""
    PARKED = "parked"
    """This ticket's own holder parked the job and did not get to the ack."""
    FORGET = "forget"
    """A later delivery of this ticket lives, or may live: no ack, no nak."""
    STALE = "stale"


def judge(head: Head | None, ticket: Ticket) -> Verdict:
    """Choose what to do with a ticket, given the log's last record."""
    if head is None:
        return Verdict.STALE
    if head.state is State.ENDED:
        return Verdict.SETTLE
    if head.state in (State.NEW, State.PARKED) and ticket.at == head.sequence:
        return Verdict.CLAIM
    if head.owner_ticket != ticket.sequence:
        return Verdict.STALE
    if head.state is State.PARKED:
        return Verdict.PARKED
    return Verdict.CLAIM if ticket.delivery > head.owner_delivery else Verdict.FORGET


def reading_may_kill(head: Head, ticket: Ticket) -> bool:
    """Return whether to claim from the last record alone, because reading the rest may have killed the last holder.

    A delivery or two may leave nothing for other reasons, and a build that cannot read a log should not write to it.
    """
    return _silent(head, ticket) >= SILENT_MAX or _only_claimed(head, ticket)


def wrote_nothing(head: Head, ticket: Ticket) -> bool:
    """Return whether the last holder of this ticket left at most a claim, so that its fold may have been fatal."""
    return _silent(head, ticket) > 0 or _only_claimed(head, ticket)


def wrote_nothing_at_all(head: Head, ticket: Ticket) -> bool:
    """Return whether the last who got this ticket left nothing in the log."""
    return _silent(head, ticket) > 0


def _silent(head: Head, ticket: Ticket) -> int:
    """Count deliveries of this ticket since the last one that left something in the log."""
    return ticket.delivery - 1 - (head.owner_delivery if head.owner_ticket == ticket.sequence else 0)


def _only_claimed(head: Head, ticket: Ticket) -> bool:
    return head.owner_ticket == ticket.sequence and all(value["type"] in CLAIM for value in head.values)
