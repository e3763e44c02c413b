"""Nothing of ours outlives us, however we end."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from wayline.embedded import NatsServer, PostgresServer, minimal_config
from wayline.embedded.process import is_alive
from wayline.testkit import until
from wayline.testkit.fixtures import copied_postgres

PARENT = """
import asyncio, sys
from pathlib import Path
from wayline.embedded import NatsServer, PostgresServer, minimal_config

async def main():
    home = Path(sys.argv[1])
    postgres = await PostgresServer(home / "postgres").start()
    nats = await NatsServer(home / "nats", config=minimal_config(home / "nats" / "jetstream")).start()
    print(postgres.pid, nats.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def start_parent(home: Path, empty_cluster: Path) -> tuple[subprocess.Popen[str], list[int]]:
    copied_postgres(empty_cluster, home / "postgres")
    parent = subprocess.Popen([sys.executable, "-c", PARENT, home], stdout=subprocess.PIPE, text=True)
    assert parent.stdout
    with parent.stdout:
        return parent, [int(pid) for pid in parent.stdout.readline().split()]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent died")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_no_server_outlives_a_killed_parent(server_dir: Path, empty_cluster: Path, how: signal.Signals):
    parent, servers = start_parent(server_dir / f"orphans-{how.name}", empty_cluster)

    os.kill(parent.pid, how)
    parent.wait()

    assert len(servers) == 2
    await until(lambda: not any(map(is_alive, servers)), why="both servers are gone after their parent")


async def test_a_killed_parent_is_succeeded_at_once_on_the_same_data(server_dir: Path, empty_cluster: Path):
    home = server_dir / "succeeded"
    parent, _ = start_parent(home, empty_cluster)
    parent.kill()
    parent.wait()

    async with (
        PostgresServer(home / "postgres") as postgres,
        NatsServer(home / "nats", config=minimal_config(home / "nats" / "jetstream")) as nats,
    ):
        assert postgres.running
        assert nats.running


async def test_cancelling_a_start_ends_the_server_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async def never(self: NatsServer, child: object) -> bool:
        return False

    monkeypatch.setattr(NatsServer, "_is_ready", never)
    server = NatsServer(tmp_path, config=minimal_config(tmp_path / "jetstream"))
    starting = asyncio.ensure_future(server.start())
    await until(lambda: server.running, why="the process was started")
    pid = server.pid

    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting

    assert not is_alive(pid)


async def test_a_first_start_that_is_cancelled_leaves_no_process(server_dir: Path):
    home = server_dir / "cancelled"
    server = PostgresServer(home)

    starting = asyncio.ensure_future(server.start())
    await until(lambda: (home / "data.new").exists() or starting.done(), why="the first start is under way")
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting

    assert not server.running
    async with server:
        assert server.running
