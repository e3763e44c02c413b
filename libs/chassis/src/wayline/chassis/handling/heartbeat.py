"""Tell the server of messages in hand that they are still being worked on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import suppress

from nats import errors as nats_errors
from nats.aio.msg import Msg


class Heartbeat:
    """Tells the server at least every `every_s` of each message in hand that it is still being worked on.

    One timer beats for all: most messages are dealt with long before it would.
    """

    def __init__(self, every_s: float) -> None:
        self.every_s = every_s
        self._in_hand: dict[str, Msg] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Return whether no beat is due."""
        return self._timer is None

    def begin(self, message: Msg) -> None:
        """Start to beat for a message."""
        self._in_hand[message.reply] = message
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self.every_s, self._beat)

    def end(self, message: Msg) -> None:
        """Stop beating for a message."""
        self._in_hand.pop(message.reply, None)

    async def during(self, message: Msg, doing: Awaitable[None]) -> None:
        """Do what may take long with a message, which must not come again meanwhile, a slot each time."""
        if message.reply in self._in_hand:
            await doing
            return
        self.begin(message)
        try:
            await doing
        finally:
            self.end(message)

    def stop(self) -> None:
        """Stop beating for all messages."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _beat(self) -> None:
        self._timer = None
        if self._in_hand:
            loop = asyncio.get_running_loop()
            self._sending = loop.create_task(_tell(list(self._in_hand.values())))
            self._timer = loop.call_later(self.every_s, self._beat)


async def _tell(messages: Sequence[Msg]) -> None:
    for message in messages:
        # Where the connection is away the server finds out by itself: the message comes again.
        with suppress(nats_errors.Error):
            await message.in_progress()
