"""The broker of a service that stays connected to Wayline's bus."""

from __future__ import annotations

import logging
import os
from typing import Any

from faststream.nats import NatsBroker
from faststream.nats.security import NatsNKey

from wayline.contracts import ids

log = logging.getLogger("wayline.sdk")

URL = "nats://127.0.0.1:4222"


def bus_broker(url: str | None = None, *, seed: str | None = None, **options: Any) -> NatsBroker:
    """Make a broker that reconnects for ever.

    Without arguments it takes `WAYLINE_NATS_URL` and `WAYLINE_NATS_SEED`, the seed that `wayline credentials create`
    printed; a bus on the loopback needs none.
    """
    seed = seed or os.environ.get("WAYLINE_NATS_SEED")
    security = {"security": NatsNKey.from_seed(seed)} if seed else {}
    defaults: dict[str, Any] = {
        # With the defaults of FastStream a process would hang once its attempts are used up.
        "max_reconnect_attempts": -1,
        "reconnect_time_wait": 1,
        "ping_interval": 10,
        "error_cb": _on_error,
        **security,
    }
    servers = (url or os.environ.get("WAYLINE_NATS_URL") or URL).split(",")
    return NatsBroker(servers, **{**defaults, **options})


def chosen_tenant(tenant: str | None) -> str:
    """Return a tenant, else that of `WAYLINE_TENANT`, else `default`. Raises ValueError where it cannot be one."""
    chosen = tenant or os.environ.get("WAYLINE_TENANT") or "default"
    if not ids.is_tenant(chosen):
        raise ValueError(
            f"a tenant cannot be called {chosen!r}: pass the name that `wayline tenants list` shows, or set "
            "WAYLINE_TENANT; it has small letters, digits and hyphens"
        )
    return chosen


async def _on_error(error: Exception) -> None:
    text = str(error) or type(error).__name__
    if "permissions violation" in text.lower():
        text += "; has the credential the scope that this needs? See `wayline credentials list`"
    log.warning("bus: %s", text)
