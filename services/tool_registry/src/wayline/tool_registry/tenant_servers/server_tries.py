"""How many servers may be tried at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from wayline.tool_registry.errors import TriesFull

TRIES_MAX = 16
"""In this process: a server that is tried may be a program that is downloaded first."""
TRIES_PER_TENANT_MAX = 4


class ServerTries:
    """Counts the servers that are being tried: those of one tenant, which may all hang, leave room to others."""

    def __init__(self) -> None:
        self._running: Counter[str] = Counter()

    @contextmanager
    def begun(self, tenant: str) -> Iterator[None]:
        """Count one try while it lasts. Raises TriesFull at once: its asker does not wait for tries that may hang."""
        if self._running[tenant] >= TRIES_PER_TENANT_MAX:
            raise TriesFull(f"{TRIES_PER_TENANT_MAX} servers of this tenant are being tried")
        if self._running.total() >= TRIES_MAX:
            raise TriesFull(f"{TRIES_MAX} servers are being tried")
        self._running[tenant] += 1
        try:
            yield
        finally:
            self._running[tenant] -= 1
            if not self._running[tenant]:
                del self._running[tenant]
