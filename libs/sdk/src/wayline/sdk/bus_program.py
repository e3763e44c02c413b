"""A program that FastStream starts, and that drains at SIGTERM."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod

from faststream import FastStream
from faststream.nats import NatsBroker


class BusProgram(ABC):
    """Serves the bus from its start until it has drained."""

    broker: NatsBroker

    @abstractmethod
    async def start(self) -> None:
        """Begin to serve."""

    @abstractmethod
    async def drain(self) -> None:
        """Take nothing new, and end what is in hand."""

    def application(self) -> FastStream:
        """Return an application that serves from its start, and drains at SIGTERM."""
        return FastStream(self.broker, after_startup=[self.start], on_shutdown=[self.drain])

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT."""
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
        asyncio.run(self.application().run())
