"""Make the authentication of requests to tenants' servers with OAuth, and the client of their authorization servers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from wayline.contracts.server_config import ServerConfig
from wayline.tool_registry.connection.server_transport import AddSecret, Confinement, MakeAuth, http_client
from wayline.tool_registry.logins.authorization_table import AuthorizationTable
from wayline.tool_registry.logins.token_owner import TokenOwner
from wayline.tool_registry.logins.token_renewals import TokenRenewals
from wayline.tool_registry.settings import Settings

if TYPE_CHECKING:
    from httpx2 import AsyncClient

    from wayline.tool_registry.logins.server_auth import ServerAuth

ANSWER_S = 15.0
"""How long an authorization server may be silent; how long it may take in all is in `oauth_flow.py`."""
CONNECTIONS = 4


@dataclass(frozen=True)
class ServerAuthFactory:
    """Makes the authentication of one server's requests, with a client that reaches what a tenant's server may be."""

    table: AuthorizationTable
    renewals: TokenRenewals
    settings: Settings

    def of(self, tenant: str, config: ServerConfig, name: str, user_id: str = "") -> MakeAuth | None:
        """Return how requests to a server are authenticated, those of a user by their own login; None: no OAuth."""
        if config.oauth is None or config.url is None:
            return None
        url, owner, fixed = config.url, TokenOwner(tenant, name, user_id), config.oauth.scope is not None

        def make(add_secret: AddSecret) -> ServerAuth:
            from wayline.tool_registry.logins.server_auth import ServerAuth

            return ServerAuth(
                self.table,
                self.renewals,
                owner,
                url,
                http=partial(self.client, tenant),
                add_secret=add_secret,
                scope_is_fixed=fixed,
            )

        return make

    def client(self, tenant: str) -> AsyncClient:
        """Return a client without any server's headers."""
        confined = Confinement(self.settings.addresses_of(tenant), proxy=self.settings.proxy_url, tenant=tenant)
        return http_client(
            confined, connections_max=CONNECTIONS, answer_within_s=ANSWER_S, ca_file=self.settings.ca_path
        )
