"""`wayline replicas`: which processes of which service run, and of which version."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from rich.console import Console

from wayline.standalone.errors import StandaloneError
from wayline.standalone.settings import Settings
from wayline.standalone.setup.installation import Installation
from wayline.standalone.setup.migrate import find_servers
from wayline.standalone.terminal.table import table
from wayline.standalone.upgrade.replicas import find_replicas


async def show_replicas(settings: Settings, *, as_json: bool = False) -> None:
    """Print the services that are connected to the bus. Raises NoServers and StandaloneError."""
    installation = Installation(settings.data_dir.absolute())
    found = await find_replicas(find_servers(settings, installation), settings, installation)
    if found.unseen and not found.replicas:
        raise StandaloneError(f"{found.unseen}: {found.todo}")
    if found.unseen:
        print(f"{found.unseen}: {found.todo}", file=sys.stderr)
    if as_json:
        print(json.dumps({"replicas": [asdict(one) for one in found.replicas]}, indent=2))
        return
    rows = ((one.service, one.version, one.where, one.since.replace("T", " ")) for one in found.replicas)
    Console().print(table(("service", "version", "from", "connected since"), rows, nothing="no service is connected"))
