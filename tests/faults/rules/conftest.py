"""The rules of the job protocol that have a counter-example when they are left out: one named test each.

Services run in this process, and what anybody publishes is heard in the order in which the server got it. Rule 3 is
also held by a frozen process (`test_executors_that_stop.py`), rules 5 and 18 by outages and kills (`test_outages.py`,
`test_executor_failpoints.py`), rule 23 by killed registries (`test_service_failpoints.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio
from nats.aio.msg import Msg

from wayline.chassis import stopped

from ..conftest import MakePlatform
from ..platform import FaultPlatform
from .wire import HEARD, Wire


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform) -> FaultPlatform:
    return await make_platform()


@pytest_asyncio.fixture(loop_scope="module")
async def wire(platform: FaultPlatform) -> AsyncIterator[Wire]:
    wire, everything = Wire(), asyncio.Queue[Msg]()

    async def hear() -> None:
        while True:
            wire.heard.append(await everything.get())

    # Not `>`: an ear for every inbox would make pull requests of services that are gone look alive.
    subscriptions = [await platform.bus.nc.subscribe(subject) for subject in HEARD]
    for subscription in subscriptions:
        # One queue for all of them keeps the order in which the server sent what it sent.
        subscription._pending_queue = everything
    await platform.bus.nc.flush()
    hearing = asyncio.create_task(hear())
    yield wire
    for subscription in subscriptions:
        await subscription.unsubscribe()
    await stopped(hearing)
