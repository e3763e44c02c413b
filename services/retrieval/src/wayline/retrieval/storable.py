"""Text and metadata as Postgres takes them."""

from __future__ import annotations

import math
import re
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")


def storable(text: str) -> str:
    """Return the text without what no Postgres column takes: NUL bytes, and halves of surrogate pairs."""
    text = text.replace("\x00", "").replace("\r\n", "\n")
    try:
        # Encoding finds a half of a pair in a tenth of the time that the pattern takes, and few texts have one.
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


def storable_json(value: Any) -> Any:
    """Return metadata without what no column takes; its numbers must be finite too."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {storable(str(key)): storable_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable_json(item) for item in value]
    return value
