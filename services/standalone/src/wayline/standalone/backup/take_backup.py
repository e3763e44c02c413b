"""Take a backup while everything runs.

The order is what makes its parts fit: work that waits first, then keys, then the tables as of one moment, then the logs
and what is written beside them, the stored fields last. What was acknowledged before the backup began is in it; what
comes while it runs may be. A restore brings the parts together (`recover_jobs.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wayline.chassis.running_version import running_version
from wayline.client import MACHINE_KEY
from wayline.standalone.backup.backup_files import BackupWriter, Write
from wayline.standalone.backup.database_dump import dump_tables, tables_moment
from wayline.standalone.backup.manifest import Manifest, StreamPart
from wayline.standalone.backup.stream_snapshots import (
    durable_consumers,
    stream_info,
    stream_names,
    take_snapshot,
)
from wayline.standalone.services import MEMBERS
from wayline.standalone.setup.installation import Installation, ServerAccess
from wayline.standalone.setup.migrations import connected_admin

if TYPE_CHECKING:
    from nats.aio.client import Client

WAIT_S: Final = 30.0
QUEUES: Final = ("TELEMETRY", "NOTICES", "INDEX", "SUBMIT", "RUN")
"""Before the tables: what is taken from them meanwhile is in the tables, or comes again."""
LOGS: Final = ("EVENTS", "LATER", "SIGNALS")
"""Right after the tables, and signals last: a log counts the signals that it has seen."""
NOT_KEPT: Final = frozenset({"PROBES"})
"""It shows that writing works."""
TABLES: Final = "postgres.dump"
KEYS: Final = "credentials/keys.json"
CLIENTS: Final = "credentials/clients.json"
MACHINE: Final = f"credentials/{MACHINE_KEY}"

PROGRESS_EVERY_S: Final = 5.0

Tell = Callable[[str, int, bool], None]
"""Is told of a part, its bytes until now, and whether it is done."""


async def take_backup(
    access: ServerAccess, installation: Installation, path: Path, *, credentials: bool, tell: Tell
) -> Manifest:
    """Write a backup, and return its manifest. Raises BackupInvalid or BackupFailed."""
    async with connected_admin(access, wait_s=WAIT_S) as bus:
        return await Backup(bus.nc, access, BackupWriter(path), tell).take(installation, credentials=credentials)


class Backup:
    """One backup on its way."""

    def __init__(self, nc: Client, access: ServerAccess, writer: BackupWriter, tell: Tell) -> None:
        self._nc = nc
        self._access = access
        self._writer = writer
        self._tell = tell
        self._streams: list[StreamPart] = []
        self._consumers: dict[str, list[dict[str, Any]]] = {}
        self._schemas = [str(member.schema) for member in MEMBERS if member.schema]

    async def take(self, installation: Installation, *, credentials: bool) -> Manifest:
        began = datetime.now(UTC)
        names = await self._kept_streams()
        # Before the tables: what was acked until now is in them.
        self._consumers = {name: await durable_consumers(self._nc, name) for name in names}
        for name in (name for name in QUEUES if name in names):
            await self._stream(name)
        if credentials:
            # Before the tables: a rotation that ends meanwhile takes away the key that rows of that moment need.
            self._credentials(installation)
        logs_before = (await stream_info(self._nc, LOGS[0]))["state"]["last_seq"]
        async with tables_moment(self._access.admin_dsn, self._schemas) as moment:
            for name in (*LOGS, *(name for name in names if name not in {*QUEUES, *LOGS})):
                if name in names:
                    await self._stream(name)
            with self._part(TABLES) as write:
                dumped_by = await dump_tables(self._access.admin_dsn, moment, self._schemas, write)
        manifest = Manifest(
            wayline=str(running_version()),
            began_at=began,
            ended_at=datetime.now(UTC),
            schemas=self._schemas,
            dumped_by=dumped_by,
            database=moment.database,
            logs_before=logs_before,
            streams=[await self._as_left(stream) for stream in self._streams],
            credentials=credentials,
            parts=self._writer.parts,
        )
        self._writer.finish(manifest)
        return manifest

    async def _kept_streams(self) -> list[str]:
        """Return the streams that are kept on disk, objects after the messages that refer to them."""
        names = [name for name in await stream_names(self._nc) if name not in NOT_KEPT]
        infos = {name: await stream_info(self._nc, name) for name in names}
        on_disk = [name for name, info in infos.items() if info["config"]["storage"] == "file"]
        return sorted(on_disk, key=lambda name: (name.startswith(("OBJ_", "KV_")), name))

    async def _stream(self, name: str) -> None:
        with self._part(f"streams/{name}") as write:
            taken = await take_snapshot(self._nc, name, write)
        consumers = self._consumers[name]
        self._streams.append(
            StreamPart(
                name=name,
                config=taken["config"],
                state=taken["state"],
                consumers=[one["config"] for one in consumers],
                heard={one["name"]: one["ack_floor"]["stream_seq"] for one in consumers},
                last_sequence=taken["state"]["last_seq"],
            )
        )

    async def _as_left(self, stream: StreamPart) -> StreamPart:
        """Return a stream with its last sequence now, at the end."""
        last = (await stream_info(self._nc, stream.name))["state"]["last_seq"]
        return stream.model_copy(update={"last_sequence": last})

    def _credentials(self, installation: Installation) -> None:
        key = installation.credentials / MACHINE_KEY
        for name, file in ((KEYS, installation.keys), (CLIENTS, installation.clients), (MACHINE, key)):
            if file.exists():
                with self._part(name) as write:
                    write(file.read_bytes())

    @contextmanager
    def _part(self, name: str) -> Iterator[Write]:
        """Write a part, and tell how far it is."""
        written, told_at = 0, time.monotonic()
        with self._writer.part(name) as write:

            def counted(data: bytes) -> None:
                nonlocal written, told_at
                write(data)
                written += len(data)
                if time.monotonic() - told_at > PROGRESS_EVERY_S:
                    told_at = time.monotonic()
                    self._tell(name, written, False)

            yield counted
        self._tell(name, written, True)
