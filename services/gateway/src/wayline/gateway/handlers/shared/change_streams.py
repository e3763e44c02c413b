"""The open streams on which MCP clients are told of changes, by their sessions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from wayline.contracts.mcp_clients import Watching, WatchResource


class Watcher(Protocol):
    """Tells one client of changes."""

    async def watch(self, uri: str, *, on: bool) -> int:
        """Tell of a resource, or no longer; return of how many it tells. Raises Reject for one that there is not."""
        ...


class ChangeStreams:
    """The streams that this process serves; the newest of a session hears what the client subscribes to."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], Watcher] = {}

    @contextmanager
    def serving(self, tenant: str, session: str, watcher: Watcher) -> Iterator[None]:
        """Let a session's stream be found while it is open."""
        key = tenant, session
        self._open[key] = watcher
        try:
            yield
        finally:
            if self._open.get(key) is watcher:
                del self._open[key]

    async def on_watch(self, request: WatchResource) -> Watching | None:
        """Pass a subscription to the stream of its session; None: another process serves it, or none does."""
        watcher = self._open.get((request.tenant, request.session))
        return None if watcher is None else Watching(watched=await watcher.watch(request.uri, on=request.on))
