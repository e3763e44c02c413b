"""As root, Postgres runs under an account that is not, wherever the checkout is."""

import os
import tempfile
from pathlib import Path

import asyncpg
import pytest

from wayline.embedded import PostgresServer, Unreachable, accounts

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has to become somebody else")


@pytest.fixture
def closed_dir():
    """A directory that only root may enter, as root's home is."""
    with tempfile.TemporaryDirectory(prefix="wayline-closed-") as directory:
        yield Path(directory)


def effective_ids_and_rights(pid: int) -> tuple[int, int]:
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status["Uid"].split()[1]), int(status["CapEff"], 16)


async def test_postgres_is_neither_root_nor_has_a_right_of_root(postgres_server: PostgresServer):
    uid, rights = effective_ids_and_rights(postgres_server.pid)

    assert uid != 0
    assert rights == 0


async def test_postgres_passes_a_closed_directory_with_one_right_only(closed_dir: Path):
    async with PostgresServer(closed_dir / "postgres") as server:
        uid, rights = effective_ids_and_rights(server.pid)
        conn = await asyncpg.connect(server.dsn())
        await conn.execute("CREATE TABLE kept AS SELECT 1")
        await conn.close()

    assert uid != 0
    assert rights.bit_count() == 1


async def test_a_directory_that_nothing_can_pass_is_named(closed_dir: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(accounts, "PASSING_CAPABILITIES", ())

    with pytest.raises(Unreachable, match=rf"may not enter {closed_dir} on the way.*WAYLINE_POSTGRES_DSN"):
        await PostgresServer(closed_dir / "postgres").start()
