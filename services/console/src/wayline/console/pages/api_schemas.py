"""What the API says of the bodies that it takes: forms are made of it, so that a new field appears by itself."""

from __future__ import annotations

import time
from collections.abc import Callable

from wayline.client.client import Client
from wayline.console.render.schema_form import ApiSchemas

KEPT_S = 300.0
"""The description is long, and changes with an upgrade of the gateway only."""


class SchemaReader:
    """Reads the API's description, and keeps it for some minutes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: tuple[float, ApiSchemas] | None = None

    async def read(self, client: Client) -> ApiSchemas:
        """Return the API's schemas."""
        now_s = self._clock()
        if self._kept is None or now_s - self._kept[0] > KEPT_S:
            described = await client.get("/openapi.json")
            self._kept = (now_s, ApiSchemas(described["components"]["schemas"]))
        return self._kept[1]
