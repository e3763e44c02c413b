"""Receipts of what was forgotten, drawn for a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape

from wayline.standalone.terminal.table import details, table


def receipt(told: dict[str, Any]) -> RenderableType:
    """Draw a request to forget: how far it is, a row for each store and kind, and what is left."""
    about = (
        ("request", escape(told["forget_id"])),
        ("step", told["step"]),
        ("waits for", escape(told["waits_for"] or "")),
        ("jobs", f"{told.get('jobs_erased', 0):,} of {told['jobs']:,} erased"),
        ("left", _left(told["left"])),
    )
    rows = [
        (escape(one["store"]), escape(what), str(count), fate)
        for one in told["receipt"]
        for fate, counts in (("erased", one["counts"]), ("kept", one["kept"]))
        for what, count in sorted(counts.items())
    ]
    remains = table(("may remain elsewhere",), ((escape(one),) for one in told["may_remain"]), nothing="")
    return Group(details(about), table(("store", "what", "how many", ""), rows, nothing="nothing was found"), remains)


def _left(left: dict[str, int] | None) -> str:
    if left is None:
        return ""
    return ", ".join(f"{count} {escape(what)}" for what, count in sorted(left.items())) or "0"
