"""`wayline replicas`: which processes of which service run, and of which version."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.markup import escape

from wayline.client import Address, ApiError, Client
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
    states = await _states()
    if as_json:
        print(json.dumps({"replicas": [asdict(one) for one in found.replicas], "states": states}, indent=2))
        return
    rows = ((one.service, one.version, one.where, one.since.replace("T", " ")) for one in found.replicas)
    Console().print(table(("service", "version", "from", "connected since"), rows, nothing="no service is connected"))
    if states:
        Console().print(table(("name", "service", "state", "in hand"), map(_row, states), nothing=""))


async def _states() -> list[dict[str, Any]]:
    """Return what each replica says of itself; none where the gateway cannot be asked."""
    try:
        async with Client(Address.from_environment()) as client:
            return (await client.get("/v1/replicas"))["replicas"]
    except ApiError as error:
        print(f"wayline: whether they are ready is not known: {error}", file=sys.stderr)
        return []


def _row(one: dict[str, Any]) -> tuple[str, str, str, str]:
    wrong = "; ".join(f"{need}: {state}" for need, state in one["needs"].items() if state != "ok")
    state = f"drained since {one['drained_at'][:19].replace('T', ' ')}" if one["drained_at"] else wrong or "ready"
    return escape(one["name"]), one["service"], escape(state), str(one["in_hand"])
