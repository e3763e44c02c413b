"""What is installed, drawn for a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType
from rich.markup import escape

from wayline.standalone.terminal.table import details


def version_details(found: dict[str, Any]) -> RenderableType:
    """Draw a version with its formats, migrations and libraries."""
    return details(
        (
            ("wayline", escape(found["version"])),
            ("commit", found["commit"] or "not known"),
            *((f"format {name}", escape(str(of))) for name, of in found["formats"].items()),
            *((f"schema {name}", escape(file)) for name, file in found["migrations"].items()),
            ("Postgres", f"{found['postgres_min']} or newer"),
            ("Python", found["python"]),
            *((name, of) for name, of in found["libraries"].items()),
        )
    )
