"""Pauses and limits of running jobs, drawn for a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType
from rich.markup import escape

from wayline.standalone.terminal.table import table


def pauses_table(found: dict[str, Any]) -> RenderableType:
    """Draw what is paused."""
    return table(
        ("what", "name", "since", "by", "running jobs", "reason"),
        (
            (
                *(one["kind"], escape(one["name"]), one["since"][:19].replace("T", " "), escape(one["by"])),
                *("stop at their next step" if one["now"] else "go on to their end", escape(one["reason"])),
            )
            for one in found["pauses"]
        ),
        nothing="nothing is paused",
    )


def running_limits_table(found: dict[str, Any]) -> RenderableType:
    """Draw how many jobs run at once."""
    return table(
        ("whose", "name", "at most", "running", "waiting", "when full"),
        (
            (
                *(one["whose"], "each" if one["name"] == "*" else escape(one["name"]), str(one["max_running"])),
                *("" if one[what] is None else str(one[what]) for what in ("running", "waiting")),
                one["when_full"],
            )
            for one in found["limits"]
        ),
        nothing="no limits: as many jobs run as there are slots",
    )
