"""Where everything is, and how to send a next job: the last thing `up` says before it goes quiet."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from urllib.parse import urlsplit

from wayline.standalone.setup.installation import Installation, Place


def where(installation: Installation, place: Place, *, gateway: str | None) -> str:
    """The addresses, as a table of two columns."""
    rows = [
        *([("gateway", gateway), ("API docs", f"{gateway}/docs")] if gateway else []),
        ("NATS", place.nats_address),
        ("Postgres", psql(installation, place)),
        ("data", str(installation.root)),
        ("logs", str(installation.logs / "wayline.log")),
        *([] if gateway else [("processes", f"{installation.credentials}/<service>.env has what each needs")]),
    ]
    return "\n" + "\n".join(f"  [bold]{name:<10}[/bold] {value}" for name, value in rows) + "\n"


def psql(installation: Installation, place: Place) -> str:
    """A command for psql; the password stays in a file."""
    parts = urlsplit(place.admin_dsn)
    return (
        f"PGPASSFILE={installation.credentials / 'pgpass'} "
        f"psql -h {parts.hostname} -p {parts.port or 5432} -U {parts.username} {parts.path.lstrip('/')}"
    )


def next_job(gateway: str, nats_url: str) -> str:
    """Three doors for the next job: the command line, HTTP, the bus."""
    return f"""Send a job:

  {program("wayline")} run "What is a job in Wayline?"

  curl -s '{gateway}/v1/jobs?wait=30' -H 'Content-Type: application/json' \\
       -d '{{"agent": "assistant", "input": "What is a job in Wayline?"}}'

  {program("python")} - <<'END'
import asyncio, nats
async def send():
    bus = await nats.connect("{nats_url}")
    await bus.publish("jobs.submit.default", b'{{"agent": "assistant", "input": "What is a job in Wayline?"}}')
    await bus.drain()
asyncio.run(send())
END
"""


def program(name: str) -> str:
    """A program of our environment as the shell here finds it: its name where that is on the path."""
    ours = Path(sys.executable).with_name(name)
    found = shutil.which(name)
    if found is not None and Path(found) == ours:
        return name
    return str(ours.relative_to(Path.cwd())) if ours.is_relative_to(Path.cwd()) else str(ours)
