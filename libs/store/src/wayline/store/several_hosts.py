"""Reach one of several hosts, each within a time of its own: the first may be a machine that is gone."""

from __future__ import annotations

import socket
from typing import Any, Final

import asyncpg
from asyncpg.exceptions import TargetServerAttributeNotMatched

from wayline.store.transient_errors import is_away

CONNECT_WITHIN_S: Final = 10.0
"""Of all hosts together."""
GONE_AFTER_S: Final = 25
"""After so long without a word of its machine a connection is lost: a statement waits a minute for its answer."""
CHOOSES: Final = "target_session_attrs="

NoPrimary: Final = TargetServerAttributeNotMatched
"""None of several hosts takes writes, as while a standby is promoted."""
NONE_WRITES: Final = "none of its hosts accepts writes"


def is_unreachable(error: BaseException) -> bool:
    """Return whether a connection that could not be made may be made later."""
    # asyncpg's InterfaceError here: the pool is being closed, because the process ends.
    return isinstance(error, (OSError, asyncpg.InterfaceError, NoPrimary)) or is_away(error)


def split_hosts(dsn: str) -> list[str]:
    """Return an address of each host; one that names its hosts among the parameters stays as it is."""
    scheme, slashes, rest = dsn.partition("://")
    who, at, hosts = rest.partition("/")[0].rpartition("@")
    path = rest.removeprefix(f"{who}{at}{hosts}")
    return [f"{scheme}{slashes}{who}{at}{host}{path}" for host in hosts.split(",")]


class Hosts:
    """The hosts of an address, in the order in which they are tried: the one that was reached last comes first."""

    def __init__(self, dsn: str) -> None:
        self._order = split_hosts(dsn)
        # Where any will do the order is the user's.
        self._moves = CHOOSES in dsn

    async def connect(self, *_: Any, **options: Any) -> Any:
        """Connect to the first that does what the address asks for. Raises the error of the last one."""
        within_s = CONNECT_WITHIN_S / len(self._order)
        last: BaseException | None = None
        try:
            for dsn in tuple(self._order):
                try:
                    # asyncpg's own way through the hosts has one time for all: a silent one leaves the others none.
                    conn = await asyncpg.connect(dsn, **{**options, "timeout": within_s})
                except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, NoPrimary) as error:
                    if not is_unreachable(error):
                        raise
                    last = error
                    continue
                _notice_when_gone(conn)
                if self._moves:
                    self._order.remove(dsn)
                    self._order.insert(0, dsn)
                return conn
            assert last is not None
            raise last
        finally:
            # Kept here it would keep itself and its frames.
            del last


async def connect_once(dsn: str, **options: Any) -> Any:
    """Open one connection to whichever host of an address does what it asks for."""
    return await Hosts(dsn).connect(**options)


def _notice_when_gone(conn: Any) -> None:
    """Have the kernel end a connection whose other machine answers nothing, also while we only listen."""
    sock = conn._transport.get_extra_info("socket")
    # Elsewhere than on Linux the statement's own time-out is all there is.
    if sock is None or sock.family not in {socket.AF_INET, socket.AF_INET6} or not hasattr(socket, "TCP_USER_TIMEOUT"):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, GONE_AFTER_S * 1_000)
