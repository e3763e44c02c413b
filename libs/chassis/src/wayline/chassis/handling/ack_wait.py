"""How long the server waits for the ack of a consumer's message."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from wayline.chassis.connection.leaders import once_led

if TYPE_CHECKING:
    from wayline.chassis.connection.bus import Bus
    from wayline.chassis.topology import Consumer


async def ack_wait(bus: Bus, consumer: Consumer) -> float:
    """Return a consumer's `ack_wait` in seconds as the server has it: an operator may have shortened it."""
    info = await once_led(partial(bus.js.consumer_info, consumer.stream, consumer.name))
    return info.config.ack_wait or consumer.ack_wait_s
