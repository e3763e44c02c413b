"""`wayline serve`: services as a process of their own, configured by `WAYLINE_…` variables."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from contextlib import AsyncExitStack

from wayline.chassis import BusSettings
from wayline.chassis.probes import probes, server
from wayline.standalone import logs
from wayline.standalone.setup.installation import Installation, read_environment
from wayline.standalone.services import Fleet, Member, members
from wayline.standalone.settings import Settings
from wayline.standalone.launch.stopping import Stopped, Stopping


async def serve(settings: Settings, names: Iterable[str]) -> None:
    """Run the named services in this process until a signal."""
    stopping, installation = Stopping(), Installation(settings.data_dir.absolute())
    stopping.listen()
    logs.configure(settings)
    fleet = Fleet(members(names), lambda member: bus_settings(installation, member))
    async with AsyncExitStack() as stack:
        stack.push_async_callback(stopping.drain, fleet)
        try:
            await stopping.or_stop(fleet.start())
            if settings.health_port is not None:
                await _open_probes(fleet, settings, stack)
            await stopping.asked.wait()
        except Stopped:
            return


def bus_settings(installation: Installation, member: Member) -> BusSettings:
    """Who the service is: what the environment says, else what `wayline up` left in the data directory."""
    kept = read_environment(installation, member.identity)
    said: dict[str, str | None] = {}
    # The address and the seed belong together: a seed of another bus would only be refused.
    if "WAYLINE_NATS_URL" not in os.environ and "WAYLINE_NATS_URL" in kept:
        said["nats_url"] = kept["WAYLINE_NATS_URL"]
    if "WAYLINE_NATS_SEED" not in os.environ and os.environ.get("WAYLINE_NATS_URL", kept.get("WAYLINE_NATS_URL")) == (
        kept.get("WAYLINE_NATS_URL")
    ):
        said["nats_seed"] = kept.get("WAYLINE_NATS_SEED")
        if "WAYLINE_NATS_ACCOUNTS" not in os.environ:
            said["nats_accounts"] = kept.get("WAYLINE_NATS_ACCOUNTS")
    if "WAYLINE_POSTGRES_DSN" not in os.environ and "WAYLINE_POSTGRES_DSN" in kept:
        said["postgres_dsn"] = kept["WAYLINE_POSTGRES_DSN"]
    # The probes are the process's, whichever services share it.
    return BusSettings(**{name: value for name, value in said.items() if value}, health_port=None)  # type: ignore[arg-type]


async def _open_probes(fleet: Fleet, settings: Settings, stack: AsyncExitStack) -> None:
    assert settings.health_port is not None
    http = server(probes(fleet.ready), host=settings.health_host, port=settings.health_port)
    serving = asyncio.create_task(http.serve(), name="probes")

    async def close() -> None:
        http.should_exit = True
        await serving

    stack.push_async_callback(close)
