"""The accounts of the bus, rendered into a nats-server configuration from the table of permissions.

An account is a bus of its own: what is published in it stays in it, unless another account imports it. The streams are
in one account; each service that writes no log, and each tenant, is in another, which imports the subjects that the
table allows. JetStream's answer to a request that was imported goes back into the account it came from, so a reply
subject that names a stream's subject reaches no stream.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from wayline.chassis.access.clients import ANONYMOUS, Client, tenant_account, tenants_of
from wayline.chassis.access.identity import OWN_API, STREAMS_ACCOUNT, Identity
from wayline.chassis.access.permissions import ANSWERS_MAX, ANSWERS_OF_CLIENTS_MAX, ANSWERS_WITHIN, IDENTITIES

SYSTEM_ACCOUNT = "SYSTEM"
ANONYMOUS_USER = "client"
MANY_ANSWERS = (f"{OWN_API}.CONSUMER.MSG.NEXT.", f"{OWN_API}.DIRECT.GET.", "models.providers.", "replicas.list.")
"""Requests with more than one answer: a pull, a bulk read, a question to every replica."""
PULL_WITHIN = "1m"
"""How long the server remembers whose a pull or a bulk read was; a pull waits at most a third of that."""
SUBJECTS_KNOWN_MAX = 4_096
"""Subjects of which it is known whose they are; each account names the same few hundred again."""
SILENT_WITHIN = "1m"
"""How long the server remembers who called a client's tool, after the last heartbeat of the call."""

Values = dict[str, Any]


def render_accounts(
    public_keys: Mapping[str, str],
    *,
    admin_key: str,
    system_key: str | None = None,
    client: bool = True,
    clients: Iterable[Client] = (),
    beside: Mapping[str, str] | None = None,
) -> str:
    """Render the `accounts` part of a nats-server configuration.

    `public_keys`: the nkey of each identity by name; `admin_key`: of the one that may declare streams; `system_key`: of
    the one that may have the server read its configuration again. `clients`: the users of tenants' accounts. With
    `client`, connections without credentials are one of tenant `default`: only for a loopback listener. `beside`: by a
    key of ours, another one of the same rights, while keys are rotated.
    """
    known = [*clients, *([ANONYMOUS] if client else [])]
    accounts: dict[str, Values] = {STREAMS_ACCOUNT: _streams_account(public_keys, admin_key)}
    for identity in _outside():
        accounts[identity.account] = _service_account(identity, public_keys[identity.name], known)
    if system_key is not None:
        accounts[SYSTEM_ACCOUNT] = {"users": [{"nkey": system_key}]}
    for account in accounts.values():
        account["users"] = [user for one in account["users"] for user in _with_other(one, beside or {})]
    for tenant in tenants_of(known):
        accounts[tenant_account(tenant)] = _tenant_account(tenant, [one for one in known if one.tenant == tenant])
    text = f"accounts {json.dumps(accounts, indent=1)}\n"
    if system_key is not None:
        text += f"system_account: {SYSTEM_ACCOUNT}\n"
    return text + (f"no_auth_user: {ANONYMOUS_USER}\n" if client else "")


def _with_other(user: Values, beside: Mapping[str, str]) -> list[Values]:
    """Return a user of ours, and the same with the key beside its own."""
    other = beside.get(user["nkey"])
    return [user] if other is None else [user, {**user, "nkey": other}]


def _outside() -> list[Identity]:
    """Return the identities that have an account of their own."""
    return [identity for identity in IDENTITIES.values() if identity.account != STREAMS_ACCOUNT]


def _streams_account(public_keys: Mapping[str, str], admin_key: str) -> Values:
    within = [identity for identity in IDENTITIES.values() if identity.account == STREAMS_ACCOUNT]
    used = dict.fromkeys(
        subject for identity in _outside() for subject in identity.uses() if _exporter(subject) == STREAMS_ACCOUNT
    )
    subscribed = dict.fromkeys(subject for identity in _outside() for subject in identity.subscribe)
    return {
        "jetstream": "enabled",
        "users": [{"nkey": admin_key}, *(_service_user(one, public_keys[one.name]) for one in within)],
        "exports": [
            *(_service(subject) for subject in used),
            *({"stream": subject} for subject in (*subscribed, "replies.*.>", "inbox.*.>")),
        ],
        # All of them, for the administrator; each service's permissions say which of these it may ask.
        "imports": [_import(one.account, subject) for one in _outside() for subject in one.answers],
    }


