"""All MCP servers together: which tools there are, and whose."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from wayline.tool_registry.adapters.upstream import Upstream
from wayline.tool_registry.catalogue import Tool
from wayline.tool_registry.settings import SEPARATOR


class Upstreams:
    """The registry's servers, the built-in one first."""

    def __init__(self, upstreams: Iterable[Upstream], *, list_within_s: float) -> None:
        self._upstreams = {upstream.name: upstream for upstream in upstreams}
        self._builtin = next(iter(self._upstreams.values()))
        self._list_within_s = list_within_s

    async def start(self) -> None:
        for upstream in self._upstreams.values():
            upstream.start()

    async def stop(self) -> None:
        await asyncio.gather(*(upstream.stop() for upstream in self._upstreams.values()))

    async def tools(self) -> dict[str, Tool]:
        """Every tool by name, after giving servers that were never reached a moment to be."""
        new = [asyncio.create_task(u.tried.wait()) for u in self._upstreams.values() if not u.tried.is_set()]
        if new:
            _, late = await asyncio.wait(new, timeout=self._list_within_s)
            for task in late:
                task.cancel()
        return {name: tool for upstream in self._upstreams.values() for name, tool in upstream.tools.items()}

    async def find(self, name: str) -> tuple[Tool | None, Upstream]:
        """A tool and its server; the server alone if it has no such tool, or has not been reached."""
        server, separator, _ = name.partition(SEPARATOR)
        upstream = self._upstreams.get(server, self._builtin) if separator else self._builtin
        if name not in upstream.tools and not upstream.tried.is_set():
            await self.tools()
        return upstream.tools.get(name), upstream
