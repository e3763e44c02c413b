"""What `wayline capacity` shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from rich.markup import escape

from wayline.standalone.terminal.table import table

if TYPE_CHECKING:
    from rich.console import RenderableType

FILLING, NEARLY_FULL = 0.6, 0.75
"""As the alerts WaylineStreamFilling and WaylineStreamNearlyFull."""
UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


def streams_table(streams: Sequence[Mapping[str, Any]], now: datetime, *, tenants_shown: int) -> RenderableType:
    """Draw what each stream holds, the fullest first."""
    rows = [
        (
            held["name"],
            size(held["bytes"]),
            "no limit" if held["max_bytes"] is None else size(held["max_bytes"]),
            _share(held["full"]),
            "" if held["bytes_daily"] is None else size(held["bytes_daily"]),
            "" if held["full_at"] is None else _age(datetime.fromisoformat(held["full_at"]) - now),
            "" if held["oldest"] is None else _age(now - datetime.fromisoformat(held["oldest"])),
            escape(_tenants(held["tenants"], tenants_shown)),
        )
        for held in sorted(streams, key=lambda one: -one["full"])
    ]
    columns = ("stream", "holds", "of", "full", "grows a day", "full in", "oldest", "messages by tenant")
    return table(columns, rows, nothing="no streams")


def schemas_table(schemas: Mapping[str, int]) -> RenderableType:
    """Draw how much each schema of the database takes."""
    rows = [(escape(name), size(held)) for name, held in schemas.items()]
    return table(("schema", "holds"), rows, nothing="no tables", total=("all", size(sum(schemas.values()))))


def size(held: float) -> str:
    """Format a number of bytes."""
    power = 0 if held < 1 else min(int(math.log(held, 1024)), len(UNITS) - 1)
    scaled = held / 1024**power
    return f"{scaled:.0f} {UNITS[power]}" if power == 0 or scaled >= 100 else f"{scaled:.1f} {UNITS[power]}"


def _share(full: float) -> str:
    text = f"{full:.0%}"
    if full >= NEARLY_FULL:
        return f"[red]{text}[/red]"
    return f"[yellow]{text}[/yellow]" if full >= FILLING else text


def _age(age: timedelta) -> str:
    hours = age / timedelta(hours=1)
    if hours < 1:
        return f"{hours * 60:.0f} min"
    return f"{hours:.0f} h" if hours < 48 else f"{hours / 24:.0f} d"


def _tenants(tenants: Mapping[str, int], shown: int) -> str:
    named = [f"{name} {messages:,}" for name, messages in list(tenants.items())[:shown] if name]
    more = len(tenants) - len(named)
    return ", ".join([*named, *([f"{more} more"] if more > 0 and named else [])])
