"""Publishes a notice of each definition that waits for approval, once it does."""

from __future__ import annotations

from wayline.chassis import Bus
from wayline.contracts.notices import ToolChanged
from wayline.store import Store

NOTICES_AT_ONCE = 200


class ChangeNotices:
    """Looks which waiting definitions nobody was told of, and tells; any replica may, and the same notice is one."""

    def __init__(self, bus: Bus, store: Store) -> None:
        self._bus = bus
        self._store = store

    async def tell(self) -> None:
        """Publish the notices that are due."""
        async with self._store.system() as conn:
            rows = await conn.fetch(self._store.sql.untold_definitions, NOTICES_AT_ONCE)
        for row in rows:
            tenant, server, tool, sha256 = row["tenant"], row["server"], row["tool"], row["waiting_sha256"]
            notice = ToolChanged(
                tenant=tenant, server=server, tool=tool, definition_sha256=sha256, at=row["waiting_since"]
            )
            await self._bus.publish(notice, msg_id=notice.msg_id)
            # Only after the notice is stored: after a crash in between the same notice is published again.
            await self._store.execute(tenant, self._store.sql.note_told, tenant, server, tool, sha256)
