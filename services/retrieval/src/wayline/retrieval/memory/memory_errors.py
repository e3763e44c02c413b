"""What can go wrong with what is remembered.

WaylineError
└── Reject
    ├── NotFound              no such fact or subject, or not of this user (from the contracts)
    └── Conflict
        ├── MemoryKeyConflict     a key was asked for other facts before
        ├── VersionConflict       the fact or subject is another version by now
        └── NothingToDecide       only a quarantined fact is released or rejected
MemoriesFull                  a tenant has as many facts as it may
FactRefused                   a changed text may not be remembered
"""

from __future__ import annotations

from wayline.contracts.errors import Conflict, Reject


class MemoryKeyConflict(Conflict):
    """A key was asked for other facts before."""

    code = "memory_key_conflict"

    def __init__(self, *, key: str) -> None:
        super().__init__(f"the key {key!r} was used for other facts: take another one for these")


class VersionConflict(Conflict):
    """The fact or subject is another version by now."""

    code = "version_conflict"
    status = 412

    def __init__(self, what: str, *, wanted: int, found: int) -> None:
        super().__init__(f"{what} is version {found} by now, not {wanted}: read it again")


class NothingToDecide(Conflict):
    """Only a quarantined fact is released or rejected."""

    code = "not_quarantined"

    def __init__(self, *, fact_id: str, state: str) -> None:
        super().__init__(f"fact {fact_id!r} is {state}: there is nothing to decide")


class MemoriesFull(Reject):
    """A tenant has as many facts as it may."""

    code = "memories_full"
    status = 429

    def __init__(self, *, most: int) -> None:
        super().__init__(
            f"this tenant has {most:,} facts, as many as it may: forget some, or raise "
            "WAYLINE_RETRIEVAL_FACTS_PER_TENANT_MAX"
        )


class FactRefused(Reject):
    """A changed text may not be remembered."""

    status = 422

    def __init__(self, *, code: str, reason: str) -> None:
        super().__init__(f"this is not remembered: {reason}", code=code)
