"""The last release as a build of its own: its sources out of the repository's history, in an environment of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from .restore import Release, releases

ROOT = Path(__file__).parents[2]
DIRECTORY = "WAYLINE_LAST_RELEASE"
"""Names a checkout of the last release with its `.venv`, where it is not to be taken out of the history."""
SETUP_WITHIN_S = 900
MIGRATE = """
import asyncio, sys
from wayline.chassis import Bus, BusSettings
from wayline.chassis.declare import declare
from wayline.chassis.stream_limits import Limits
from wayline.standalone.services import MEMBERS
from wayline.store import migrate

async def main(dsn, password, nats_url, seed):
    for one in MEMBERS:
        if one.schema:
            await migrate(dsn, schema=one.schema, role=one.role, password=password, directory=one.migrations(),
                vector=one.vector)
    bus = await Bus.connect(BusSettings(nats_url=nats_url, nats_seed=seed), service="test", exit_when_closed=False)
    print([change async for change in declare(bus.js, Limits(ack_wait_s=1.0))])
    await bus.close()

asyncio.run(main(*sys.argv[1:]))
"""
"""What `wayline migrate` of that release does, for a database and a bus of a test."""


def last_release() -> Path:
    """Return the Python of the last release, made where it is not there; skip the test where it cannot be."""
    named = os.environ.get(DIRECTORY)
    release = releases()[-1]
    directory = Path(named) if named else ROOT / ".wayline" / "releases" / release.version
    python = directory / ".venv" / "bin" / "python"
    if named and not python.exists():
        pytest.fail(f"{DIRECTORY}: {python} does not exist")
    if not (directory / ".venv" / ".ready").exists() and not named:
        make(release, directory)
    return python


def make(release: Release, directory: Path) -> None:
    """Take a release out of the history, and make its environment. Skips where the history does not go back so far."""
    commit = (release.directory / "commit.txt").read_text().strip()
    known = subprocess.run(
        ["git", "cat-file", "-e", f"{commit}^{{commit}}"], cwd=ROOT, capture_output=True, check=False
    )
    if known.returncode:
        pytest.skip(
            f"{commit}, which is {release.version}, is not in this clone: `git fetch --unshallow`, or name a checkout "
            f"of it in {DIRECTORY}"
        )
    directory.mkdir(parents=True, exist_ok=True)
    packed = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(directory)], input=packed, check=True)
    subprocess.run(["make", "setup"], cwd=directory, check=True, timeout=SETUP_WITHIN_S)
