"""Who may say and hear what: one table, from which the server's configuration is rendered and which the tests read.

A service publishes commands and its own facts, answers what it owns, and binds to its consumers; nothing more.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from wayline.chassis.topology import CONSUMERS, PAYLOADS, PROVIDERS

LEADER_READ_EVENTS = "$JS.API.STREAM.MSG.GET.EVENTS"
DIRECT_READ_EVENTS = ("$JS.API.DIRECT.GET.EVENTS", "$JS.API.DIRECT.GET.EVENTS.>")
OBJECT_READ = (
    # How the client library finds the stream that an object is in.
    "$JS.API.STREAM.NAMES",
    f"$JS.API.STREAM.INFO.OBJ_{PAYLOADS}",
    f"$JS.API.DIRECT.GET.OBJ_{PAYLOADS}.>",
    f"$JS.API.STREAM.MSG.GET.OBJ_{PAYLOADS}",
    f"$JS.API.CONSUMER.CREATE.OBJ_{PAYLOADS}.>",
    f"$JS.API.CONSUMER.CREATE.OBJ_{PAYLOADS}",
    f"$JS.API.CONSUMER.DELETE.OBJ_{PAYLOADS}.>",
    f"$JS.FC.OBJ_{PAYLOADS}.>",
)
OBJECT_WRITE = (*OBJECT_READ, f"$O.{PAYLOADS}.>", f"$JS.API.STREAM.PURGE.OBJ_{PAYLOADS}")
COMMON = ("telemetry.traces", "dead.*.*", *OBJECT_WRITE)


@dataclass(frozen=True)
class Identity:
    """A user of the bus: its allow-lists beside its own inbox and the consumers it binds to."""

    name: str
    publish: tuple[str, ...]
    subscribe: tuple[str, ...] = ()

    @property
    def inbox(self) -> str:
        return f"_INBOX_{self.name}"

    def may_publish(self) -> list[str]:
        bound = [consumer for consumer in CONSUMERS if consumer.service == self.name]
        return [
            *self.publish,
            *(f"$JS.API.CONSUMER.MSG.NEXT.{c.stream}.{c.name}" for c in bound),
            *(f"$JS.API.CONSUMER.INFO.{c.stream}.{c.name}" for c in bound),
            *(f"$JS.ACK.{c.stream}.{c.name}.>" for c in bound),
        ]

    def may_subscribe(self) -> list[str]:
        return [f"{self.inbox}.>", *self.subscribe]


IDENTITIES = {
    identity.name: identity
    for identity in (
        Identity(
            "gateway",
            publish=(
                *COMMON,
                "jobs.submit.*",
                "jobs.plan.*",
                "signals.*.*",
                "documents.index.*",
                *(f"documents.{verb}.*" for verb in ("accept", "get", "list", "delete")),
                "retrieval.search.*",
                *(f"agents.{verb}.*" for verb in ("get", "list", "put", "delete", "restore")),
                *(f"tenants.{verb}.*" for verb in ("create", "get", "list", "disable", "enable")),
                *(f"models.{verb}.*" for verb in ("list", "put", "delete", "providers")),
                *(f"budgets.{verb}.*" for verb in ("list", "put", "delete")),
                "tools.list.*",
                *(f"traces.{verb}.*" for verb in ("get", "steps")),
                "jobs.list.*",
                "costs.get.*",
                LEADER_READ_EVENTS,
                *DIRECT_READ_EVENTS,
                "$JS.API.STREAM.MSG.GET.DEAD",
                "$JS.API.STREAM.INFO.DEAD",
                "$JS.API.DIRECT.GET.DEAD",
                "$JS.API.DIRECT.GET.DEAD.>",
            ),
            subscribe=("live.*.*", "deltas.*.*"),
        ),
        Identity(
            "router",
            publish=(
                *COMMON,
                "jobs.run.*.*",
                "events.*.*",
                "signals.*.*",
                "replies.>",
                "_INBOX.>",
                LEADER_READ_EVENTS,
                *DIRECT_READ_EVENTS,
                *(
                    f"$JS.API.STREAM.MSG.{verb}.{stream}"
                    for verb in ("GET", "DELETE")
                    for stream in ("INDEX", "TELEMETRY", "SUBMIT", "RUN")
                ),
                "$JS.API.STREAM.INFO.EVENTS",
                "documents.describe.*",
                f"$JS.API.STREAM.MSG.GET.KV_{PROVIDERS}",
            ),
            subscribe=(
                f"$KV.{PROVIDERS}.>",
                *(f"agents.{verb}.*" for verb in ("get", "list", "put", "delete", "restore")),
                *(f"tenants.{verb}.*" for verb in ("create", "get", "list", "disable", "enable")),
                *(f"models.{verb}.*" for verb in ("list", "put", "delete")),
                *(f"budgets.{verb}.*" for verb in ("settle", "extend", "release", "list", "put", "delete")),
                "jobs.plan.*",
            ),
        ),
        Identity(
            "executor",
            publish=(
                *COMMON,
                "events.*.*",
                "deltas.*.*",
                "jobs.run.*.*",
                "later.>",
                "replies.>",
                "_INBOX.>",
                *(f"tools.{verb}.*" for verb in ("call", "cancel", "list", "resolve", "void")),
                *(f"budgets.{verb}.*" for verb in ("settle", "extend", "release")),
                "documents.read.*",
                LEADER_READ_EVENTS,
                *DIRECT_READ_EVENTS,
                "$JS.API.STREAM.MSG.GET.SIGNALS",
                "$JS.API.DIRECT.GET.SIGNALS",
                f"$JS.API.STREAM.MSG.GET.KV_{PROVIDERS}",
                f"$KV.{PROVIDERS}.>",
            ),
            subscribe=("signals.*.*", f"$KV.{PROVIDERS}.>", "models.providers.*"),
        ),
        Identity(
            "retrieval",
            publish=(*COMMON, "$JS.API.STREAM.INFO.INDEX"),
            subscribe=(
                *(f"documents.{verb}.*" for verb in ("accept", "get", "list", "delete", "describe", "read")),
                "retrieval.search.*",
            ),
        ),
        Identity(
            "tool_registry",
            publish=(*COMMON, "retrieval.search.*"),
            subscribe=tuple(f"tools.{verb}.*" for verb in ("call", "cancel", "list", "resolve", "void")),
        ),
        Identity(
            "tracing",
            publish=(
                *COMMON,
                *DIRECT_READ_EVENTS,
                *(f"$JS.API.CONSUMER.INFO.{c.stream}.{c.name}" for c in CONSUMERS),
                "$JS.API.STREAM.INFO.*",
            ),
            subscribe=("traces.get.*", "traces.steps.*", "jobs.list.*", "costs.get.*"),
        ),
    )
}

ANSWERS_MAX = 1
ANSWERS_WITHIN = "15m"
CLIENT_PUBLISH = ("jobs.submit.default", "signals.default.>")
CLIENT_SUBSCRIBE = ("_INBOX.>", "replies.default.>", "live.default.>", "deltas.default.>")


def render_accounts(public_keys: dict[str, str], *, admin_key: str, client: bool = True) -> str:
    """The `accounts` part of a nats-server configuration.

    `public_keys`: the nkey of each identity by name; `admin_key`: of the one that may declare streams. With `client`,
    connections without credentials become the anonymous `client` of tenant `default`: only for a loopback listener.
    """
    users: list[dict[str, object]] = [{"nkey": admin_key}]
    for name, identity in IDENTITIES.items():
        users.append(
            {
                "nkey": public_keys[name],
                "permissions": {
                    "publish": {"allow": identity.may_publish()},
                    "subscribe": {"allow": identity.may_subscribe()},
                    "allow_responses": {"max": ANSWERS_MAX, "expires": ANSWERS_WITHIN},
                },
            }
        )
    if client:
        users.append(
            {
                "user": "client",
                "password": "client",
                "permissions": {
                    "publish": {"allow": list(CLIENT_PUBLISH)},
                    "subscribe": {"allow": list(CLIENT_SUBSCRIBE)},
                },
            }
        )
    account = {"jetstream": "enabled", "users": users}
    text = f"accounts {{ WAYLINE: {json.dumps(account, indent=1)} }}\n"
    return text + ("no_auth_user: client\n" if client else "")
