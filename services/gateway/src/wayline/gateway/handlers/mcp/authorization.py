"""How a client of `/mcp` finds out what to authorize with (RFC 9728, RFC 8414), and its token for an API key.

Our keys are the only credentials: a client that knows OAuth asks for a token with the id of a key and the key.
"""

from __future__ import annotations

from base64 import b64decode
from typing import Any, Final
from urllib.parse import parse_qs, unquote

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from wayline.gateway.errors import Unauthorized
from wayline.gateway.handlers.shared.dependencies import GatewayDependency
from wayline.gateway.keys import SCOPES, key_id
from wayline.gateway.settings import Settings

router = APIRouter(tags=["mcp"], include_in_schema=False)

RESOURCE_METADATA: Final = "/.well-known/oauth-protected-resource"
GRANT: Final = "client_credentials"
FORM_MAX_BYTES: Final = 16 * 1024
FIELDS_MAX: Final = 20
NOT_STORED: Final = {"Cache-Control": "no-store", "Pragma": "no-cache"}


@router.get(RESOURCE_METADATA)
@router.get(f"{RESOURCE_METADATA}/mcp")
async def protected_resource(request: Request, gateway: GatewayDependency) -> JSONResponse:
    """Say what authorizes requests to `/mcp`."""
    at = base_url(request, gateway.settings)
    return JSONResponse(
        {
            "resource": f"{at}/mcp",
            "resource_name": "Wayline",
            "authorization_servers": [at],
            "scopes_supported": list(SCOPES),
            "bearer_methods_supported": ["header"],
        }
    )


@router.get("/.well-known/oauth-authorization-server")
async def authorization_server(request: Request, gateway: GatewayDependency) -> JSONResponse:
    """Say how a client gets a token here."""
    at = base_url(request, gateway.settings)
    return JSONResponse(
        {
            "issuer": at,
            "token_endpoint": f"{at}/oauth/token",
            "grant_types_supported": [GRANT],
            "response_types_supported": [],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
            "scopes_supported": list(SCOPES),
        }
    )


@router.post("/oauth/token")
async def token(request: Request, gateway: GatewayDependency) -> JSONResponse:
    """Return a token for an API key: `client_id` is the key's id, `client_secret` the key, and the token too.

    So a key that is revoked takes its tokens with it, and nothing has to be kept of them.
    """
    body = await request.body()
    if len(body) > FORM_MAX_BYTES or body.count(b"&") >= FIELDS_MAX:
        return _refused(400, "invalid_request", "the form is too large")
    fields = {name: values[0] for name, values in parse_qs(body.decode("utf-8", "replace")).items()}
    if fields.get("grant_type") != GRANT:
        return _refused(400, "unsupported_grant_type", f"only {GRANT} is granted here")
    client_id, secret = _from_basic(request) or (fields.get("client_id", ""), fields.get("client_secret", ""))
    try:
        caller = await gateway.keys.caller(secret)
    except Unauthorized:
        return _refused(401, "invalid_client", "client_secret is no valid API key")
    if client_id != key_id(secret):
        return _refused(401, "invalid_client", "client_id is not the id of this key: `wayline keys list` shows it")
    scope = " ".join(sorted(caller.scopes))
    return JSONResponse({"access_token": secret, "token_type": "Bearer", "scope": scope}, headers=NOT_STORED)


def base_url(request: Request, settings: Settings) -> str:
    """Return where this gateway is reached: as it is set, or as this client has reached it."""
    return settings.reached_at if settings.public_url else str(request.base_url).rstrip("/")


def challenge(request: Request, settings: Settings) -> str:
    """Return the `WWW-Authenticate` of an answer to a client of `/mcp` that is not authorized."""
    return f'Bearer resource_metadata="{base_url(request, settings)}{RESOURCE_METADATA}/mcp"'


def _from_basic(request: Request) -> tuple[str, str] | None:
    kind, _, value = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "basic":
        return None
    try:
        name, _, secret = b64decode(value, validate=True).decode().partition(":")
    except ValueError:
        return "", ""
    return unquote(name), unquote(secret)


def _refused(status: int, error: str, description: str) -> JSONResponse:
    content: dict[str, Any] = {"error": error, "error_description": description}
    headers = NOT_STORED | ({"WWW-Authenticate": "Basic"} if status == 401 else {})
    return JSONResponse(content, status_code=status, headers=headers)
