"""A second platform, made of a backup of the first: other servers, other ports, the same tools and the same model."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from wayline.embedded import NatsServer, PostgresServer
from wayline.standalone.backup.backup_files import BackupReader, BackupWriter
from wayline.standalone.backup.recover_jobs import Recovered
from wayline.standalone.backup.restore_backup import restore_backup
from wayline.standalone.backup.take_backup import LOGS, Backup
from wayline.standalone.setup.credentials import Credentials
from wayline.standalone.setup.installation import GRAFANA, Installation, ServerAccess
from wayline.testkit.databases import PASSWORD, SCHEMAS, Database, clone, role_of
from wayline.testkit.guarded import Guarded, config
from wayline.testkit.nats_cluster import NatsCluster

from .conftest import equip, shorten_ack_waits
from .platform import FaultPlatform


def access_of(guarded: Guarded, database: Database) -> ServerAccess:
    """Return a platform's servers as commands of an operator reach them."""
    passwords = dict.fromkeys((*SCHEMAS, GRAFANA), PASSWORD)
    return ServerAccess(
        nats_url=guarded.url,
        admin_dsn=database.dsn,
        credentials=Credentials(seeds=guarded.seeds, passwords=passwords),
        own_bus=True,
    )


class _Slow(Backup):
    """A backup in which time passes between the tables and the logs."""

    meanwhile: Callable[[], Awaitable[None]]

    async def _stream(self, name: str) -> None:
        if name == LOGS[0]:
            await self.meanwhile()
        await super()._stream(name)


async def back_up(
    platform: FaultPlatform, path: Path, *, before_logs: Callable[[], Awaitable[None]] | None = None
) -> None:
    """Take a backup of a platform at work."""
    backup = (_Slow if before_logs else Backup)(
        platform.bus.nc, access_of(platform.nats, platform.database), BackupWriter(path), lambda *_: None
    )
    if before_logs is not None:
        assert isinstance(backup, _Slow)
        backup.meanwhile = before_logs
    await backup.take(Installation(path.parent), credentials=False)


async def restored(
    stack: AsyncExitStack,
    source: FaultPlatform,
    path: Path,
    *,
    postgres: PostgresServer,
    clustered: bool = False,
    replicas: int | None = None,
    nothing_after: bool = False,
) -> tuple[FaultPlatform, Recovered]:
    """Restore a backup on servers of its own, and return the platform, whose services do not run yet."""
    home = path.parent / f"restored-{secrets.token_hex(4)}"
    home.mkdir()
    seeds = source.nats.seeds
    guarded: Guarded
    if clustered:
        guarded = nats = NatsCluster.of(home / "nats", seeds)
    else:
        guarded = Guarded(nats := NatsServer(home / "nats", config=config(home / "nats" / "jetstream", seeds)), seeds)
    stack.push_async_callback(nats.kill)
    await nats.start()
    database = await clone(postgres)
    backup = BackupReader(path)
    backup.verify()
    recovered = await restore_backup(
        access_of(guarded, database),
        backup,
        tell=lambda _: None,
        name=home.name,
        replicas=replicas,
        nothing_after=nothing_after,
    )
    with_tables = Database(database.name, postgres, tables=True)
    platform = await stack.enter_async_context(FaultPlatform.open(guarded, with_tables, limits=None))
    await shorten_ack_waits(platform.bus.js)
    platform.chat, platform.effects = source.chat, source.effects
    platform.chat.script = platform.script
    platform.fleet = await platform.make_fleet(home, *(name for name in SCHEMAS if role_of(name)))
    equip(platform)
    await platform.watch()
    return platform, recovered
