"""A replica that takes no more work until it is told to: it finishes what it has, and stays."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol, runtime_checkable

import structlog

from wayline.chassis.handling.responder import Ask
from wayline.chassis.running_version import running_version
from wayline.contracts.replicas import DescribeReplicas, DrainReplica, ReplicaState

log = structlog.get_logger()

DRAINED = "drained: it takes no work until `wayline drain --undo`"
DESCRIBED_WITHIN_S = 1.0
"""Who lists replicas waits a little longer than this for further answers."""


@runtime_checkable
class Drainable(Protocol):
    """A part of a service that takes work in."""

    @property
    def in_hand(self) -> int: ...

    async def hold(self) -> None:
        """Take nothing more; what is in hand goes on."""

    async def release(self) -> None:
        """Take work again."""


@runtime_checkable
class HandsBack(Protocol):
    """A part whose work another replica can go on with."""

    def hand_back(self) -> None:
        """Give what is in hand to others, each after its present step."""


def process_name() -> str:
    """Return the name of this process: its host and its number there."""
    return f"{socket.gethostname()}-{os.getpid()}"


class Draining:
    """Answers for this process when replicas are listed, and drains it."""

    def __init__(self, service: str, ready: Callable[[], Awaitable[dict[str, str]]]) -> None:
        self._service = service
        # With the service: one process may run several.
        self._name = f"{service}-{process_name()}"
        self._ready = ready
        self._parts: Sequence[object] = ()
        self._late: asyncio.TimerHandle | None = None
        self.drained_at: datetime | None = None

    def asks(self) -> list[Ask[Any]]:
        """Return the requests that each replica hears, also a drained one."""
        return [
            Ask(DescribeReplicas, self.on_describe, everyone=True, subject=f"replicas.list.{self._service}.*"),
            Ask(DrainReplica, self.on_drain, everyone=True, subject=f"replicas.drain.{self._service}.*"),
        ]

    def watch(self, parts: Sequence[object]) -> None:
        """Name the parts that are drained."""
        self._parts = parts

    async def on_describe(self, _: DescribeReplicas) -> ReplicaState:
        """Return what this process is right now, in time also while what it needs does not answer."""
        try:
            return self._state(await asyncio.wait_for(self._ready(), DESCRIBED_WITHIN_S))
        except TimeoutError:
            return self._state({"checks": f"not ended within {DESCRIBED_WITHIN_S:g} s"})

    def _state(self, needs: dict[str, str]) -> ReplicaState:
        return ReplicaState(
            name=self._name,
            service=self._service,
            version=str(running_version()),
            needs=needs,
            ready=all(state == "ok" for state in needs.values()),
            in_hand=sum(part.in_hand for part in self._parts if isinstance(part, Drainable)),
            drained_at=self.drained_at,
        )

    async def on_drain(self, request: DrainReplica) -> ReplicaState | None:
        """Take no more work, or take it again; None: another replica is meant."""
        if request.name != self._name:
            return None
        if self._late is not None:
            self._late.cancel()
            self._late = None
        parts = [part for part in self._parts if isinstance(part, Drainable)]
        if request.undo:
            self.drained_at = None
            for part in parts:
                await part.release()
        else:
            self.drained_at = self.drained_at or datetime.now(UTC)
            for part in parts:
                await part.hold()
            self._late = asyncio.get_running_loop().call_later(request.finish_s, self._hand_back)
        log.info("takes work again" if request.undo else "takes no more work", service=self._service)
        return self._state(await self._ready())

    def _hand_back(self) -> None:
        for part in self._parts:
            if isinstance(part, HandsBack):
                part.hand_back()
