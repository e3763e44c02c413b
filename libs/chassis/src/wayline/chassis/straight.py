"""Subscriptions whose messages are handed over as they are read: no queue and no task in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import structlog
from nats import errors as nats_errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

log = structlog.get_logger()

Handle = Callable[[Msg], None]


class _Straight(asyncio.Queue[Msg]):
    """Stands where nats-py puts messages down for a task of the subscription's; nothing ever lies in it."""

    def __init__(self, handle: Handle) -> None:
        super().__init__()
        self._handle = handle

    def put_nowait(self, item: Msg) -> None:
        try:
            self._handle(item)
        except Exception as error:
            # It would end the connection's reading.
            log.error("message handler failed", subject=item.subject, error=repr(error), exc_info=error)


async def subscribe(nc: Client, subject: str, handle: Handle, *, queue: str = "") -> Subscription:
    """Hear a subject with a plain function that is quick, raises nothing and waits for nothing.

    A job's step is several answers from the bus, and nats-py passes each through a queue to a task: two turns of the
    event loop, each of which a busy process makes every waiting job wait for.
    """
    # No bound on what lies waiting, because nothing does.
    subscription = await nc.subscribe(subject, queue, pending_bytes_limit=0)
    subscription._pending_queue = _Straight(handle)  # pyright: ignore[reportPrivateUsage]
    return subscription


async def leave(nc: Client, subscription: Subscription) -> None:
    """End a subscription: after what the server has sent it already, or at once where there is no server to ask."""
    with suppress(nats_errors.Error):
        await (subscription.drain() if nc.is_connected else subscription.unsubscribe())
