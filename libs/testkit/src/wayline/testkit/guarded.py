"""A bus as it is in production: each service has the rights of its own identity, and what is refused fails the test."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType

import nkeys

from wayline.chassis import BusSettings
from wayline.chassis.access.accounts import render_accounts
from wayline.chassis.access.permissions import IDENTITIES
from wayline.embedded import NatsServer, minimal_config

ADMIN = "admin"
"""The identity that may do everything: the test, which declares streams and plays absent services."""


@dataclass(frozen=True)
class Guarded:
    """A running server, and the seed of every identity it knows."""

    server: NatsServer
    seeds: Mapping[str, str] = field(repr=False)
    is_used: bool = False
    """Whether an earlier test has left its streams on the server."""
    log_from: int = 0
    """Where in the server's log the test begins, in bytes."""

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def logs(self) -> list[Path]:
        return [self.server.log]

    def settings(self, identity: str, *, postgres_dsn: str | None = None, drain_grace_s: float = 5) -> BusSettings:
        """Return the settings with which an identity connects."""
        return BusSettings(
            nats_url=self.url,
            nats_seed=self.seeds[identity],
            # Who administers is a user of the account of the streams, whatever service it plays.
            nats_accounts=identity != ADMIN,
            postgres_dsn=postgres_dsn,
            drain_grace_s=drain_grace_s,
        )

    def refusals(self) -> list[str]:
        """Return what the server refused an identity, in the server's words."""
        said = [log.read_bytes()[self.log_from :].decode(errors="replace") for log in self.logs]
        lines = [line for log in said for line in log.splitlines()]
        return [line for line in lines if " Violation " in line]


@cache
def identity_seeds() -> Mapping[str, str]:
    """Return a key for every identity that there is: the same in all tests of a process."""
    return MappingProxyType({name: _seed() for name in (*IDENTITIES, ADMIN)})


def config(store_dir: Path, seeds: Mapping[str, str], *, sync_interval: str = "2m") -> str:
    """Return the configuration of a server that knows the identities, and an anonymous client."""
    return minimal_config(store_dir, sync_interval=sync_interval) + _accounts(tuple(seeds.items()))


@cache
def _accounts(seeds: tuple[tuple[str, str], ...]) -> str:
    keys = {name: _public_key(seed) for name, seed in seeds}
    return render_accounts(keys, admin_key=keys.pop(ADMIN))


def _seed() -> str:
    return nkeys.encode_seed(secrets.token_bytes(32), nkeys.PREFIX_BYTE_USER).decode()


def _public_key(seed: str) -> str:
    public: bytes = nkeys.from_seed(seed.encode()).public_key  # pyright: ignore[reportAssignmentType]
    return public.decode()
