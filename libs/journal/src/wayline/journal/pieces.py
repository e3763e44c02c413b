"""Which pieces of text may still be shown: those of the model call that is under way, and of no other."""

from __future__ import annotations

from wayline.contracts.events import Event, ModelCompleted, ModelFailed, ModelRequested
from wayline.contracts.jobs import Delta


class Pieces:
    """Deltas travel beside the log and may come late: one of a call that failed or ended is void."""

    def __init__(self) -> None:
        self._newest = (0, 0)
        self._over = False

    def hear(self, event: Event) -> None:
        """Take in an event of the log, in order."""
        if isinstance(event, ModelRequested | ModelCompleted | ModelFailed):
            self._newest = (event.step, event.attempt)
            self._over = not isinstance(event, ModelRequested)

    def wants(self, delta: Delta) -> bool:
        """Return whether the call is under way; one that the log does not have yet is newer than all it has."""
        call = (delta.step, delta.attempt)
        return call > self._newest or (call == self._newest and not self._over)
