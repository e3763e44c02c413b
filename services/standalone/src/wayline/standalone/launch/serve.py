"""`wayline serve`: services as a process of their own, configured by `WAYLINE_…` variables."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from contextlib import AsyncExitStack

from wayline.chassis import BusSettings
from wayline.chassis.probes import probes, server
from wayline.chassis.process_secrets import keep_secrets
from wayline.standalone.launch import log_config
from wayline.standalone.launch.stopping import Stopped, Stopping
from wayline.standalone.services import Member, ServiceGroup, members
from wayline.standalone.settings import Settings
from wayline.standalone.setup.installation import Installation, read_environment


async def serve(settings: Settings, names: Iterable[str]) -> None:
    """Run the named services in this process until a signal."""
    keep_secrets()
    stopping, installation = Stopping(), Installation(settings.data_dir.absolute())
    stopping.listen()
    installation.require_restored()
    log_config.configure(settings)
    group = ServiceGroup(
        members(names), lambda member: bus_settings(installation, member), lambda member: keys_of(installation, member)
    )
    async with AsyncExitStack() as stack:
        stack.push_async_callback(stopping.drain, group)
        try:
            await stopping.or_stop(group.start())
            if settings.health_port is not None:
                await _open_probes(group, settings, stack)
            await stopping.asked.wait()
        except Stopped:
            return


def bus_settings(installation: Installation, member: Member) -> BusSettings:
    """Return the service's identity and addresses: from the environment, else as `wayline up` wrote them."""
    written = read_environment(installation, member.identity)
    values: dict[str, str | None] = {}
    # The address and the seed belong together: a seed of another bus would only be refused.
    if "WAYLINE_NATS_URL" not in os.environ and "WAYLINE_NATS_URL" in written:
        values["nats_url"] = written["WAYLINE_NATS_URL"]
    if "WAYLINE_NATS_SEED" not in os.environ and os.environ.get(
        "WAYLINE_NATS_URL", written.get("WAYLINE_NATS_URL")
    ) == (written.get("WAYLINE_NATS_URL")):
        values["nats_seed"] = written.get("WAYLINE_NATS_SEED")
        if "WAYLINE_NATS_ACCOUNTS" not in os.environ:
            values["nats_accounts"] = written.get("WAYLINE_NATS_ACCOUNTS")
    if "WAYLINE_POSTGRES_DSN" not in os.environ and "WAYLINE_POSTGRES_DSN" in written:
        values["postgres_dsn"] = written["WAYLINE_POSTGRES_DSN"]
    # The process has its own probes, for all services that share it.
    return BusSettings(**{name: value for name, value in values.items() if value}, health_port=None)  # type: ignore[arg-type]


def keys_of(installation: Installation, member: Member) -> dict[str, object]:
    """Return the keys with which the service encrypts or signs, as `wayline up` wrote them."""
    if member.keys is None:
        return {}
    keys = read_environment(installation, member.identity).get(member.variable(member.keys.upper()))
    return {member.keys: keys} if keys else {}


async def _open_probes(group: ServiceGroup, settings: Settings, stack: AsyncExitStack) -> None:
    assert settings.health_port is not None
    http = server(probes(group.ready), host=settings.health_host, port=settings.health_port)
    serving = asyncio.create_task(http.serve(), name="probes")

    async def close() -> None:
        http.should_exit = True
        await serving

    stack.push_async_callback(close)
