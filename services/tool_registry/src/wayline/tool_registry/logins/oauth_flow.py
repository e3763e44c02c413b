"""Log in to a server with OAuth: authorization code with PKCE, and refresh; every request goes through one client.

The parts of the flow are those of the MCP library. It runs them within one request, which waits for a person; here a
login begins in one replica and ends in another.
"""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import httpx2
from mcp.client.auth import OAuthFlowError, OAuthRegistrationError
from mcp.client.auth import utils as oauth
from mcp.client.auth.oauth2 import OAuthContext, PKCEParameters, check_registration_usable
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url
from pydantic import AnyHttpUrl, ValidationError
from pydantic_core import from_json

from wayline.contracts.errors import Conflict
from wayline.tool_registry.errors import NotBegun

if TYPE_CHECKING:
    from wayline.contracts.server_config import ServerOAuth

CLIENT_NAME = "Wayline"
ANSWER_MAX_BYTES = 256 * 1024
EXPIRES_EARLY_S = 60.0
"""How long before their end tokens are renewed."""
PROBE = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
DISCOVERY_STATUS_MAX = 500
GRANT_TYPES = ("authorization_code", "refresh_token")
FINAL_ERRORS = frozenset({"invalid_grant", "invalid_client"})
"""Of a refused renewal: the login is over, or the client. After any other error it may work again."""
SEND_WITHIN_S = 15.0
"""How long one answer of an authorization server may take, however slowly it drips."""
SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,200}")
SCOPE_MAX_CHARS = 2_000

Secrets = dict[str, Any]


class CannotLogIn(Conflict):
    """A server whose authorization server cannot be used; the text holds nothing that it answered."""


@dataclass(frozen=True)
class LoginRequest:
    """A login that is begun."""

    tenant: str
    url: str
    oauth: ServerOAuth
    redirect_uri: str
    client_metadata_url: str | None = None
    """Where an authorization server can read who we are, instead of registering us."""
    wanted_scope: str | None = None
    """What was asked for before, and what a server wants beside it."""


async def begin(http: httpx2.AsyncClient, asked: LoginRequest) -> tuple[str, str, Secrets]:
    """Find the authorization server and register there; return the URL to open, the state, and the login to keep.

    Raises CannotLogIn.
    """
    resource, issuer, challenged = await _protected_resource(http, asked.url)
    metadata = await _metadata(http, issuer, asked)
    offered = oauth.get_client_metadata_scopes(challenged, resource, metadata, list(GRANT_TYPES))
    scope = asked.oauth.scope or oauth.union_scopes(asked.wanted_scope, offered)
    client = await _client(http, metadata, asked, scope=scope)
    pkce, state = PKCEParameters.generate(), f"{asked.tenant}.{token_urlsafe(32)}"
    query = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": asked.redirect_uri,
        "state": state,
        "code_challenge": pkce.code_challenge,
        "code_challenge_method": "S256",
        "resource": _resource_url(asked.url, resource),
        **({"scope": scope} if scope else {}),
        # OpenID Connect gives a refresh token only with a consent of its own.
        **({"prompt": "consent"} if "offline_access" in (scope or "").split() else {}),
    }
    login: Secrets = {
        "url": asked.url,
        "verifier": pkce.code_verifier,
        "redirect_uri": asked.redirect_uri,
        "resource": query["resource"],
        "scope": scope,
        "metadata": metadata.model_dump(mode="json", exclude_none=True),
        "client": client.model_dump(mode="json", exclude_none=True),
    }
    endpoint = str(metadata.authorization_endpoint)
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}", state, login


async def finish(http: httpx2.AsyncClient, login: Secrets, *, code: str, iss: str | None) -> Secrets:
    """Exchange a code for tokens. Raises CannotLogIn."""
    metadata = OAuthMetadata.model_validate(login["metadata"])
    try:
        oauth.validate_authorization_response_iss(iss, metadata)
    except OAuthFlowError:
        raise CannotLogIn("the answer came from another authorization server than was asked") from None
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": login["redirect_uri"],
        "code_verifier": login["verifier"],
    }
    answer = await _token_request(http, login, form)
    if answer.status_code not in (200, 201):
        raise CannotLogIn(f"the authorization server refused the code with status {answer.status_code}")
    kept = {name: login[name] for name in ("url", "resource", "metadata", "client")}
    return {**kept, **_tokens(answer, before={"scope": login.get("scope")})}


