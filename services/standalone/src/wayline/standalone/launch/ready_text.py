"""The last text that `up` prints: the addresses, and how to send a job."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from shlex import quote
from urllib.parse import urlsplit

from wayline.standalone.setup.installation import Installation, ServerAccess


def addresses(
    installation: Installation, access: ServerAccess, *, gateway: str | None, console: str | None = None
) -> str:
    """Return the addresses as a table of two columns."""
    rows = [
        *([("gateway", gateway), ("API docs", f"{gateway}/docs")] if gateway else []),
        *([("console", console)] if console else []),
        ("NATS", access.nats_address),
        ("Postgres", psql_command(installation, access)),
        ("data", str(installation.root)),
        ("logs", str(installation.logs / "wayline.log")),
        *([] if gateway else [("processes", f"{installation.credentials}/<service>.env has the variables of each")]),
    ]
    return "\n" + "\n".join(f"  [bold]{name:<10}[/bold] {value}" for name, value in rows) + "\n"


def psql_command(installation: Installation, access: ServerAccess) -> str:
    """Return a psql command that reads the password from a file."""
    parts = urlsplit(access.admin_dsn)
    hosts, ports = zip(*access.postgres_hosts, strict=True)
    return (
        f"PGPASSFILE={installation.credentials / 'pgpass'} "
        f"psql -h {','.join(hosts)} -p {','.join(map(str, ports))} -U {parts.username} {parts.path.lstrip('/')}"
    )


def next_job(gateway: str, nats_url: str, data_dir: Path) -> str:
    """Return how to send a job by the command line, by HTTP and on the bus, from any directory."""
    return f"""Send a job:

  WAYLINE_DATA_DIR={quote(str(data_dir.absolute()))} {program_path("wayline")} run "What is a job in Wayline?"

  curl -s '{gateway}/v1/jobs?wait=30' -H 'Content-Type: application/json' \\
       -d '{{"agent": "assistant", "input": "What is a job in Wayline?"}}'

  {program_path("python")} - <<'END'
import asyncio, nats
async def send():
    bus = await nats.connect("{nats_url}")
    await bus.publish("jobs.submit.default", b'{{"agent": "assistant", "input": "What is a job in Wayline?"}}')
    await bus.drain()
asyncio.run(send())
END
"""


def program_path(name: str) -> str:
    """Return how to call a program of this environment from anywhere: its name if it is on the path, else its file."""
    ours = Path(sys.executable).with_name(name)
    found = shutil.which(name)
    if found is not None and Path(found) == ours:
        return name
    return quote(str(ours))
