"""Request bodies as bytes."""

from __future__ import annotations

from typing import Any

import orjson


def encoded(body: dict[str, Any]) -> bytes:
    """Encode a body as JSON in no more memory than it needs.

    What orjson returns holds on to its whole buffer, and a body is kept for as long as the model takes to answer.
    """
    return bytes(memoryview(orjson.dumps(body)))
