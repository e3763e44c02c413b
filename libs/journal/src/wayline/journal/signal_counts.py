"""How many signals the bus holds of one tenant: the stream is shared, and none may fill it for the others."""

from __future__ import annotations

from wayline.chassis import Bus
from wayline.chassis.connection.bus import AWAY
from wayline.contracts.errors import Unavailable

SIGNALS = "SIGNALS"
ALL_OF_TENANT = "*.{tenant}.*"
"""The subjects of a tenant's signals and of its decisions on approvals, in that stream."""


async def signals_held(bus: Bus, tenant: str) -> dict[str, int]:
    """Count the signals held for each job of a tenant, by subject. Raises Unavailable."""
    try:
        info = await bus.js.stream_info(SIGNALS, subjects_filter=ALL_OF_TENANT.format(tenant=tenant))
    except AWAY as error:
        raise Unavailable("the bus", detail=f"{SIGNALS}: {type(error).__name__}") from None
    return info.state.subjects or {}
