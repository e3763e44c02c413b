"""The HTTP transport of tenants' servers: the public internet and nothing of the inside.

A module of its own, because httpx2 takes a while to import.
"""

from __future__ import annotations

import httpx2

from wayline.guarded_http import AddressPolicy, Blocked, InvalidUrl
from wayline.guarded_http.transport import GuardedTransport

ALLOW = "WAYLINE_TOOL_REGISTRY_PRIVATE_SERVERS=true lets tenants' servers be anywhere"


class TenantTransport(GuardedTransport):
    """A guarded transport whose refusals are connections that could not be made: nothing was sent."""

    def __init__(self, *, connections_max: int) -> None:
        super().__init__(AddressPolicy(), connections_max=connections_max)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. Raises ConnectError where the address is refused."""
        try:
            return await super().handle_async_request(request)
        except Blocked as error:
            raise httpx2.ConnectError(f"{error}; {ALLOW}", request=request) from None
        except InvalidUrl as error:
            raise httpx2.ConnectError(str(error), request=request) from None
