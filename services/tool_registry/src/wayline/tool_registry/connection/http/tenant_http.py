"""The HTTP transport of tenants' servers: the public internet, and of the inside what the operator opens.

A module of its own, because httpx2 takes a while to import.
"""

from __future__ import annotations

import httpx2

from wayline.guarded_http import AddressPolicy, Blocked, InvalidUrl, looked_up_for
from wayline.guarded_http.outbound import Outbound

ALLOW = "WAYLINE_TOOL_REGISTRY_SERVER_ALLOWED_HOSTS names hosts of the inside that tenants' servers may be at"


class TenantTransport(httpx2.AsyncBaseTransport):
    """A guarded transport whose refusals are connections that could not be made: nothing was sent."""

    def __init__(self, tenant: str, policy: AddressPolicy, outbound: Outbound, *, connections_max: int) -> None:
        self._tenant = tenant
        self._guarded = outbound.transport(policy, connections_max=connections_max)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. Raises ConnectError where the address is refused."""
        try:
            with looked_up_for(self._tenant):
                return await self._guarded.handle_async_request(request)
        except Blocked as error:
            raise httpx2.ConnectError(f"{error}; {ALLOW}", request=request) from None
        except InvalidUrl as error:
            raise httpx2.ConnectError(str(error), request=request) from None

    async def aclose(self) -> None:
        await self._guarded.aclose()
