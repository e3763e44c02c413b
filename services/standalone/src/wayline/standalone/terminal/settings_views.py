"""A tenant's settings, as the terminal shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import RenderableType
from rich.markup import escape

from wayline.standalone.terminal.table import table

_BESIDE = frozenset({"defaults", "updated_at"})


def settings_table(settings: Mapping[str, Any]) -> RenderableType:
    """Draw every setting with its value, and whether it is the default."""
    rows = (
        (name, escape(_shown(value)), "default" if name in settings["defaults"] else "")
        for name, value in settings.items()
        if name not in _BESIDE
    )
    return table(("SETTING", "VALUE", ""), rows, nothing="no settings")


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return ",".join(value) if isinstance(value, list) else str(value)
