"""`python -m wayline.tracing` runs the service; `python -m wayline.tracing rebuild` makes its tables anew."""

from __future__ import annotations

import asyncio
import sys

from wayline.chassis import Bus, BusSettings, main
from wayline.tracing.app import SERVICE, build, open_store
from wayline.tracing.rebuild import rebuild
from wayline.tracing.settings import Settings


async def rebuild_from_log() -> None:
    """Make the tables anew from the log, and say what was read."""
    settings, bus_settings = Settings(), BusSettings()
    bus = await Bus.connect(bus_settings, service=SERVICE)
    store = await open_store(settings, bus_settings)
    try:
        done = await rebuild(bus, store, spans_days=settings.spans_days)
        print(f"{done.records} records read, {done.unreadable} unreadable")
    finally:
        await store.close()
        await bus.close()


if __name__ == "__main__":
    if sys.argv[1:] == ["rebuild"]:
        asyncio.run(rebuild_from_log())
    else:
        main(build)
