"""When a router looks at a lane again in which tickets wait. Pure.

A whole look reads who waits, which grows with the tenants. It is spared while what few numbers tell has not changed
since a look that could give nothing; and the pause after one grows with the tenants that wait.
"""

from __future__ import annotations

from dataclasses import dataclass

FEED_EVERY_S = 0.05
"""How often a lane is looked at while tickets wait in it: what executors take in between is made up for afterwards."""
REST_EACH_S = 40e-6
"""How long nothing is looked at after a whole look, for each tenant that waits: a look at five thousand is dear."""
BELIEVED_S = 5.0
"""How long a look is spared: what is known of a lane's turns is forgotten after twice that."""


@dataclass(frozen=True, slots=True)
class LaneCounts:
    """What the consumers of a lane tell."""

    taken: int
    """Tickets of the backlog that executors have been given, since it was made."""
    taken_upto: int
    """The place in the stream of the last one."""
    taken_in_front: int
    backlog: int
    front: int
    waiting: int


class LookPace:
    """The pace of one router in one lane."""

    def __init__(self) -> None:
        self._fruitless: LaneCounts | None = None
        """What stood in the lane at the last look, where that gave nothing."""
        self._looked_at = self._rests_until = 0.0

    def rests(self, *, now: float) -> float:
        """Return how many seconds nothing is looked at yet, whatever has changed."""
        return max(0.0, self._rests_until - now)

    def spares(self, counts: LaneCounts, *, now: float) -> bool:
        """Return whether a look would give nothing, as it did before."""
        return counts == self._fruitless and now - self._looked_at < BELIEVED_S

    def looked(self, counts: LaneCounts, *, given: int, tenants: int, now: float) -> float:
        """Note a whole look that has ended, and return how soon the next one comes."""
        self._looked_at, self._fruitless = now, None if given else counts
        self._rests_until = now + tenants * REST_EACH_S
        return max(FEED_EVERY_S, tenants * REST_EACH_S)
