"""What a called tool returned, on a terminal."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text


def called_tool(result: dict[str, Any], *, key: str) -> RenderableType:
    """Draw the result of a call, or why there is none."""
    if result["status"] == "in_progress":
        return Text(f"{result['tool']} runs on: ask again with --key {key}", style="yellow")
    if result["error"]:
        return Text(f"{result['status']}: {result['error']['message']}", style="red")
    structured = result["structured"]
    shown = result["text"] or ("" if structured is None else json.dumps(structured, indent=1, ensure_ascii=False))
    beside = [f"{len(result['images'])} images: --json has them"] if result["images"] else []
    beside += [f"it cost ${result['cost_usd']}"] if result["cost_usd"] is not None else []
    beside += ["the stored result of an earlier call under this key"] if result["repeated"] else []
    return Group(Text(shown), *(Text(line, style="dim") for line in beside))
