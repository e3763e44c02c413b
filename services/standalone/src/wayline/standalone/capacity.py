"""`wayline capacity`: what the streams and the database hold, how fast that grows, when it is full, and whose it is."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from wayline.chassis.topology import BUCKETS, STREAMS
from wayline.standalone.errors import NoStream
from wayline.standalone.setup.installation import Installation
from wayline.standalone.setup.migrate import find_servers
from wayline.standalone.setup.migrations import connected_admin, sql
from wayline.store.connecting import connect_or_explain

if TYPE_CHECKING:
    from wayline.chassis import Bus
    from wayline.standalone.settings import Settings

TENANT_AT: Final = {"SUBMIT": 2, "RUN": 3, "INDEX": 2, "EVENTS": 1, "SIGNALS": 1, "DEAD": 3, "NOTICES": 2}
"""Which word of a stream's subjects is the tenant, counted from 0."""
QUEUES: Final = frozenset({"SUBMIT", "RUN", "INDEX"})
"""They hold what waits: it comes and goes, so its growth says nothing."""
TENANTS_SHOWN: Final = 3
WITHIN_S: Final = 30.0
NEVER_DAYS: Final = 3_650
"""What takes longer than ten years to fill is never full."""


@dataclass(frozen=True)
class StreamUse:
    """What one stream or bucket holds."""

    name: str
    bytes: int
    max_bytes: int | None
    messages: int
    max_messages: int | None
    oldest: datetime | None
    max_age_s: float | None
    tenants: dict[str, int] = field(default_factory=dict[str, int])
    """How many messages each tenant has there, the most first."""

    @property
    def full(self) -> float:
        """Return how full it is, 0 to 1, by the limit that is nearest."""
        shares = [
            held / most for held, most in ((self.bytes, self.max_bytes), (self.messages, self.max_messages)) if most
        ]
        return max(shares, default=0.0)

    def grows_daily(self, now: datetime) -> float | None:
        """Return its growth in bytes a day since its oldest message came; None: it holds what waits, or nothing."""
        if self.oldest is None or self.name in QUEUES or now - self.oldest < timedelta(minutes=1):
            return None
        return self.bytes / ((now - self.oldest) / timedelta(days=1))

    def full_in(self, now: datetime) -> timedelta | None:
        """Return when it is full if it grows on like this; None: never, or nobody knows.

        What is older than its age goes, so a stream that holds less at that age is never full.
        """
        daily = self.grows_daily(now)
        if not daily or not self.max_bytes:
            return None
        if self.max_age_s and daily * self.max_age_s / 86_400 <= self.max_bytes:
            return None
        days = max(0.0, (self.max_bytes - self.bytes) / daily)
        return None if days > NEVER_DAYS else timedelta(days=days)


async def capacity(settings: Settings, *, as_json: bool = False) -> None:
    """Print what streams and schemas hold. Raises NoServers or NoStream."""
    access = find_servers(settings, Installation(settings.data_dir.absolute()))
    async with connected_admin(access, wait_s=WITHIN_S) as bus:
        names = [*(stream.name or "" for stream in STREAMS), *(bucket.stream for bucket in BUCKETS)]
        streams = [await _held(bus, name) for name in names]
    schemas = await _schemas(access.admin_dsn)
    now = datetime.now(UTC)
    shown = [_as_json(one, now) for one in streams]
    if as_json:
        print(json.dumps({"streams": shown, "schemas": schemas}, indent=2))
        return
    from rich.console import Console

    from wayline.standalone.terminal.capacity_views import schemas_table, streams_table

    screen = Console(highlight=False)
    screen.print(streams_table(shown, now, tenants_shown=TENANTS_SHOWN))
    screen.print(schemas_table(schemas))


async def _held(bus: Bus, name: str) -> StreamUse:
    at = TENANT_AT.get(name)
    info = await _info(bus, name, subjects_from=None if at is None else 0)
    state, config = info["state"], info["config"]
    tenants: Counter[str] = Counter()
    read = 0
    page = info
    # The server answers with so many subjects at a time; each job of a log has one.
    while found := page["state"].get("subjects"):
        for subject, messages in found.items():
            tenants[tenant_of(name, subject)] += messages
        read += len(found)
        if read >= page.get("total", read):
            break
        page = await _info(bus, name, subjects_from=read)
    return StreamUse(
        name=name,
        bytes=state["bytes"],
        max_bytes=_limit(config["max_bytes"]),
        messages=state["messages"],
        max_messages=_limit(config["max_msgs"]),
        oldest=datetime.fromisoformat(state["first_ts"]) if state["messages"] else None,
        max_age_s=_limit(config["max_age"] / 1e9),
        tenants=dict(tenants.most_common()),
    )


def tenant_of(stream: str, subject: str) -> str:
    """Return whose a message is; empty: an older version wrote it, which did not say."""
    words, at = subject.split("."), TENANT_AT[stream]
    return words[at] if at < len(words) else ""


async def _info(bus: Bus, name: str, *, subjects_from: int | None) -> dict[str, Any]:
    """Return what the server says of a stream. Raises NoStream."""
    asked = {} if subjects_from is None else {"subjects_filter": ">", "offset": subjects_from}
    reply = await bus.nc.request(f"$JS.API.STREAM.INFO.{name}", json.dumps(asked).encode(), timeout=WITHIN_S)
    info = json.loads(reply.data)
    if "error" in info:
        raise NoStream(name=name, cause=info["error"]["description"])
    return info


async def _schemas(dsn: str) -> dict[str, int]:
    conn = await connect_or_explain(dsn)
    try:
        return {row["name"]: row["bytes"] for row in await conn.fetch(sql.schema_sizes)}
    finally:
        await conn.close()


def _limit(value: float) -> Any:
    return value if value > 0 else None


def _as_json(held: StreamUse, now: datetime) -> dict[str, Any]:
    left = held.full_in(now)
    return {
        **asdict(held),
        "oldest": held.oldest and held.oldest.isoformat(),
        "full": round(held.full, 4),
        "bytes_daily": held.grows_daily(now),
        "full_at": None if left is None else (now + left).isoformat(),
    }
