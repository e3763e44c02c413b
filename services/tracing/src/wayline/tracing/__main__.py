"""`python -m wayline.tracing` runs the service; `python -m wayline.tracing rebuild` makes its tables anew."""

from __future__ import annotations

import asyncio
import sys

from wayline.chassis import Bus, BusSettings, main
from wayline.tracing.app import NAME, build, open_store
from wayline.tracing.rebuild import rebuild
from wayline.tracing.settings import Settings


async def rebuild_from_log() -> None:
    """Make the tables anew from the log, and say what was read."""
    settings, shared = Settings(), BusSettings()
    bus = await Bus.connect(shared, service=NAME)
    store = await open_store(shared.dsn_of(NAME), wait_s=settings.postgres_wait_s)
    try:
        done = await rebuild(bus, store, spans_days=settings.spans_days)
        print(f"{done.records} records read, {done.unreadable} unreadable")
        if done.kept:
            print(f"{done.kept} jobs left as they are: their first record is no longer in the log")
    finally:
        await store.close()
        await bus.close()


if __name__ == "__main__":
    if sys.argv[1:] == ["rebuild"]:
        asyncio.run(rebuild_from_log())
    else:
        main(build)