async def refreshed(http: httpx2.AsyncClient, held: Secrets) -> Secrets | None:
    """Return renewed tokens; None: the authorization server refuses. Raises NotBegun where it does not answer."""
    if not held.get("refresh_token"):
        return None
    form = {"grant_type": "refresh_token", "refresh_token": held["refresh_token"]}
    try:
        answer = await _token_request(http, held, form)
    except CannotLogIn as error:
        raise NotBegun(str(error)) from None
    if answer.status_code in (200, 201):
        try:
            return {**held, **_tokens(answer, before=held)}
        except CannotLogIn as error:
            raise NotBegun(str(error)) from None
    if _error_code(answer) in FINAL_ERRORS:
        return None
    # A page of its own, a limit, a fault: none of them says that the login is over.
    raise NotBegun(f"its authorization server answered with status {answer.status_code}")


def _error_code(answer: httpx2.Response) -> str:
    """Return the error that an authorization server names; empty where it names none."""
    try:
        said = from_json(answer.content)
    except ValueError:
        return ""
    error = said.get("error") if isinstance(said, dict) and 400 <= answer.status_code < DISCOVERY_STATUS_MAX else ""
    return error if isinstance(error, str) else ""


async def revoke(http: httpx2.AsyncClient, held: Secrets) -> bool:
    """Revoke tokens where their authorization server can, and return whether it did."""
    metadata = OAuthMetadata.model_validate(held["metadata"])
    if metadata.revocation_endpoint is None:
        return False
    form = {"token": held.get("refresh_token") or held["access_token"]}
    try:
        answer = await _post(http, str(metadata.revocation_endpoint), held, form)
    except CannotLogIn:
        return False
    return answer.status_code == 200


def with_scope(held: Secrets, challenge: httpx2.Response) -> Secrets:
    """Return tokens with the scope that the next login asks for: what they were given for, and what was missing."""
    missing = oauth.extract_scope_from_www_auth(challenge) or ""
    named = " ".join(one for one in missing.split() if SCOPE.fullmatch(one))[:SCOPE_MAX_CHARS]
    return {**held, "wanted_scope": oauth.union_scopes(held.get("wanted_scope") or held.get("scope"), named)}


def lacks_scope(answer: httpx2.Response) -> bool:
    """Return whether a server refuses a token because it was given for too little."""
    return answer.status_code == httpx2.codes.FORBIDDEN and (
        oauth.extract_field_from_www_auth(answer, "error") == "insufficient_scope"
    )


def is_fresh(held: Secrets) -> bool:
    """Return whether an access token is still good for a while."""
    return held["expires_at"] is None or time.time() < held["expires_at"] - EXPIRES_EARLY_S


async def _protected_resource(
    http: httpx2.AsyncClient, url: str
) -> tuple[ProtectedResourceMetadata | None, str | None, str | None]:
    """Return the server's metadata, its authorization server, and the scope that it asks for."""
    headers = {"Accept": "application/json, text/event-stream"}
    answer = await _send(http, http.build_request("POST", url, json=PROBE, headers=headers))
    named = oauth.extract_resource_metadata_from_www_auth(answer) if answer.status_code in (401, 403) else None
    for at in oauth.build_protected_resource_metadata_discovery_urls(named, url):
        found = await _send(http, oauth.create_oauth_metadata_request(at))
        if found.status_code >= DISCOVERY_STATUS_MAX or found.status_code == 429:
            raise CannotLogIn(f"the server's metadata cannot be read: status {found.status_code}")
        resource = await oauth.handle_protected_resource_response(found)
        if resource is not None:
            asked = resource_url_from_server_url(url)
            if not check_resource_allowed(requested_resource=asked, configured_resource=str(resource.resource)):
                raise CannotLogIn("the server's metadata is that of another server")
            return resource, str(resource.authorization_servers[0]), oauth.extract_scope_from_www_auth(answer)
    return None, None, oauth.extract_scope_from_www_auth(answer)


async def _metadata(http: httpx2.AsyncClient, issuer: str | None, asked: LoginRequest) -> OAuthMetadata:
    origin, only = str(httpx2.URL(asked.url).copy_with(raw_path=b"/")), asked.oauth.issuer
    if only is not None and not oauth.issuers_match(issuer or origin, only):
        # The server is not believed: it could name any host, and the secret would be sent there.
        raise CannotLogIn("the server names another authorization server than `oauth.issuer`")
    for at in oauth.build_oauth_authorization_server_metadata_discovery_urls(issuer, asked.url):
        usable, metadata = await oauth.handle_auth_metadata_response(
            await _send(http, oauth.create_oauth_metadata_request(at))
        )
        if not usable:
            break
        if metadata is None:
            continue
        if not oauth.issuers_match(str(metadata.issuer), issuer or origin):
            raise CannotLogIn("the authorization server's metadata names another issuer")
        if "S256" not in (metadata.code_challenge_methods_supported or ["S256"]):
            raise CannotLogIn("the authorization server does not know PKCE with S256")
        return metadata
    raise CannotLogIn("no authorization server of it can be found: does it use OAuth?")


