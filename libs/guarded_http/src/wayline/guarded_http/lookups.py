"""Look names up on threads of their own: one that hangs cannot be ended, so each domain may have a few of them only.

A name server that never answers would else take all threads of the process, and with them every other look-up.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

LOOKUPS_MAX = 256
"""At once, in this process: each is a thread, which waits for as long as the system's resolver does."""
LOOKUPS_PER_DOMAIN_MAX = 4
LABELS_OF_DOMAIN = 2
"""The last labels of a name, which say whose name server answers."""

Found = Sequence[tuple[Any, ...]]


class TooManyLookups(OSError):
    """So many look-ups hang that another one is not begun."""


class Lookups:
    """Looks names up, and counts the look-ups that have not ended, also of those that nobody waits for any more."""

    def __init__(self, look_up: Callable[[str, int], Found] | None = None) -> None:
        self._look_up = look_up or _look_up
        self._running: Counter[str] = Counter()

    async def addresses(self, host: str, port: int) -> Found:
        """Return what the system's resolver knows of a name. Raises OSError."""
        domain = ".".join(host.lower().split(".")[-LABELS_OF_DOMAIN:])
        if self._running[domain] >= LOOKUPS_PER_DOMAIN_MAX:
            raise TooManyLookups(f"{LOOKUPS_PER_DOMAIN_MAX} look-ups of {domain} have not ended")
        if self._running.total() >= LOOKUPS_MAX:
            raise TooManyLookups(f"{LOOKUPS_MAX} look-ups have not ended")
        self._running[domain] += 1
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Found] = loop.create_future()

        def tell(found: Found | None, error: OSError | None) -> None:
            self._running[domain] -= 1
            if not self._running[domain]:
                del self._running[domain]
            if answer.done():
                return
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(found or ())

        def run() -> None:
            found, error = None, None
            try:
                found = self._look_up(host, port)
            except OSError as failure:
                error = failure
            except UnicodeError as failure:
                error = OSError(str(failure))
            if not loop.is_closed():
                loop.call_soon_threadsafe(tell, found, error)

        # A daemon: the process does not wait for a name server when it ends.
        threading.Thread(target=run, name=f"look-up of {domain}", daemon=True).start()
        return await answer


def _look_up(host: str, port: int) -> Found:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
