"""Rates of tenants and keys, drawn for a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType
from rich.text import Text

from wayline.standalone.terminal.table import table

UNLIMITED = "as many as they come"
WHOSE = {"tenant": "all its keys together", "key": "each key", "user": "each user"}


def limits_table(shown: dict[str, Any]) -> RenderableType:
    """Draw the rates that hold for a tenant, and which of them were set for it."""
    own = shown["limits"] or {}
    return table(
        ("whose", "requests", "jobs"),
        (
            (
                words,
                *(
                    _rate(shown[f"{whose}_rates"][meter])
                    + ("" if (own.get(whose) or {}).get(meter) else " (the installation's)")
                    for meter in ("requests", "jobs")
                ),
            )
            for whose, words in WHOSE.items()
        ),
        nothing="no limits",
    )


def key_limits_text(key: dict[str, Any]) -> RenderableType:
    """Draw the limits of a key."""
    limits = key["limits"] or {}
    told = (
        f"{meter}: {_rate(limits[meter]) if limits.get(meter) else 'as each key of its tenant'}"
        for meter in ("requests", "jobs")
    )
    return Text(f"key {key['id']} ({key['name']}): {', '.join(told)}")


def _rate(rate: dict[str, Any] | None) -> str:
    if rate is None or rate["per_minute"] is None:
        return UNLIMITED
    burst = f", {rate['burst']} at once" if rate.get("burst") else ""
    return f"{rate['per_minute']} a minute{burst}"
