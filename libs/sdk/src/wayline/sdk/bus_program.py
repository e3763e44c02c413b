"""A program that FastStream starts, and that drains at SIGTERM."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod

from faststream import FastStream
from faststream.nats import NatsBroker
from nats import errors as nats_errors

log = logging.getLogger("wayline.sdk")

CONNECTED_WITHIN_S = 1.0
"""How long a drain waits for a connection that has just been lost."""


class BusProgram(ABC):
    """Serves the bus from its start until it has drained."""

    broker: NatsBroker

    @abstractmethod
    async def start(self) -> None:
        """Begin to serve."""

    @abstractmethod
    async def drain(self) -> None:
        """Take nothing new, and end what is in hand."""

    async def is_connected(self) -> bool:
        """Return whether the bus can be reached: a drain must not wait for one that is away."""
        return await self.broker.ping(timeout=CONNECTED_WITHIN_S)

    def application(self) -> FastStream:
        """Return an application that serves from its start, and drains at SIGTERM."""
        return FastStream(self.broker, after_startup=[self.start], on_shutdown=[self.drain])

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT."""
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
        try:
            asyncio.run(self.application().run())
        except nats_errors.ConnectionReconnectingError:
            log.warning("ended while the bus was away: nothing was told to it")
