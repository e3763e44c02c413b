"""Gives waiting tickets their turn: in a lane that tenants share, by their weights.

A backlog that one tenant has filled is left to executors: what they take of it is counted, and the tickets of the
others are put in front of it as often as they are due. Where no backlog is in the way, the tickets of all go into it in
turn. A ticket is published where it comes next before it is deleted where it waited: it is in one place, or for a
moment in two, where the second one is stale. Executors never see the waiting one, so that nobody holds a job by it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from secrets import token_hex

import orjson
import structlog
from nats.js import errors as js_errors
from nats.js.api import ConsumerInfo

from wayline.chassis import Bus, Failpoint, Periodic, reach
from wayline.chassis.connection.bus import AWAY
from wayline.chassis.topology import RUN_BACKLOGS, RUN_WAITING, Consumer
from wayline.contracts import headers as h
from wayline.contracts.errors import Unavailable
from wayline.contracts.jobs import backlog_of, waiting_of
from wayline.journal import Stored, leader_next
from wayline.router.fair_share.backlogs import STREAM, Backlogs, first_tenant, waiting_tickets
from wayline.router.fair_share.fair_order import WaitingTenant, charge, next_turns
from wayline.router.fair_share.look_pace import FEED_EVERY_S, LaneCounts, LookPace
from wayline.router.fair_share.share_table import HeldLane, LaneTurns, ShareTable
from wayline.telemetry import metrics

log = structlog.get_logger()

LOOK_EVERY_S = 2.0
"""How often each router looks for tickets that another one left waiting."""
LEFT_FOR_S = 0.5
"""How long a lane is left to another router that has just given turns in it."""
AHEAD_LEAST = 16
"""As many tickets that have been given their turn wait for a slot, at least: executors are not to wait for a look."""
IN_FRONT_LEAST = 4
"""In front of a tenant's backlog, where the single ticket of another tenant comes behind them, they are fewer."""
AHEAD_MOST = 512
DELETE_TIMEOUT_S = 5.0
FOREVER = 10**9
"""The tickets of a tenant that takes its turns by itself."""


@dataclass(frozen=True, slots=True)
class LaneQueues:
    """What stands in a lane at one look."""

    counts: LaneCounts
    owner: str | None
    """Whose queue the backlog is; None: nobody's, or what is in it has been given its turn."""
    waiting: dict[str, int]


