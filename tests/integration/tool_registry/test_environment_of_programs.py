"""What a program sees of the machine that it runs on."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from wayline.contracts.server_config import ServerConfig
from wayline.guarded_http import AddressPolicy
from wayline.testkit import until
from wayline.tool_registry.connection.program_streams import RESULT_BYTES
from wayline.tool_registry.connection.server_transport import Confinement, Transport
from wayline.tool_registry.programs.jails import Jails
from wayline.tool_registry.programs.program_policy import ProgramPolicy

DOWNLOADS = Path(tempfile.gettempdir(), f"wayline-test-environment-{os.getpid()}")
TELL = """
import json, os, sys, tempfile
seen = {**os.environ, "tempdir": tempfile.gettempdir(), "cwd": os.getcwd()}
open(sys.argv[1] + ".new", "w").write(json.dumps(seen))
os.rename(sys.argv[1] + ".new", sys.argv[1])
sys.stdin.read()
"""
CONFINED = Confinement(AddressPolicy(), programs=ProgramPolicy("t1", Jails(DOWNLOADS), mode="unconfined"))
OURS = {"PATH": "/usr/bin:/bin", "HOME": "/home/ours", "SHELL": "/bin/ours", "USER": "ours", "XDG_CACHE_HOME": "/ours"}


@pytest.fixture(autouse=True, scope="module")
def no_downloads_are_left() -> Iterator[None]:
    yield
    shutil.rmtree(DOWNLOADS, ignore_errors=True)


@pytest.fixture(autouse=True)
def ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in OURS.items():
        monkeypatch.setenv(name, value)


def seen_by_program(file: Path, *, confined: Confinement | None, **env: str) -> dict[str, str]:
    """Start a program and return its variables, its temporary and its working directory."""
    asyncio.run(_told(file, confined, env))
    return json.loads(file.read_text())


async def _told(file: Path, confined: Confinement | None, env: dict[str, str]) -> None:
    server = ServerConfig.model_validate(
        {"command": sys.executable, "args": ["-c", TELL, str(file)], "env": {"TOKEN": "secret", **env}}
    )
    transport = Transport(server, connections_max=1, confined=confined, result_bytes=RESULT_BYTES)
    async with transport.opened(), transport.target():
        await until(file.exists, why="the program has told")


def test_a_tenants_program_has_a_home_of_its_own(tmp_path: Path):
    seen = seen_by_program(tmp_path / "seen", confined=CONFINED)

    scratch = seen["cwd"]
    assert (seen["HOME"], seen["tempdir"]) == (scratch, f"{scratch}/tmp")
    assert not Path(scratch).exists()
    assert (seen["PATH"], seen["TOKEN"]) == (OURS["PATH"], "secret")
    assert not {"SHELL", "USER", "XDG_CACHE_HOME"} & seen.keys()


def test_a_runners_downloads_are_its_tenants(tmp_path: Path):
    seen = seen_by_program(tmp_path / "seen", confined=CONFINED)

    own = Jails(DOWNLOADS).downloads_of("t1")
    assert (seen["npm_config_cache"], seen["UV_CACHE_DIR"]) == (f"{own}/npm", f"{own}/uv")
    assert own != Jails(DOWNLOADS).downloads_of("t2")


def test_a_tenants_own_variables_come_first(tmp_path: Path):
    seen = seen_by_program(tmp_path / "seen", confined=CONFINED, HOME="/srv/files")

    assert seen["HOME"] == "/srv/files"


def test_an_installations_program_has_our_home(tmp_path: Path):
    seen = seen_by_program(tmp_path / "seen", confined=None)

    assert (seen["HOME"], seen["SHELL"], seen["TOKEN"]) == (OURS["HOME"], OURS["SHELL"], "secret")
