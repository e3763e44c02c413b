"""A circuit breaker: a model that keeps failing is left alone for a while, then tried with one call. Has no clock."""

from __future__ import annotations

from collections import deque

FAILURES_MAX = 5
"""So many failures within the window, and the breaker opens."""
WINDOW_S = 30.0
OPEN_S = 15.0
PROBE_MAX_S = 60.0
"""A probe that nobody heard of for so long is given up, and another call may try."""
PROBE_CHECK_S = 0.5
"""How soon to ask again while another call's probe is under way."""


class CircuitBreaker:
    """Closed: calls pass. Open: none does. Half-open, when that time is over: one does, and its end decides."""

    def __init__(self) -> None:
        self._failed_at: deque[float] = deque(maxlen=FAILURES_MAX)
        self._open_until: float | None = None
        self._probe_until = 0.0

    @property
    def closed(self) -> bool:
        return self._open_until is None

    def open_for(self, now: float) -> float | None:
        """Return how long it lets nobody through; 0.0: the next call probes. None: it is closed."""
        return None if self._open_until is None else max(0.0, self._open_until - now)

    def enter(self, now: float) -> float:
        """Return 0.0 where a call may go on and say how it ended, else the seconds after which to ask again."""
        if self._open_until is None:
            return 0.0
        if now < self._open_until:
            return self._open_until - now
        if now < self._probe_until:
            return PROBE_CHECK_S
        self._probe_until = now + PROBE_MAX_S
        return 0.0

    def failed(self, now: float) -> float | None:
        """Count a failed call; return the time until which the breaker is open, where that has just been decided."""
        if self._open_until is not None:
            if now < self._open_until:
                # Begun before it opened: that is known by now.
                return None
            return self.open(now + OPEN_S)
        self._failed_at.append(now)
        recent = len(self._failed_at) == FAILURES_MAX and now - self._failed_at[0] <= WINDOW_S
        return self.open(now + OPEN_S) if recent else None

    def succeeded(self, now: float) -> bool:
        """Count a call that went well; return whether that has closed the breaker."""
        if self._open_until is None or now < self._open_until:
            return False
        self.close()
        return True

    def left(self) -> None:
        """Let the next call probe: this one ended without telling anything of the provider."""
        self._probe_until = 0.0

    def open(self, until: float) -> float:
        """Let nobody through until a moment, and return it."""
        self._open_until = until
        self._probe_until = 0.0
        self._failed_at.clear()
        return until

    def close(self) -> None:
        self._open_until = None
        self._probe_until = 0.0
        self._failed_at.clear()
