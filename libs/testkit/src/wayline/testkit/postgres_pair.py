"""A Postgres with a standby that has every commit, and is promoted when the first is gone."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import asyncpg

from wayline.embedded import PostgresServer, binaries, system_account
from wayline.embedded.ports import LOOPBACK
from wayline.testkit.waiting import until

COPIED_WITHIN_S = 60.0
PASSWORD_FILE = "password"


class PostgresPair(PostgresServer):
    """The first server; its addresses name the standby too, and ask for whichever takes writes."""

    standby: PostgresServer | None = None

    def dsn(self, *, database: str = "postgres", user: str = "postgres", password: str | None = None) -> str:
        """Return the address of a database on both hosts."""
        one = super().dsn(database=database, user=user, password=password)
        if self.standby is None:
            return one
        both = f"{LOOPBACK}:{self.port},{LOOPBACK}:{self.standby.port}"
        return f"{one.replace(f'{LOOPBACK}:{self.port}', both)}?target_session_attrs=read-write"

    async def add_standby(self, home: Path) -> PostgresServer:
        """Copy the server, start the copy as its standby, and have each commit wait for it from now on."""
        standby = PostgresServer(home, settings=self.settings)
        os.makedirs(home)
        shutil.copy2(self.data_dir / PASSWORD_FILE, home / PASSWORD_FILE)
        await self._copy_into(standby.data)
        await standby.start()
        conn = await asyncpg.connect(super().dsn())
        try:
            # After the copy: once it is promoted it waits for nobody.
            await conn.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            await conn.execute("SELECT pg_reload_conf()")
            synced = "SELECT count(*) > 0 FROM pg_stat_replication WHERE sync_state = 'sync'"
            await until(lambda: conn.fetchval(synced), why="the standby has every commit")
        finally:
            await conn.close()
        self.standby = standby
        return standby

    async def promote(self) -> None:
        """Have the standby take writes."""
        assert self.standby is not None
        conn = await asyncpg.connect(self.standby.dsn())
        try:
            assert await conn.fetchval("SELECT pg_promote()")
        finally:
            await conn.close()

    async def _copy_into(self, data: Path) -> None:
        program = binaries.postgres_bin() / "pg_basebackup"
        where = ["-h", LOOPBACK, "-p", str(self.port), "-U", "postgres", "-D", str(data)]
        environment = {**os.environ, "PGPASSWORD": self.password}
        copying = await asyncio.create_subprocess_exec(
            program, *where, "--checkpoint=fast", "--write-recovery-conf", "--no-sync", env=environment
        )
        async with asyncio.timeout(COPIED_WITHIN_S):
            assert await copying.wait() == 0
        account = system_account.account_for(data)
        if account is not None:
            system_account.give(data, account=account)
