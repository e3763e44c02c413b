"""How long to wait before a server is connected to again."""

from __future__ import annotations

FIRST_S = 0.2


class ReconnectWait:
    """The wait between two connections: it doubles, and begins anew once a connection has lasted."""

    def __init__(self, *, most_s: float) -> None:
        self._most_s = most_s
        self._next_s = FIRST_S

    def after(self, lasted_s: float) -> float:
        """Return how long to wait after a connection that lasted so long; 0: there was none.

        A program that ends soon after each of its starts is not started five times a second.
        """
        if lasted_s >= self._most_s:
            self._next_s = FIRST_S
        wait_s = min(self._next_s, self._most_s)
        self._next_s = wait_s * 2
        return wait_s
