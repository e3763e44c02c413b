"""A network between named nodes of this machine, to be cut, slowed and made lossy in each direction by itself.

Its links are TCP proxies in a process of their own: this takes no root, and a test that is busy delays nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from wayline.embedded.ports import LOOPBACK, free_port, is_free
from wayline.embedded.process import Child
from wayline.testkit.fork_server import fork
from wayline.testkit.waiting import until

SERVE = "wayline.testkit.link_process:serve"
TOLD_WITHIN_S = 10.0
Ways = dict[tuple[str, str], dict[str, Any]]


@dataclass
class Network:
    """Links between nodes: each has a port that leads to another node's own; whole until something is done to it."""

    log: Path
    seed: int = 0
    control: int = field(default_factory=free_port)
    process: Child | None = field(default=None, repr=False)
    _ways: Ways = field(default_factory=dict)
    _telling: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)
    _links: dict[tuple[str, str, int], int] = field(default_factory=dict)

    async def start(self) -> Network:
        """Start the process of the links, with those that were asked for already."""
        self.process = await asyncio.to_thread(fork, SERVE, self.control, self.seed, log=self.log)
        await until(lambda: not is_free(self.control), why="the network's process listens")
        await self._tell(links=[(*ends, port, there) for (*ends, there), port in self._links.items()])
        return self

    async def stop(self) -> None:
        if self.process is not None:
            await self.process.kill()

    def link(self, source: str, target: str, port: int) -> int:
        """Return the port on which a node reaches another's port; to be asked for before the start."""
        if (source, target, port) not in self._links:
            assert self.process is None, "links are made before the network starts"
            self._links[source, target, port] = free_port()
        return self._links[source, target, port]

    async def cut(self, source: Iterable[str], target: Iterable[str], *, one_way: bool = False) -> None:
        """Let nothing arrive between two sides, or nothing at the second; what was sent arrives when it is healed."""
        await self._change(source, target, one_way=one_way, down=True)

    async def slow(self, source: Iterable[str], target: Iterable[str], *, delay_s: float) -> None:
        """Have everything between two sides arrive so much later, each way."""
        await self._change(source, target, one_way=False, delay_s=delay_s)

    async def lose(self, source: Iterable[str], target: Iterable[str], *, share: float, one_way: bool = False) -> None:
        """Drop a share of what is sent between two sides, or to the second alone: it arrives when TCP repeats it."""
        await self._change(source, target, one_way=one_way, lost=share)

    async def reset(self, source: Iterable[str], target: Iterable[str]) -> None:
        """Break the connections between two sides; new ones can be made, where nothing is cut."""
        pairs = [(one, other) for one in source for other in tuple(target)]
        await self._tell(reset=[*pairs, *((other, one) for one, other in pairs)])

    async def heal(self) -> None:
        """Have everything arrive at once again, also what was kept."""
        self._ways.clear()
        await self._say()

    async def _change(self, source: Iterable[str], target: Iterable[str], *, one_way: bool, **how: Any) -> None:
        sides = (tuple(source), tuple(target))
        for one in sides[0]:
            for other in sides[1]:
                if one != other:
                    self._ways.setdefault((one, other), {}).update(how)
                    if not one_way:
                        self._ways.setdefault((other, one), {}).update(how)
        await self._say()

    async def _say(self) -> None:
        await self._tell(ways=[(*ends, way) for ends, way in self._ways.items()])

    async def _tell(self, **what: Any) -> None:
        async with self._telling, asyncio.timeout(TOLD_WITHIN_S):
            reader, writer = await asyncio.open_connection(LOOPBACK, self.control)
            writer.write(orjson.dumps(what) + b"\n")
            assert await reader.readline() == b"done\n", f"the network was not changed; see {self.log}"
            writer.close()
