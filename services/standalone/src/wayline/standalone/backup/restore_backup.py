"""Restore a backup into an empty installation, on any host and ports, with any number of copies of its streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from wayline.chassis.declare import LOG
from wayline.chassis.stream_limits import Limits
from wayline.standalone.backup.backup_files import BackupReader
from wayline.standalone.backup.database_dump import require_restorable, restore_tables
from wayline.standalone.backup.fill_queue import fill_queue
from wayline.standalone.backup.manifest import Manifest, StreamPart
from wayline.standalone.backup.recover_jobs import Recovered, recover_jobs
from wayline.standalone.backup.stream_snapshots import ask, make_consumer, restore_snapshot, stream_names
from wayline.standalone.backup.take_backup import NOT_KEPT, QUEUES, TABLES, WAIT_S
from wayline.standalone.errors import NotEmpty
from wayline.standalone.setup.installation import ServerAccess
from wayline.standalone.setup.migrations import connected_admin, migrate_all, sql
from wayline.store.connecting import connect_or_explain

if TYPE_CHECKING:
    from wayline.chassis import Bus

TICKETS: Final = "RUN"
Tell = Callable[[str], None]


async def restore_backup(
    access: ServerAccess,
    backup: BackupReader,
    *,
    tell: Tell,
    name: str,
    replace: bool = False,
    replicas: int | None = None,
    nothing_after: bool = False,
    begun: Callable[[], None] = lambda: None,
) -> Recovered:
    """Restore what a verified backup holds. Raises NotEmpty, BackupFailed and what a migration raises.

    `name`: what the installation is called where it has data; `replace`: that is deleted first; `nothing_after`: no
    service has run since the backup began; `begun` is called when it is known that nothing is in the way, before
    anything is written.
    """
    manifest = backup.manifest
    async with connected_admin(access, wait_s=WAIT_S) as bus:
        conn: Any = await connect_or_explain(access.admin_dsn, server_settings={"wayline.tenant": "*"})
        try:
            await _require_empty(bus, conn, manifest, name=name, replace=replace)
            server = conn.get_server_version().major
            require_restorable(access.admin_dsn, manifest.dumped_by, server)
            begun()
            await _empty(bus, conn, manifest)
            await conn.execute(sql.create_vector)
            await restore_tables(access.admin_dsn, manifest.dumped_by, server, backup.chunks(TABLES))
            tell("tables")
            for stream in _tickets_last(manifest.streams):
                config = _with_copies(stream.config, replicas)
                await restore_snapshot(bus.nc, config, stream.state, backup.chunks(stream.part))
                tell(f"stream {stream.name}: {stream.state['messages']} messages")
            recovered = await _recover(bus, conn, manifest, nothing_after=nothing_after)
            for stream in manifest.streams:
                await _consumers(bus, stream)
            async for change in migrate_all(access, Limits(replicas=replicas)):
                tell(change)
            await conn.execute("ANALYZE")
        finally:
            await conn.close()
    return recovered


async def _require_empty(bus: Bus, conn: Any, manifest: Manifest, *, name: str, replace: bool) -> None:
    """Require that nothing is there, or that it may go. Raises NotEmpty."""
    schemas, streams = await _present(bus, conn, manifest)
    if replace or not (schemas or streams):
        return
    found = [f"schemas {', '.join(schemas)}"] if schemas else []
    found += [f"streams {', '.join(streams)}"] if streams else []
    raise NotEmpty(found, name=name)


async def _empty(bus: Bus, conn: Any, manifest: Manifest) -> None:
    """Take away what is there."""
    schemas, streams = await _present(bus, conn, manifest)
    # The queues go first: a service that was not stopped takes up no more.
    for stream in sorted(streams, key=lambda one: one not in QUEUES):
        await ask(bus.nc, f"STREAM.DELETE.{stream}")
    if schemas:
        await conn.execute(await conn.fetchval(sql.drop_schemas, schemas))


async def _present(bus: Bus, conn: Any, manifest: Manifest) -> tuple[list[str], list[str]]:
    """Return which schemas and streams of a backup are there."""
    schemas = [row["nspname"] for row in await conn.fetch(sql.schemas_there, manifest.schemas)]
    ours = {stream.name for stream in manifest.streams} | NOT_KEPT
    return schemas, sorted(stream for stream in await stream_names(bus.nc) if stream in ours)


async def _recover(bus: Bus, conn: Any, manifest: Manifest, *, nothing_after: bool) -> Recovered:
    """Bring the parts together: queues to their sequences, logs, tables and tickets to the same jobs."""
    last = {stream.name: stream.last_sequence for stream in manifest.streams}
    for queue in QUEUES:
        if queue != TICKETS and queue in last:
            await fill_queue(bus, queue, last[queue])
    return await recover_jobs(
        bus,
        conn,
        logs_before=manifest.logs_before,
        last_ticket=last[TICKETS],
        nothing_after=nothing_after,
    )


async def _consumers(bus: Bus, stream: StreamPart) -> None:
    for config in stream.consumers:
        # A queue holds nothing that was acked.
        heard = 0 if stream.name in QUEUES else stream.heard.get(config["durable_name"], 0)
        await make_consumer(bus.nc, stream.name, config, heard=heard)


def _tickets_last(streams: Sequence[StreamPart]) -> list[StreamPart]:
    return sorted(streams, key=lambda stream: (stream.name == TICKETS, stream.name != LOG))


def _with_copies(config: Mapping[str, Any], replicas: int | None) -> dict[str, Any]:
    """Return a stream's configuration for the bus that it comes to."""
    placed = {**config, "num_replicas": replicas or config.get("num_replicas", 1)}
    # Where the servers of another bus were.
    placed.pop("placement", None)
    return placed
