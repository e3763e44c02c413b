"""Subscriptions that hand each message to a callback as it is read, without a queue and a task in between."""

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


class _CallbackQueue(asyncio.Queue[Msg]):
    """Takes the place of the queue between nats-py's reader and a subscription's task; always empty."""

    def __init__(self, handle: Handle) -> None:
        super().__init__()
        self._handle = handle

    def put_nowait(self, item: Msg) -> None:
        try:
            self._handle(item)
        except Exception as error:
            # Raised here, it would end the connection's reader.
            log.error("message handler failed", subject=item.subject, error=repr(error), exc_info=error)


async def subscribe(nc: Client, subject: str, handle: Handle, *, queue: str = "") -> Subscription:
    """Subscribe to a subject with a plain function that is quick and does not wait.

    A job's step takes several answers from the bus, and nats-py passes each through a queue to a task: two turns of
    the event loop, each of them long in a busy process.
    """
    # No bound on pending bytes: nothing is ever pending.
    subscription = await nc.subscribe(subject, queue, pending_bytes_limit=0)
    subscription._pending_queue = _CallbackQueue(handle)  # pyright: ignore[reportPrivateUsage]
    return subscription


async def end(subscription: Subscription) -> None:
    """End a subscription at once; nats-py's cycles around it keep nothing of ours."""
    with suppress(nats_errors.Error):
        await subscription.unsubscribe()
    subscription._pending_queue = asyncio.Queue()  # pyright: ignore[reportPrivateUsage]


async def leave(nc: Client, subscription: Subscription) -> None:
    """End a subscription: after the messages already sent, or at once without a connection."""
    with suppress(nats_errors.Error):
        await (subscription.drain() if nc.is_connected else subscription.unsubscribe())
