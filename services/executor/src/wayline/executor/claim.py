"""What a run ticket is still good for: rule 11 of the protocol, decided from the log's last record alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from wayline.journal import Head, State

CLAIMS_MAX = 5
"""Claims in a row without progress; one more ends the job as a crash loop."""

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
        """Who holds a job by this ticket, as its records name them."""
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
    """What to do with a ticket, given the log's last record."""
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


def wrote_nothing(head: Head, ticket: Ticket) -> bool:
    """Whether the last who got this ticket left no more than a claim, if that: for all we know its fold was fatal."""
    if head.owner_ticket != ticket.sequence:
        return ticket.delivery > 1
    return ticket.delivery > head.owner_delivery + 1 or all(value["type"] in CLAIM for value in head.values)
