"""What a tenant's client may publish and hear on the bus, by the scopes of its credential."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from wayline.chassis.access.permissions import (
    ANNOUNCE_TOOLS,
    INVOKE_TOOL,
    READ_EVENTS,
    STOP_TOOL,
    TAKE_FINISHED,
    WANT_TOOLS,
)

DEFAULT_TENANT = "default"


class Scope(StrEnum):
    """What a tenant's client may do on the bus."""

    SUBMIT = "submit"
    SIGNAL = "signal"
    APPROVE = "approve"
    FOLLOW = "follow"
    TOOLS = "tools"


@dataclass(frozen=True)
class Client:
    """A user of a tenant's account."""

    tenant: str
    scopes: frozenset[Scope] = frozenset(Scope)
    public_key: str | None = None
    """Its nkey; without one, a connection without credentials."""

    @property
    def account(self) -> str:
        return tenant_account(self.tenant)

    def may_publish(self) -> list[str]:
        published: dict[Scope, tuple[str, ...]] = {
            Scope.SUBMIT: (f"jobs.submit.{self.tenant}",),
            Scope.SIGNAL: (f"signals.{self.tenant}.*",),
            Scope.APPROVE: (f"approvals.{self.tenant}.*",),
            Scope.TOOLS: (_of_tenant(ANNOUNCE_TOOLS, self.tenant),),
            Scope.FOLLOW: (_of_tenant(TAKE_FINISHED, self.tenant), _of_tenant(READ_EVENTS, self.tenant)),
        }
        return [subject for scope, subjects in published.items() if scope in self.scopes for subject in subjects]

    def may_subscribe(self) -> list[str]:
        followed = [f"live.{self.tenant}.*", f"deltas.{self.tenant}.*"] if Scope.FOLLOW in self.scopes else []
        heard = [WANT_TOOLS, _of_tenant(STOP_TOOL, self.tenant)] if Scope.TOOLS in self.scopes else []
        return ["_INBOX.>", f"replies.{self.tenant}.>", *followed, *self.answers(), *heard]

    def answers(self) -> list[str]:
        """Return the subjects of the requests that it answers."""
        return [_of_tenant(INVOKE_TOOL, self.tenant)] if Scope.TOOLS in self.scopes else []


ANONYMOUS = Client(DEFAULT_TENANT)
"""A connection without credentials to a loopback bus."""


def tenant_account(tenant: str) -> str:
    """Return the name of a tenant's account."""
    return f"TENANT_{tenant}"


def _of_tenant(pattern: str, tenant: str) -> str:
    """Return a pattern for one tenant: the third word of it."""
    first, second, _, *rest = pattern.split(".")
    return ".".join((first, second, tenant, *rest))


def tenants_of(clients: Iterable[Client]) -> list[str]:
    """Return the tenants that have a client."""
    return sorted({client.tenant for client in clients})
