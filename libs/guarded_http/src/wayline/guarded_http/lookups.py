"""Look names up on threads of their own: one that hangs cannot be ended, so each domain may have a few of them only.

A name server that never answers would else take all threads of the process, and with them every other look-up; and
a tenant with many such domains takes no more than a share of what is free.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, NamedTuple

LOOKUPS_MAX = 256
"""At once, in this process: each is a thread, which waits for as long as the system's resolver does."""
LOOKUPS_PER_DOMAIN_MAX = 4
WAITING_PER_DOMAIN_MAX = 200
"""Look-ups of other names of a domain that wait for one of these to end; their callers bound how long."""
WAITING_PER_OWNER_MAX = 400
SHARE_OF_FREE = 0.5
"""Of the places that are free, how many one owner may have: however many owners hang, some are left."""
LABELS_OF_DOMAIN = 2
"""The last labels of a name, which say whose name server answers."""
_OWNER: ContextVar[str] = ContextVar("for whom names are looked up", default="")

Found = Sequence[tuple[Any, ...]]


class TooManyLookups(OSError):
    """So many look-ups wait or hang that another one is not begun."""


@contextmanager
def looked_up_for(owner: str) -> Iterator[None]:
    """Count the look-ups within it, and of the tasks that are begun there, for an owner: a tenant."""
    token = _OWNER.set(owner)
    try:
        yield
    finally:
        _OWNER.reset(token)


def look_up_for(owner: str) -> None:
    """Count the look-ups of the task that runs, and of those that it begins, for an owner: a tenant."""
    _OWNER.set(owner)


class _Place(NamedTuple):
    """What a look-up takes a place of."""

    owner: str
    """For whom; empty: the installation itself, which has no share."""
    domain: str


class _Name(NamedTuple):
    """What is looked up, and the event loop that wants to know."""

    loop: asyncio.AbstractEventLoop
    host: str
    port: int

    def place(self) -> _Place:
        return _Place(_OWNER.get(), ".".join(self.host.lower().split(".")[-LABELS_OF_DOMAIN:]))


class Lookups:
    """Looks names up, each once at a time, and counts the look-ups that have not ended, also those nobody waits for."""

    def __init__(self, look_up: Callable[[str, int], Found] | None = None) -> None:
        self._look_up = look_up or _look_up
        self._lock = threading.Lock()
        self._running: Counter[_Place] = Counter()
        self._answers: dict[_Name, asyncio.Future[Found]] = {}
        self._waiting: dict[asyncio.Future[None], _Place] = {}
        """What is set when a look-up has ended, and the place of the one that waits for it."""

    async def addresses(self, host: str, port: int) -> Found:
        """Return what the system's resolver knows of a name; the caller bounds the wait. Raises OSError."""
        name = _Name(asyncio.get_running_loop(), host, port)
        place = name.place()
        while True:
            with self._lock:
                answer = self._answers.get(name) or self._begin(name, place)
                ended = None if answer else self._wait(name, place)
            if answer is not None:
                # Others may wait for the same answer.
                return await asyncio.shield(answer)
            assert ended is not None
            try:
                await ended
            finally:
                with self._lock:
                    self._waiting.pop(ended, None)

    def _begin(self, name: _Name, place: _Place) -> asyncio.Future[Found] | None:
        """Begin a look-up; None: there is no place for it."""
        if not self._has_room(place):
            return None
        answer: asyncio.Future[Found] = name.loop.create_future()
        # Where nobody waits any more, nobody hears of an error either.
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        args = (name, place, answer)
        # A daemon: the process does not wait for a name server when it ends.
        thread = threading.Thread(target=self._run, args=args, name=f"look-up of {place.domain}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            raise TooManyLookups(str(error)) from None
        self._running[place] += 1
        self._answers[name] = answer
        return answer

    def _has_room(self, place: _Place) -> bool:
        free = LOOKUPS_MAX - self._running.total()
        if not free or self._running[place] >= LOOKUPS_PER_DOMAIN_MAX:
            return False
        of_owner = sum(count for one, count in self._running.items() if one.owner == place.owner)
        return not place.owner or of_owner < free * SHARE_OF_FREE

    def _wait(self, name: _Name, place: _Place) -> asyncio.Future[None]:
        """Wait until a look-up has ended. Raises TooManyLookups where too many wait already."""
        waiting = self._waiting.values()
        if sum(one == place for one in waiting) >= WAITING_PER_DOMAIN_MAX:
            raise TooManyLookups(f"{WAITING_PER_DOMAIN_MAX} look-ups of {place.domain} wait for others to end")
        if place.owner and sum(one.owner == place.owner for one in waiting) >= WAITING_PER_OWNER_MAX:
            raise TooManyLookups(f"{WAITING_PER_OWNER_MAX} look-ups of one tenant wait for others to end")
        ended: asyncio.Future[None] = name.loop.create_future()
        self._waiting[ended] = place
        return ended

    def _run(self, name: _Name, place: _Place, answer: asyncio.Future[Found]) -> None:
        found = None
        try:
            found = self._found(name)
        finally:
            with self._lock:
                self._running[place] -= 1
                if not self._running[place]:
                    del self._running[place]
                del self._answers[name]
                waiting, self._waiting = self._waiting, {}
        # An event loop that is gone needs no answer.
        with suppress(RuntimeError):
            name.loop.call_soon_threadsafe(_tell, answer, found)
        for ended in waiting:
            with suppress(RuntimeError):
                ended.get_loop().call_soon_threadsafe(_tell, ended, None)

    def _found(self, name: _Name) -> Found | OSError:
        try:
            return self._look_up(name.host, name.port)
        except OSError as error:
            return error
        except (ValueError, OverflowError) as error:
            # No name at all: too long a label, a NUL in it.
            return OSError(str(error))


def _tell(future: asyncio.Future[Any], found: Found | OSError | None) -> None:
    if future.done():
        return
    if isinstance(found, OSError):
        future.set_exception(found)
    else:
        future.set_result(found)


def _look_up(host: str, port: int) -> Found:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
