"""`wayline replicas`: which processes of which service run, and of which version."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.markup import escape

from wayline.client import Address, ApiError, Client
from wayline.contracts.errors import Unavailable
from wayline.standalone.errors import NoServers, StandaloneError
from wayline.standalone.settings import Settings
from wayline.standalone.setup.installation import Installation
from wayline.standalone.setup.migrate import find_servers
from wayline.standalone.terminal.table import table
from wayline.standalone.upgrade.replicas import Replicas, find_replicas


async def show_replicas(settings: Settings, *, as_json: bool = False) -> None:
    """Print the services that are connected to the bus, and what each says of itself. Raises StandaloneError."""
    found, states = await _connected(settings), await _states()
    unseen = ": ".join(filter(None, (found.unseen, found.todo)))
    if unseen and not (found.replicas or states):
        raise StandaloneError(unseen)
    if unseen:
        print(f"wayline: {unseen}", file=sys.stderr)
    if as_json:
        print(json.dumps({"replicas": [asdict(one) for one in found.replicas], "states": states}, indent=2))
        return
    if not sys.stdout.isatty():
        # Into a pipe one table: two of other columns in one stream are parsed by nobody.
        lines = table(("name", "service", "version", "state", "in hand"), _lines(found, states), nothing="")
        Console().print(lines, soft_wrap=True)
        return
    if found.replicas or not states:
        rows = ((one.service, one.version, one.where, one.since.replace("T", " ")) for one in found.replicas)
        connected = table(("service", "version", "from", "connected since"), rows, nothing="no service is connected")
        Console().print(connected, soft_wrap=True)
    if states:
        Console().print(table(("name", "service", "state", "in hand"), map(_row, states), nothing=""), soft_wrap=True)


async def _connected(settings: Settings) -> Replicas:
    """Return the services that are connected; none, with the reason, where the bus cannot be asked from here."""
    installation = Installation(settings.data_dir.absolute())
    try:
        return await find_replicas(find_servers(settings, installation), settings, installation)
    except NoServers:
        return Replicas([], f"no bus is known from {installation.root}", "only what the gateway says is shown")
    except Unavailable as error:
        return Replicas([], str(error))


async def _states() -> list[dict[str, Any]]:
    """Return what each replica says of itself; none where the gateway cannot be asked."""
    try:
        async with Client(Address.from_environment()) as client:
            return (await client.get("/v1/replicas"))["replicas"]
    except ApiError as error:
        print(f"wayline: whether they are ready is not known: {error}", file=sys.stderr)
        return []


def _lines(found: Replicas, states: list[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Yield a line for each process: those that tell of themselves, then connected ones that do not."""
    for one in states:
        name, service, state, in_hand = _row(one)
        yield name, service, one["version"], state, in_hand
    told = Counter((one["service"], one["version"]) for one in states)
    silent = Counter((one.service, one.version) for one in found.replicas) - told
    for service, version in silent.elements():
        yield "-", service, version, "not known", "-"


def _row(one: dict[str, Any]) -> tuple[str, str, str, str]:
    wrong = "; ".join(f"{need}: {state}" for need, state in one["needs"].items() if state != "ok")
    state = f"drained since {one['drained_at'][:19].replace('T', ' ')}" if one["drained_at"] else wrong or "ready"
    return escape(one["name"]), one["service"], escape(state), str(one["in_hand"])
