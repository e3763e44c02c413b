"""What deleted documents left: objects on the bus and tombstones, taken away as soon as no message can mean them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import structlog
from nats import errors as nats_errors
from nats.js import errors as js_errors

from wayline.chassis import Periodic
from wayline.chassis.concurrency.each_alone import each_alone
from wayline.contracts.errors import Retry
from wayline.retrieval.documents.queue import Queue
from wayline.retrieval.documents.uploads import UploadTable
from wayline.store import Store

log = structlog.get_logger()

SWEEP_EVERY_S = 60.0
TENANTS_MAX = 1_000
"""Of which tombstones are looked at in one sweep; the others come with the next."""


class DeletedDocuments:
    """Tombstones of every tenant, looked at with each deletion and every minute."""

    def __init__(
        self,
        store: Store,
        uploads: UploadTable,
        *,
        queue: Callable[[str], Awaitable[Queue]],
        drop: Callable[[Sequence[str]], Awaitable[None]],
    ) -> None:
        self._store = store
        self._uploads = uploads
        self._queue = queue
        self._drop = drop
        self._periodic = Periodic("sweep of deleted documents", self.sweep, every_s=SWEEP_EVERY_S)
        self.start, self.stop = self._periodic.start, self._periodic.stop

    async def sweep(self) -> None:
        """Clear the tombstones of every tenant that has some."""
        async with self._store.system() as conn:
            rows = await conn.fetch(self._store.sql.tenants_with_tombstones, TENANTS_MAX)
        await each_alone("deleted documents", [row["tenant"] for row in rows], self._clear)

    async def clear(self, tenant: str) -> None:
        """Clear a tenant's tombstones; what is in the way now is left to the sweep."""
        try:
            await self._clear(tenant)
        except (nats_errors.Error, js_errors.Error, TimeoutError, Retry) as error:
            log.warning("uploads of deleted documents are left to the next sweep", tenant=tenant, error=repr(error))

    async def _clear(self, tenant: str) -> None:
        queue = await self._queue(tenant)
        tombstones = await self._store.fetch(tenant, self._store.sql.tombstones, tenant)
        clear = [row for row in tombstones if not queue.holds(row["document_id"], until=row["deleted_sequence"])]
        if not clear:
            return
        # The objects first: a process that ends in between leaves the tombstones, which name them.
        names = [name for row in clear for name in row["payloads"]]
        if names:
            await self._drop(names)
            await self._uploads.forget(tenant, names)
        await self._store.execute(
            tenant,
            self._store.sql.clear_tombstones,
            tenant,
            [row["document_id"] for row in clear],
            [row["deleted_sequence"] for row in clear],
        )
