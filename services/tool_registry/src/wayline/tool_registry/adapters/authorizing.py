"""How requests to tenants' servers with OAuth are authenticated, and how their authorization servers are asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wayline.contracts.mcp_servers import ServerConfig
from wayline.tool_registry.adapters.authorization_table import AuthorizationTable
from wayline.tool_registry.adapters.transport import Authorize, Confinement, Learn, http_client
from wayline.tool_registry.settings import Settings

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Auth

ANSWER_S = 15.0
"""How long an authorization server may take for one answer."""
CONNECTIONS = 4


@dataclass(frozen=True)
class Authorizing:
    """Makes what authenticates, with a client that reaches what a tenant's server may be."""

    table: AuthorizationTable
    settings: Settings

    def of(self, tenant: str, config: ServerConfig, name: str) -> Authorize | None:
        """Return how requests to a server are authenticated; None: it has no OAuth."""
        if config.oauth is None or config.url is None:
            return None
        url = config.url

        def make(learn: Learn) -> Auth:
            from wayline.tool_registry.adapters.server_auth import ServerAuth

            return ServerAuth(self.table, tenant, name, url, http=self.client, learn=learn)

        return make

    def client(self) -> AsyncClient:
        """Return a client without any server's headers."""
        confined = Confinement.by(self.settings)
        return http_client(confined, connections_max=CONNECTIONS, answer_within_s=ANSWER_S)
