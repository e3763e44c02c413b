"""What a ticket is good for: every row of rule 11."""

from dataclasses import replace

import orjson
import pytest

from wayline.executor.hold.claim import SILENT_MAX, Ticket, Verdict, judge, reading_may_kill, wrote_nothing
from wayline.journal import Head, State

TICKET = Ticket(tenant="default", job_id="j", at=10, sequence=5, delivery=2)


def head(state: State, *, sequence: int = 10, owner: str = "") -> Head:
    return Head(sequence=sequence, state=state, seq=2, content_hash="c", owner=owner)


@pytest.mark.parametrize(
    ("last", "verdict"),
    [
        (None, Verdict.STALE),
        (head(State.NEW), Verdict.CLAIM),
        (head(State.NEW, sequence=11), Verdict.STALE),
        (head(State.PARKED), Verdict.CLAIM),
        (head(State.PARKED, sequence=12, owner="4:1"), Verdict.STALE),
        (head(State.PARKED, sequence=12, owner="5:1"), Verdict.PARKED),
        (head(State.ACTIVE, sequence=12, owner="5:1"), Verdict.CLAIM),
        (head(State.ACTIVE, sequence=12, owner="5:2"), Verdict.FORGET),
        (head(State.ACTIVE, sequence=12, owner="5:3"), Verdict.FORGET),
        (head(State.ACTIVE, sequence=12, owner="4:1"), Verdict.STALE),
        (head(State.ENDED, sequence=12, owner="5:1"), Verdict.SETTLE),
        (head(State.ENDED, sequence=12, owner="4:1"), Verdict.SETTLE),
    ],
    ids=[
        "no log",
        "new, from its first record",
        "new, from another record",
        "parked, woken from this very record",
        "parked later, by another ticket",
        "parked by this ticket's own holder",
        "active under an earlier delivery of this ticket",
        "active under this delivery",
        "active under a later delivery",
        "active under another ticket",
        "ended under this ticket",
        "ended under another ticket",
    ],
)
def test_a_ticket_is_judged_by_the_last_record_alone(last, verdict):
    assert judge(last, TICKET) is verdict


def active(owner: str, *types: str) -> Head:
    return head(State.ACTIVE, owner=owner)._replace(body=orjson.dumps({"events": [{"type": name} for name in types]}))


@pytest.mark.parametrize(
    ("last", "delivery", "nothing"),
    [
        (head(State.NEW), 1, False),
        (head(State.NEW), 2, True),
        (head(State.PARKED, owner="4:9"), 1, False),
        (head(State.PARKED, owner="4:9"), 2, True),
        (active("5:1", "job.claimed", "model.requested"), 2, False),
        (active("5:1", "job.claimed", "model.requested"), 3, True),
        (active("5:1", "job.claimed"), 2, True),
        (active("5:1", "job.claimed", "job.resumed"), 2, True),
        (active("5:1", "job.claimed", "job.handed_back"), 2, False),
    ],
)
def test_a_redelivery_without_progress_may_have_killed_its_holder(last, delivery, nothing):
    assert wrote_nothing(last, replace(TICKET, delivery=delivery)) is nothing


@pytest.mark.parametrize(
    ("last", "delivery", "may"),
    [
        (head(State.NEW), SILENT_MAX, False),
        (head(State.NEW), SILENT_MAX + 1, True),
        (active("5:3", "job.claimed", "model.requested"), SILENT_MAX + 3, False),
        (active("5:3", "job.claimed", "model.requested"), SILENT_MAX + 4, True),
        (active("5:3", "job.handed_back"), 5, False),
        (active("5:3", "job.claimed"), 4, True),
        (head(State.PARKED, owner="4:9"), 2, False),
    ],
)
def test_what_left_nothing_many_times_is_claimed_unread(last, delivery, may):
    assert reading_may_kill(last, replace(TICKET, delivery=delivery)) is may
