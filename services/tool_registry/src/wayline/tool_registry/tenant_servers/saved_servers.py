"""A tenant's own server: what of it is stored in clear, what is a secret, and what a tenant may save at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias
from urllib.parse import urlsplit

from pydantic import SecretStr

from wayline.contracts.errors import Conflict, Reject
from wayline.contracts.server_config import MASK, ONLY_REFERENCE, ServerConfig, ServerOAuth, ServerSettings
from wayline.store.sealing import Sealed
from wayline.tool_registry.programs.allowed_programs import not_allowed, require_program
from wayline.tool_registry.secrets.secret_references import is_shown
from wayline.tool_registry.settings import Settings

Secrets: TypeAlias = dict[str, dict[str, str]]
"""The values of `headers` and `env` by name, the query of `url`, which often holds a key, and `oauth.client_secret`."""

KEPT_FOR = {
    "headers": "this scheme, host and port",
    "url": "this scheme, host and port",
    "env": "this `command` with these `args` and no other change of `env`",
    "oauth": "this `issuer`",
}
"""What must stay the same for a mask to keep the stored value: to whom a secret is given."""
TIMEOUT_MAX_S = 3_600.0
"""The longest that one call of a tenant's server may take, whatever its configuration asks for."""
DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class SavedServer:
    """A row of the table of servers."""

    tenant: str
    name: str
    config: ServerConfig
    """With masks in place of secrets."""
    sealed: Sealed | None
    enabled: bool
    revision: str
    """Another one after each change of the configuration."""
    saved_at: datetime | None = None


def is_untrusted(config: ServerConfig) -> bool:
    """Return whether a tenant's server returns the words of strangers: unless its configuration denies that."""
    return not config.trusted if config.untrusted is None else config.untrusted


def of_tenant(config: ServerConfig, name: str, *, timeout_max_s: float = TIMEOUT_MAX_S) -> ServerSettings:
    """Return the settings by which a tenant's server is run; no call of it holds a slot longer than may be."""
    tools = {
        tool: own.model_copy(update={"timeout_s": min(own.timeout_s, timeout_max_s)}) if own.timeout_s else own
        for tool, own in config.tools.items()
    }
    config = config.model_copy(update={"tools": tools, "timeout_s": min(config.timeout_s, timeout_max_s)})
    return ServerSettings.model_construct(**{**dict(config), "untrusted": is_untrusted(config)}, name=name)


def split(config: ServerConfig) -> tuple[ServerConfig, Secrets]:
    """Return a configuration with masks in place of its secrets, and the secrets."""
    secrets: Secrets = {"headers": _to_seal(config.headers), "env": _to_seal(config.env)}
    base, mark, query = (config.url or "").partition("?")
    query = "" if is_shown(query) else query
    if query:
        secrets["url"] = {"query": query}
    oauth = config.oauth
    if oauth is not None and oauth.client_secret is not None:
        secrets["oauth"] = {"client_secret": oauth.client_secret.get_secret_value()}
        oauth = oauth.model_copy(update={"client_secret": SecretStr(MASK)})
    masked = config.model_copy(
        update={
            "headers": {**config.headers, **dict.fromkeys(secrets["headers"], SecretStr(MASK))},
            "env": {**config.env, **dict.fromkeys(secrets["env"], SecretStr(MASK))},
            "url": f"{base}{mark}{MASK}" if query else config.url,
            **({} if oauth is config.oauth else {"oauth": oauth}),
        }
    )
    return masked, {kind: held for kind, held in secrets.items() if held}


def has_masks(config: ServerConfig) -> bool:
    """Return whether a configuration has a mask in place of a secret."""
    values = [*config.headers.values(), *config.env.values()]
    if config.oauth is not None and config.oauth.client_secret is not None:
        values.append(config.oauth.client_secret)
    return _query(config) == MASK or any(value.get_secret_value() == MASK for value in values)