def _service_account(identity: Identity, public_key: str, clients: list[Client]) -> Values:
    imports = [
        _import(exporter, subject, to=identity.named_here(subject))
        for subject in identity.uses()
        if (exporter := _exporter(subject)) != identity.account
    ]
    return {
        "users": [_service_user(identity, public_key)],
        "exports": [
            *(_service(subject) for subject in identity.answers),
            *({"stream": subject} for subject in identity.tells_clients),
        ],
        "imports": [
            *imports,
            *(_stream_import(subject) for subject in identity.subscribe),
            *(_import(tenant_account(tenant), subject) for tenant, subject in _answered(clients, identity)),
        ],
    }


def _answered(clients: list[Client], identity: Identity) -> dict[tuple[str, str], None]:
    """Return the tenants whose clients answer what an identity asks clients, each with the subject."""
    return dict.fromkeys(
        (client.tenant, subject)
        for client in clients
        for subject in client.answers()
        if any(covers(asked, subject) for asked in identity.asks_clients)
    )


def _tenant_account(tenant: str, clients: list[Client]) -> Values:
    published = dict.fromkeys(subject for client in clients for subject in client.may_publish())
    subscribed = dict.fromkeys(subject for client in clients for subject in client.may_subscribe())
    answered = dict.fromkeys(subject for client in clients for subject in client.answers())
    return {
        "users": [_client_user(client) for client in clients],
        "exports": [_service_of_clients(subject) for subject in answered],
        "imports": [
            *(_import(_exporter(subject), subject) for subject in published),
            # Each tenant has inboxes of its own: services put the tenant into the subject.
            {"stream": {"account": STREAMS_ACCOUNT, "subject": f"inbox.{tenant}.>"}, "to": "_INBOX.>"},
            *(
                _stream_import(subject, account=_teller(subject))
                for subject in subscribed
                if not subject.startswith("_INBOX.") and subject not in answered
            ),
        ],
    }


@lru_cache(SUBJECTS_KNOWN_MAX)
def _exporter(subject: str) -> str:
    """Return the account whose users, or whose streams, get what is published on a subject of the table."""
    return next(
        (one.account for one in IDENTITIES.values() if any(covers(answered, subject) for answered in one.answers)),
        STREAMS_ACCOUNT,
    )


def _teller(subject: str) -> str:
    """Return the account from which clients hear a subject."""
    tellers = (one for one in IDENTITIES.values() if any(covers(told, subject) for told in one.tells_clients))
    return next((one.account for one in tellers), STREAMS_ACCOUNT)


def covers(allowed: str, wanted: str) -> bool:
    """Return whether a pattern allows another, as NATS reads it: a wildcard that is asked for counts as a word."""
    mine, theirs = allowed.split("."), wanted.split(".")
    for place, token in enumerate(mine):
        if token == ">":
            return len(theirs) > place
        if place >= len(theirs) or token not in ("*", theirs[place]):
            return False
    return len(mine) == len(theirs)


def _service(subject: str) -> Values:
    if subject.startswith(MANY_ANSWERS):
        return {"service": subject, "response_type": "stream", "response_threshold": PULL_WITHIN}
    return {"service": subject, "response_threshold": ANSWERS_WITHIN}


def _service_of_clients(subject: str) -> Values:
    return {"service": subject, "response_type": "stream", "response_threshold": SILENT_WITHIN}


def _import(account: str, subject: str, *, to: str | None = None) -> Values:
    imported: Values = {"service": {"account": account, "subject": subject}}
    return imported if to is None or to == subject else {**imported, "to": to}


def _stream_import(subject: str, *, account: str = STREAMS_ACCOUNT) -> Values:
    return {"stream": {"account": account, "subject": subject}}


def _service_user(identity: Identity, public_key: str) -> Values:
    return {
        "nkey": public_key,
        "permissions": {
            "publish": {"allow": identity.may_publish()},
            "subscribe": {"allow": identity.may_subscribe()},
            "allow_responses": {"max": ANSWERS_MAX, "expires": ANSWERS_WITHIN},
        },
    }


def _client_user(client: Client) -> Values:
    who = {"nkey": client.public_key} if client.public_key else {"user": ANONYMOUS_USER, "password": ANONYMOUS_USER}
    # An empty list would allow everything.
    publish = {"allow": client.may_publish()} if client.may_publish() else {"deny": ">"}
    permissions: Values = {"publish": publish, "subscribe": {"allow": client.may_subscribe()}}
    if client.answers():
        permissions["allow_responses"] = {"max": ANSWERS_OF_CLIENTS_MAX, "expires": ANSWERS_WITHIN}
    return {"permissions": permissions, **who}
