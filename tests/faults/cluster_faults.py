"""What befalls a cluster while jobs run: each fault by a draw of a seed, one after the other."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from wayline.testkit.nats_cluster import NAMES, TEST
from wayline.testkit.postgres_pair import PostgresPair

from .clusters import cluster_of, cut_off, leader_of, network_of, until_healed
from .platform import FaultPlatform
from .test_outages import lasts
from .zones import POSTGRES

LED = ("EVENTS", "RUN", "SUBMIT", "SIGNALS", "LATER", "OBJ_PAYLOADS")
"""Streams whose leaders are met by faults: each other is led by some server too."""
CUT_MAX_S = 8.0
FROZEN_MAX_S = 4.0
BETWEEN_MAX_S = 1.5
DELAY_S = 0.2
LOST = 0.2


@dataclass
class ClusterFaults:
    """Does as many faults as are asked for; how many it has done tells how many jobs may begin."""

    platform: FaultPlatform
    services: tuple[str, ...]
    draw: random.Random
    pair: PostgresPair | None = None
    """A Postgres whose standby is promoted in the middle."""
    done: Counter[str] = field(default_factory=Counter)

    @property
    def kinds(self) -> dict[Callable[[], Awaitable[None]], int]:
        """Return every fault with how often it is drawn."""
        return {
            self.service_killed: 25,
            self.service_frozen: 10,
            self.server_killed: 15,
            self.server_frozen: 10,
            self.stepped_down: 15,
            self.server_wiped: 3,
            self.server_cut_off: 10,
            self.one_way: 4,
            self.zone_cut_off: 4,
            self.slow: 2,
            self.lossy: 1,
            self.no_postgres: 1,
        }

    async def run(self, faults: int) -> None:
        """Do the faults; each kind once before any is drawn again, where there are enough."""
        kinds = self.kinds
        drawn = list(kinds)[:faults]
        drawn += self.draw.choices(list(kinds), list(kinds.values()), k=faults - len(drawn))
        self.draw.shuffle(drawn)
        if self.pair is not None:
            drawn[len(drawn) // 2 : len(drawn) // 2] = [self.postgres_promoted]
        for fault in drawn:
            print(f"{self.done.total()}: {fault.__name__}", flush=True)
            await fault()
            self.done[fault.__name__] += 1
            await lasts(self.draw.random() * BETWEEN_MAX_S)

    async def service_killed(self) -> None:
        process = self.draw.choice(self.platform.fleet.running(self.draw.choice(self.services)))
        process.kill()
        await process.ended()
        self.platform.spawn_in(self.platform.zone_of[process.pid], process.name)

    async def service_frozen(self) -> None:
        process = self.draw.choice(self.platform.fleet.running(self.draw.choice(self.services)))
        process.pause()
        await lasts(self.draw.random() * FROZEN_MAX_S)
        process.resume()

    async def server_killed(self) -> None:
        server = self.draw.choice(cluster_of(self.platform).servers)
        await server.kill()
        await lasts(self.draw.random() * 2)
        await server.start()

    async def server_frozen(self) -> None:
        server = self.draw.choice(cluster_of(self.platform).servers)
        server.pause()
        await lasts(self.draw.random() * FROZEN_MAX_S)
        server.resume()

    async def stepped_down(self) -> None:
        asked = f"$JS.API.STREAM.LEADER.STEPDOWN.{self.draw.choice(LED)}"
        try:
            await self.platform.bus.nc.request(asked, b"", timeout=2)
        except Exception as error:
            # There may be no leader just now.
            print(f"{asked}: {type(error).__name__}")

    async def server_wiped(self) -> None:
        # One that is behind with one that forgot could be a majority without what both were told.
        await until_healed(self.platform)
        server = self.draw.choice(cluster_of(self.platform).servers)
        await server.kill()
        shutil.rmtree(server.data_dir / "jetstream")
        await server.start()
        await until_healed(self.platform)

    async def server_cut_off(self) -> None:
        await cut_off(self.platform, [await self._victim()])
        await self._lasts_and_heals()

    async def zone_cut_off(self) -> None:
        await cut_off(self.platform, [await self._victim(), self.draw.choice(list(self.platform.zones))])
        await self._lasts_and_heals()

    async def one_way(self) -> None:
        victim = await self._victim()
        others = [node for node in (*NAMES, *self.platform.zones, TEST) if node != victim]
        sides = ([victim], others) if self.draw.random() < 0.5 else (others, [victim])
        await network_of(self.platform).cut(*sides, one_way=True)
        await network_of(self.platform).reset([TEST], [victim])
        await self._lasts_and_heals()

    async def slow(self) -> None:
        nodes = (*NAMES, *self.platform.zones, POSTGRES)
        await network_of(self.platform).slow(nodes, nodes, delay_s=DELAY_S)
        await self._lasts_and_heals()

    async def lossy(self) -> None:
        nodes = (*NAMES, *self.platform.zones)
        await network_of(self.platform).lose([await self._victim()], nodes, share=LOST, one_way=True)
        await self._lasts_and_heals()

    async def no_postgres(self) -> None:
        await network_of(self.platform).cut([self.draw.choice(list(self.platform.zones))], [POSTGRES])
        await self._lasts_and_heals()

    async def postgres_promoted(self) -> None:
        """Have the first Postgres die, and its standby take over a moment later."""
        assert self.pair is not None
        await self.pair.kill()
        await lasts(self.draw.random() * CUT_MAX_S)
        await self.pair.promote()

    async def _victim(self) -> str:
        """Return the leader of the logs half of the time, else any server."""
        if self.draw.random() < 0.5:
            try:
                return await leader_of(self.platform, "EVENTS")
            except Exception as error:
                print(f"no leader is known: {type(error).__name__}")
        return self.draw.choice(NAMES)

    async def _lasts_and_heals(self) -> None:
        await lasts(self.draw.random() * CUT_MAX_S)
        await network_of(self.platform).heal()
