"""The bus as the identity that has its servers reload."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from wayline.embedded.ports import free_port
from wayline.standalone.bus.accounts_file import NotReached, as_system
from wayline.standalone.settings import Settings
from wayline.standalone.setup.installation import Installation


async def test_a_bus_of_which_no_server_runs_is_soon_said_so(tmp_path: Path):
    url = ",".join(f"nats://127.0.0.1:{free_port()}" for _ in range(3))
    installation = Installation(tmp_path)
    installation.prepare()

    # A client of three servers would try for six minutes by itself.
    async with asyncio.timeout(20):
        with pytest.raises(NotReached):
            async with as_system(Settings(nats_url=url), installation, installation.load_credentials()):
                pass