async def _client(
    http: httpx2.AsyncClient, metadata: OAuthMetadata, asked: LoginRequest, *, scope: str | None
) -> OAuthClientInformationFull:
    """Return the client that is configured, the one that our own document describes, or register one."""
    redirect_uris = [AnyHttpUrl(asked.redirect_uri)]
    if asked.oauth.client_id is not None:
        return _configured(asked.oauth, metadata)
    if oauth.should_use_client_metadata_url(metadata, asked.client_metadata_url):
        assert asked.client_metadata_url is not None
        return oauth.create_client_info_from_metadata_url(asked.client_metadata_url, redirect_uris=[*redirect_uris])
    if metadata.registration_endpoint is None:
        raise CannotLogIn("the authorization server registers no clients: give `oauth.client_id`")
    wanted = OAuthClientMetadata(
        redirect_uris=[*redirect_uris], client_name=CLIENT_NAME, application_type="web", scope=scope
    )
    answer = await _send(http, oauth.create_client_registration_request(metadata, wanted, ""))
    try:
        client = await oauth.handle_registration_response(answer)
        check_registration_usable(client)
    except OAuthRegistrationError:
        raise CannotLogIn(f"the authorization server registered no usable client: {answer.status_code}") from None
    return client


def _configured(chosen: ServerOAuth, metadata: OAuthMetadata) -> OAuthClientInformationFull:
    """Return the client that exists already, with how it sends its secret where it has one."""
    secret = None if chosen.client_secret is None else chosen.client_secret.get_secret_value()
    known = metadata.token_endpoint_auth_methods_supported or ["client_secret_basic"]
    method = "client_secret_basic" if "client_secret_basic" in known else "client_secret_post"
    return OAuthClientInformationFull(
        client_id=chosen.client_id or "",
        client_secret=secret,
        token_endpoint_auth_method=method if secret is not None else "none",
    )


def _resource_url(url: str, resource: ProtectedResourceMetadata | None) -> str:
    return resource_url_from_server_url(url) if resource is None else str(resource.resource)


async def _token_request(http: httpx2.AsyncClient, held: Secrets, form: dict[str, str]) -> httpx2.Response:
    form = {**form, "client_id": held["client"]["client_id"], "resource": held["resource"]}
    return await _post(http, held["metadata"]["token_endpoint"], held, form)


async def _post(http: httpx2.AsyncClient, url: str, held: Secrets, form: dict[str, str]) -> httpx2.Response:
    context = OAuthContext(held["url"], None, None, None, None)  # pyright: ignore[reportArgumentType]
    context.client_info = OAuthClientInformationFull.model_validate(held["client"])
    data, headers = context.prepare_token_auth(form, {"Content-Type": "application/x-www-form-urlencoded"})
    return await _send(http, http.build_request("POST", url, data=data, headers=headers))


async def _send(http: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
    """Send a request and read a bounded answer; no redirect is followed. Raises CannotLogIn."""
    try:
        async with asyncio.timeout(SEND_WITHIN_S):
            answer, body = await _answer(http, request)
    except TimeoutError:
        raise CannotLogIn(f"{request.url.host} has not answered within {SEND_WITHIN_S:g} s") from None
    except (httpx2.HTTPError, httpx2.StreamError) as error:
        raise CannotLogIn(f"{request.url.host} cannot be asked: {error or type(error).__name__}") from None
    headers = {name: value for name, value in answer.headers.items() if name.lower() == "www-authenticate"}
    return httpx2.Response(answer.status_code, headers=headers, content=body, request=request)


async def _answer(http: httpx2.AsyncClient, request: httpx2.Request) -> tuple[httpx2.Response, bytes]:
    answer = await http.send(request, stream=True, follow_redirects=False)
    try:
        body = bytearray()
        async for piece in answer.aiter_bytes():
            body += piece
            if len(body) > ANSWER_MAX_BYTES:
                raise CannotLogIn(f"{request.url.host} answered with more than {ANSWER_MAX_BYTES} bytes")
        return answer, bytes(body)
    finally:
        await answer.aclose()


def _tokens(answer: httpx2.Response, *, before: Secrets) -> Secrets:
    try:
        token = OAuthToken.model_validate_json(answer.content)
    except ValidationError:
        raise CannotLogIn("the authorization server answered with no usable tokens") from None
    return {
        "access_token": token.access_token,
        "refresh_token": token.refresh_token or before.get("refresh_token"),
        "expires_at": None if token.expires_in is None else time.time() + token.expires_in,
        # What is left out is as it was asked for.
        "scope": token.scope or before.get("scope"),
    }
