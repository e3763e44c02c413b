"""Values as indented JSON, no longer than a page bears."""

from __future__ import annotations

import json
from typing import Any

from wayline.console.render.formats import visible

SHOWN_MAX_CHARS = 50_000


def pretty(value: Any, most: int = SHOWN_MAX_CHARS) -> str:
    """Write a value as indented JSON; of more than fits the beginning, with how much there is."""
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    if len(text) <= most:
        return visible(text)
    return f"{visible(text[:most])}\n… {len(text) - most:,} more characters: see the raw log"
