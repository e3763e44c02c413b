"""The quota of large uploads: retrieval counts what each tenant has in the object store of uploads."""

from __future__ import annotations

from wayline.chassis.connection.bus import Bus
from wayline.contracts.errors import Bug, Retry, TenantFull, Unavailable
from wayline.contracts.knowledge import ReserveUpload, UploadReserved

UNCOUNTED_MAX_BYTES = 256 * 1024 * 1024
"""What this process stores for one tenant while retrieval does not answer."""


class UploadQuota:
    """Refuses an upload that exceeds its tenant's share of the object store."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._uncounted: dict[str, int] = {}

    async def require(self, name: str, size: int) -> None:
        """Return if the tenant may store this object. Raises TenantFull or Unavailable."""
        tenant = name.partition("/")[0]
        try:
            request = ReserveUpload(tenant=tenant, name=name, size_bytes=size)
            answer = await self._bus.ask(request, UploadReserved)
        except (Retry, Bug):
            # A Bug is a bus whose permissions are older than this build.
            self._let_through(tenant, size)
            return
        self._uncounted.pop(tenant, None)
        if answer.full is not None:
            raise TenantFull(answer.full)

    def _let_through(self, tenant: str, size: int) -> None:
        """Count what retrieval will count only when it reads the document. Raises Unavailable where it is too much."""
        uncounted = self._uncounted.get(tenant, 0) + size
        if uncounted > UNCOUNTED_MAX_BYTES:
            raise Unavailable("retrieval", detail=f"the uploads of tenant {tenant!r} cannot be counted", after_s=5.0)
        self._uncounted[tenant] = uncounted