def kept(stored: Secrets, config: ServerConfig, *, saved: ServerConfig) -> Secrets:
    """Return the stored secrets that masks of a configuration may stand for: those that go to whom they went before.

    Otherwise a user who saves or tries a server could have its secrets sent to a server or a program elsewhere.
    """
    same = {
        "headers": _origin(config) == _origin(saved),
        "url": _origin(config) == _origin(saved),
        "env": (config.command, config.args) == (saved.command, saved.args) and _only_keeps(config.env, saved.env),
        "oauth": _issuer(config) == _issuer(saved),
    }
    return {kind: held for kind, held in stored.items() if same[kind]}


def filled(config: ServerConfig, stored: Secrets) -> ServerConfig:
    """Return a configuration with the stored secrets in place of its masks. Raises Reject where none is stored."""
    base, _, query = (config.url or "").partition("?")
    if query == MASK:
        query = _stored(stored, "url", "query", shown="the query of `url`")
    return config.model_copy(
        update={
            "headers": _filled(config.headers, stored, "headers"),
            "env": _filled(config.env, stored, "env"),
            "url": f"{base}?{query}" if query else config.url,
            **_oauth_filled(config.oauth, stored),
        }
    )


def _to_seal(values: Mapping[str, SecretStr]) -> dict[str, str]:
    """Return the values that are secrets: a reference to one is none."""
    plain = {name: value.get_secret_value() for name, value in values.items()}
    return {name: value for name, value in plain.items() if not ONLY_REFERENCE.fullmatch(value)}


def _query(config: ServerConfig) -> str:
    return (config.url or "").partition("?")[2]


def _origin(config: ServerConfig) -> tuple[str, str | None, int | None] | None:
    try:
        parts = urlsplit(config.url or "")
        return parts.scheme, parts.hostname, parts.port or DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return None


def _only_keeps(env: Mapping[str, SecretStr], saved: Mapping[str, SecretStr]) -> bool:
    """Return whether no variable is new or has another value: one may name the host that a program sends a token to.

    A reference to a secret is no mask, and has to be the one that is saved.
    """
    return all(name in saved and value in (SecretStr(MASK), saved[name]) for name, value in env.items())


def _issuer(config: ServerConfig) -> str | None:
    return None if config.oauth is None else config.oauth.issuer


def _oauth_filled(oauth: ServerOAuth | None, stored: Secrets) -> dict[str, ServerOAuth]:
    if oauth is None or oauth.client_secret is None or oauth.client_secret.get_secret_value() != MASK:
        return {}
    secret = _stored(stored, "oauth", "client_secret", shown="oauth.client_secret")
    return {"oauth": oauth.model_copy(update={"client_secret": SecretStr(secret)})}


def _filled(shown: Mapping[str, SecretStr], stored: Secrets, kind: str) -> dict[str, SecretStr]:
    return {
        name: SecretStr(_stored(stored, kind, name, shown=f"{kind}.{name}"))
        if value.get_secret_value() == MASK
        else value
        for name, value in shown.items()
    }


def _stored(stored: Secrets, kind: str, name: str, *, shown: str) -> str:
    try:
        return stored[kind][name]
    except KeyError:
        raise Reject(
            f"{shown} is {MASK}, which keeps a stored value, and none is stored for {KEPT_FOR[kind]}: send the value",
            code="no_stored_secret",
            status=422,
        ) from None


def require_name(name: str, taken: Iterable[str]) -> None:
    """Refuse the name of a server that the installation has for all tenants. Raises Conflict."""
    if name in taken:
        raise Conflict(f"{name!r} is the name of a server of this installation: choose another name")


def require_allowed(config: ServerConfig, settings: Settings) -> None:
    """Refuse a configuration that a tenant may not use here. Raises Reject, saying who can allow it."""
    if config.command is not None:
        require_program(config, settings.commands)
        return
    try:
        parts = urlsplit(config.url or "")
        _ = parts.port
    except ValueError:
        raise not_allowed("`url` is not of the form https://host:port/path") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise not_allowed("`url` is not of the form https://host:port/path")
    if parts.username is not None or parts.password is not None:
        raise not_allowed("`url` is shown to readers: put the user and the password into `headers`")