class Feeder:
    """Gives turns in every lane; several routers do so one after another."""

    def __init__(self, bus: Bus, table: ShareTable, backlogs: Backlogs, *, shared: bool = True) -> None:
        self._bus = bus
        self._table = table
        self._shared = shared
        self._periodic = Periodic("turns of tenants", self.look, every_s=LOOK_EVERY_S)
        backlogs.waits = self._soon
        self._next: asyncio.TimerHandle | None = None
        self._paces: defaultdict[str, LookPace] = defaultdict(LookPace)
        self._router = token_hex(4)
        self.start = self._periodic.start
        self.stop = self._periodic.stop

    async def look(self) -> None:
        """Give the turns that are due, and come back soon while any ticket waits."""
        pauses = [await self._feed(front) for front in RUN_WAITING]
        if soonest := min((pause for pause in pauses if pause is not None), default=None):
            self._soon(soonest)

    def _soon(self, pause_s: float = FEED_EVERY_S) -> None:
        loop = asyncio.get_running_loop()
        if self._next is not None:
            if loop.time() < self._next.when() <= loop.time() + pause_s and not self._next.cancelled():
                return
            self._next.cancel()
        self._next = loop.call_later(pause_s, self._periodic.now)

    async def _feed(self, front: Consumer) -> float | None:
        """Give the turns of one lane; return after how many seconds it is looked at again; None: nothing waits."""
        loop, pace = asyncio.get_running_loop(), self._paces[front.name]
        if rest_s := pace.rests(now=loop.time()):
            return rest_s
        counts = await self._counts(front)
        metrics.tickets_waiting.labels(front.name).set(counts.waiting if counts else 0)
        if counts is None:
            return None
        if pace.spares(counts, now=loop.time()):
            return FEED_EVERY_S
        async with self._table.held(front.name, by=self._router, left_s=LEFT_FOR_S) as held:
            if held is None:
                # Another router gives turns here, and all know how far the tenants have come.
                return LEFT_FOR_S
            # Again: another router may have given turns since.
            if (counts := await self._counts(front)) is None:
                return None
            given, tenants = await self._give_turns(front, held, counts)
        return pace.looked(counts, given=given, tenants=tenants, now=loop.time())

    async def _counts(self, front: Consumer) -> LaneCounts | None:
        """Return what the consumers of a lane tell; None: nothing waits there, or it is not made yet."""
        try:
            waiting = (await self._bus.js.consumer_info(STREAM, RUN_WAITING[front].name)).num_pending
        except js_errors.NotFoundError:
            return None
        if not waiting:
            return None
        backlog = await self._bus.js.consumer_info(STREAM, RUN_BACKLOGS[front].name)
        lane = await self._bus.js.consumer_info(STREAM, front.name)
        (taken, upto), (taken_in_front, _) = _delivered(backlog), _delivered(lane)
        return LaneCounts(taken, upto, taken_in_front, backlog.num_pending or 0, lane.num_pending or 0, waiting)

    async def _give_turns(self, front: Consumer, held: HeldLane, counts: LaneCounts) -> tuple[int, int]:
        """Give the turns of one lane that are due; return how many tickets were moved, and how many tenants waited."""
        before = held.turns
        queues = await self._queues(front, counts, before)
        owner, names = queues.owner, {*queues.waiting, *([queues.owner] if queues.owner else [])}
        weights = await held.weights(names)
        waiting = {
            name: WaitingTenant(weights.get(name, 1), FOREVER if name == owner else queues.waiting[name])
            for name in names
        }
        taken, order = _since(before.taken, counts.taken), before.order
        if owner is not None and taken > before.fed:
            order = charge(order, waiting, owner, tickets=taken - before.fed)
        fed = min(max(0, before.fed - taken), counts.backlog)
        if self._shared and len(names) == 1 and (counts.backlog == 0 or (owner is not None and not fed)):
            # The backlog is its queue, of which executors take by themselves: who comes next takes turns with it. Not
            # while others' tickets that had their turn are in it: then the first one does not tell whose it is.
            turns = [name for name, count in queues.waiting.items() for _ in range(min(AHEAD_MOST, count))]
            moved = await self._move(front.name, backlog_of(front.name), turns)
        else:
            turns, order = next_turns(order, waiting, most=self._room(queues, before), until=owner)
            moved = await self._move(front.name, front.name if owner else backlog_of(front.name), turns)
            fed += 0 if owner else moved
        await held.save(LaneTurns(order, counts.taken, counts.taken_in_front, fed))
        return moved, len(names)

    def _room(self, queues: LaneQueues, before: LaneTurns) -> int:
        """Return how many turns may be given now: what executors take until the next look, and not much more."""
        if not self._shared:
            return AHEAD_MOST
        counts = queues.counts
        taken = _since(before.taken, counts.taken) + _since(before.taken_in_front, counts.taken_in_front)
        ahead = min(AHEAD_MOST, 2 * taken)
        if queues.owner is None:
            return max(0, max(AHEAD_LEAST, ahead) - counts.backlog)
        return max(0, max(IN_FRONT_LEAST, ahead) - counts.front)

    async def _queues(self, front: Consumer, counts: LaneCounts, before: LaneTurns) -> LaneQueues:
        waiting, _ = await waiting_tickets(self._bus, front.name)
        owner = None
        if self._shared and counts.backlog > max(0, before.fed - _since(before.taken, counts.taken)):
            owner = await first_tenant(self._bus, front.name, after=counts.taken_upto)
        return LaneQueues(counts, owner, waiting)

    async def _move(self, lane: str, target: str, turns: list[str]) -> int:
        """Queue a ticket for each turn, in this order; return for how many there was one.

        Raises Full or Unavailable where some could not be moved: they wait until the next look, and not for a soon one.
        """
        wanted: dict[str, int] = defaultdict(int)
        for tenant in turns:
            wanted[tenant] += 1
        found = await asyncio.gather(*(self._oldest(lane, tenant, count) for tenant, count in wanted.items()))
        tickets = dict(zip(wanted, map(iter, found), strict=True))
        moves = [
            self._move_one(ticket, f"jobs.run.{target}.{tenant}")
            for tenant in turns
            if (ticket := next(tickets[tenant], None)) is not None
        ]
        # All of them end before another router may hold the lane.
        ended = await asyncio.gather(*moves, return_exceptions=True)
        for error in ended:
            if error is not None:
                raise error
        return len(ended)

    async def _oldest(self, lane: str, tenant: str, count: int) -> list[Stored]:
        found, start = list[Stored](), 1
        while len(found) < count:
            ticket = await leader_next(self._bus, STREAM, f"jobs.run.{waiting_of(lane)}.{tenant}", start=start)
            if ticket is None:
                break
            found.append(ticket)
            start = ticket.sequence + 1
        return found

    async def _move_one(self, ticket: Stored, subject: str) -> None:
        """Publish a ticket where it comes next, then delete it where it waited."""
        # Another id than the waiting one's, which the stream has seen: of two routers that do so one is heard.
        headers = {name: value for name, value in ticket.headers.items() if not name.startswith("Nats-")}
        headers[h.TURN] = "1"
        headers[h.MSG_ID] = f"{ticket.headers.get(h.MSG_ID, ticket.sequence)}:turn"
        reach(Failpoint.ROUTER_FEED_BEFORE)
        await self._bus.store(subject, ticket.body, headers)
        reach(Failpoint.ROUTER_FEED_AFTER)
        await self._delete(ticket.sequence)
        metrics.turns_given.inc()

    async def _delete(self, sequence: int) -> None:
        request = orjson.dumps({"seq": sequence, "no_erase": True})
        try:
            await self._bus.request(f"{self._bus.api}.STREAM.MSG.DELETE.{STREAM}", request, timeout_s=DELETE_TIMEOUT_S)
        except AWAY:
            raise Unavailable("the bus", detail="a ticket that has had its turn") from None


def _since(before: int | None, now: int) -> int:
    """Return by how much a count has grown; a consumer that was made anew counts from the beginning."""
    return 0 if before is None else max(0, now - before)


def _delivered(consumer: ConsumerInfo) -> tuple[int, int]:
    """Return how many deliveries a consumer has made, and up to which place in the stream."""
    at = consumer.delivered
    return (at.consumer_seq, at.stream_seq) if at else (0, 0)
