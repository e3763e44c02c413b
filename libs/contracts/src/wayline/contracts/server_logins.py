"""Logins to MCP servers over OAuth: the tenant's, and those of users."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypeAlias

from pydantic import Field

from wayline.contracts.base import Frozen, Request
from wayline.contracts.budgets import ONE_LINE
from wayline.contracts.server_config import ServerName

UserId: TypeAlias = Annotated[str, Field(min_length=1, max_length=128, pattern=ONE_LINE)]


class AuthorizationUrl(Frozen):
    """Where a person logs in to a server."""

    url: str = Field(description="To be opened in a browser within ten minutes.")


class AuthorizeServer(Request, subject="mcp.authorize.{tenant}", replies=AuthorizationUrl):
    """Begin a login to a server that needs OAuth."""

    name: ServerName
    redirect_uri: str = Field(max_length=2_000, description="Where the browser comes back to.")
    user_id: UserId | None = Field(default=None, description="Who logs in for their own jobs; None: the tenant.")
    client_metadata_url: str | None = Field(
        default=None, max_length=2_000, description="Where an authorization server can read who its client is."
    )
    start_uri: str | None = Field(
        default=None, max_length=2_000, description="The page where a browser begins; the answer's `url` is there."
    )


class LoginView(Frozen):
    """A login that is begun: what its access is for, and who gives it."""

    name: str = Field(description="The MCP server.")
    user_id: str | None = None
    authorization_server: str = Field(description="The host of the page where a person consents.")


class GetLogin(Request, subject="mcp.login.{tenant}", replies=LoginView):
    """Ask what a login that is begun is for."""

    state: str = Field(max_length=500)


class OpenLogin(Request, subject="mcp.openlogin.{tenant}", replies=AuthorizationUrl):
    """Bind a login to the browser that goes on with it, and ask where that goes; the last one counts."""

    state: str = Field(max_length=500)
    browser: str = Field(min_length=32, max_length=128, description="A secret that only this browser sends.")


class ServerAuthorized(Frozen):
    """A server that was logged in to."""

    name: str
    user_id: str | None = None


class FinishAuthorization(Request, subject="mcp.finish.{tenant}", replies=ServerAuthorized):
    """Finish a login with what the browser brought back; a state counts once."""

    state: str = Field(max_length=500)
    browser: str | None = Field(
        default=None, max_length=128, description="The secret of the browser that came back; None: it sent none."
    )
    code: str | None = Field(default=None, max_length=8_000)
    iss: str | None = Field(default=None, max_length=2_000)


class AuthorizationForgotten(Frozen):
    """Whether there were tokens, and whether they are revoked."""

    forgotten: bool
    revoked: bool = False


class ForgetAuthorization(Request, subject="mcp.forget.{tenant}", replies=AuthorizationForgotten):
    """Forget the tokens of a server: the tenant's, or one user's."""

    name: str
    user_id: UserId | None = None


class UserForgotten(Frozen):
    """The servers that a user was logged in to."""

    servers: tuple[str, ...]
    revoked: tuple[str, ...] = Field(default=(), description="Those whose authorization server revoked the tokens.")


class ForgetUser(Request, subject="mcp.forgetuser.{tenant}", replies=UserForgotten):
    """Forget a user's tokens of every server, and the logins that the user has begun."""

    user_id: UserId


class ServerLogin(Frozen):
    """A user who is logged in to a server; tokens are never shown."""

    user_id: str
    logged_in_at: datetime
    refused: bool = Field(default=False, description="The tokens are renewed no more: the user has to log in again.")


class LoginPage(Frozen):
    """Users who are logged in to a server, by their ids."""

    logins: tuple[ServerLogin, ...]
    next_cursor: str | None = Field(default=None, description="For the next page; None: there is no more.")


class ListLogins(Request, subject="mcp.logins.{tenant}", replies=LoginPage):
    """Ask which users are logged in to a server."""

    name: str
    user_id: UserId | None = Field(default=None, description="Only this one.")
    limit: int = Field(default=100, ge=1, le=1_000)
    cursor: UserId | None = None
