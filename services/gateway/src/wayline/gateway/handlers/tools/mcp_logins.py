"""Logins to MCP servers with OAuth: the tenant's, and those of single users."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from wayline.contracts.errors import NotFound
from wayline.contracts.server_logins import (
    AuthorizationForgotten,
    AuthorizationUrl,
    AuthorizeServer,
    ForgetAuthorization,
    ForgetUser,
    ListLogins,
    LoginPage,
    UserForgotten,
)
from wayline.gateway.handlers.shared.dependencies import Admin, Gateway, GatewayDependency, Reader, Writer, acting_as
from wayline.gateway.handlers.tools.browser_logins import CALLBACK, CLIENT_DOCUMENT, LOGIN_WITHIN_S, START
from wayline.gateway.handlers.tools.mcp_servers import NamePath
from wayline.gateway.openapi import fails
from wayline.gateway.shapes.body import ONE_LINE, Body, Label
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1/mcp", tags=["mcp servers"], route_class=StrictRoute)

UserQuery = Annotated[
    str, Query(min_length=1, max_length=128, pattern=ONE_LINE, description="As jobs name their user.")
]


class UserLogin(Body):
    """Who logs in."""

    user_id: Label = Field(description="As the user's jobs name them.", examples=["alice"])


@router.post("/servers/{name}/authorize", responses=fails(404, 409))
async def authorize_server(name: NamePath, gateway: GatewayDependency, caller: Admin) -> AuthorizationUrl:
    """Begin the tenant's login to a server with `oauth`; return the page to open in a browser within ten minutes."""
    return await _begin(gateway, _authorize(gateway, caller.tenant, name))


@router.delete("/servers/{name}/authorization", responses=fails(404))
async def forget_authorization(name: NamePath, gateway: GatewayDependency, caller: Admin) -> AuthorizationForgotten:
    """Forget the tenant's tokens of a server, and revoke them where its authorization server can."""
    return await _forget(gateway, ForgetAuthorization(tenant=caller.tenant, name=name))


@router.post("/servers/{name}/logins", responses=fails(404, 409))
async def begin_user_login(
    name: NamePath, login: UserLogin, gateway: GatewayDependency, caller: Writer
) -> AuthorizationUrl:
    """Begin the login of one user, and return the page that this user opens in a browser within ten minutes."""
    return await _begin(gateway, _authorize(gateway, caller.tenant, name, user_id=acting_as(caller, login.user_id)))


@router.get("/servers/{name}/logins", responses=fails(404))
async def list_user_logins(
    name: NamePath,
    gateway: GatewayDependency,
    caller: Reader,
    *,
    user_id: UserQuery | None = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    cursor: Annotated[str | None, Query(min_length=1, max_length=128, pattern=ONE_LINE)] = None,
) -> LoginPage:
    """Return the users who are logged in to a server, by their ids, without their tokens."""
    request = ListLogins(
        tenant=caller.tenant, name=name, user_id=acting_as(caller, user_id), limit=limit, cursor=cursor
    )
    return await gateway.bus.ask(request, LoginPage)


@router.delete("/servers/{name}/logins", responses=fails(404))
async def forget_user_login(
    name: NamePath, user_id: UserQuery, gateway: GatewayDependency, caller: Writer
) -> AuthorizationForgotten:
    """Forget one user's tokens of a server, and revoke them where its authorization server can."""
    request = ForgetAuthorization(tenant=caller.tenant, name=name, user_id=acting_as(caller, user_id))
    return await _forget(gateway, request)


@router.delete("/logins", responses=fails())
async def forget_user(user_id: UserQuery, gateway: GatewayDependency, caller: Writer) -> UserForgotten:
    """Forget one user's tokens of every server, and the logins that the user has begun."""
    request = ForgetUser(tenant=caller.tenant, user_id=acting_as(caller, user_id) or user_id)
    return await gateway.bus.ask(request, UserForgotten, timeout_s=LOGIN_WITHIN_S)


def _authorize(gateway: Gateway, tenant: str, name: str, *, user_id: str | None = None) -> AuthorizeServer:
    at = gateway.settings.reached_at
    return AuthorizeServer(
        tenant=tenant,
        name=name,
        user_id=user_id,
        redirect_uri=f"{at}{CALLBACK}",
        start_uri=f"{at}{START}",
        # Elsewhere nobody could read it, or trust who answers.
        client_metadata_url=f"{at}{CLIENT_DOCUMENT}" if at.startswith("https://") else None,
    )


async def _forget(gateway: Gateway, request: ForgetAuthorization) -> AuthorizationForgotten:
    found = await gateway.bus.ask(request, AuthorizationForgotten, timeout_s=LOGIN_WITHIN_S)
    if not found.forgotten:
        raise NotFound("login to server", request.name)
    return found


async def _begin(gateway: Gateway, request: AuthorizeServer) -> AuthorizationUrl:
    return await gateway.bus.ask(request, AuthorizationUrl, timeout_s=LOGIN_WITHIN_S)
