"""Whose ticket comes next where several tenants wait in one lane: each in proportion to its weight. Pure.

Worst-case fair weighted queueing (WF2Q+). Each tenant has a time at which its next ticket is due, on a clock that goes
on by one share with each ticket. Of the tenants whose ticket is due, the one comes whose next is due first. So none is
a whole ticket ahead of its share or behind it, and a heavy tenant's tickets are spread between those of light ones.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field

ROUNDING = 1e-9
"""Two times that differ by less are the same."""


@dataclass(frozen=True, slots=True)
class WaitingTenant:
    """A tenant's tickets that may come next."""

    weight: int
    tickets: int


@dataclass(frozen=True, slots=True)
class FairOrder:
    """How far each tenant has come on the clock of a lane."""

    clock: float = 0.0
    due: Mapping[str, float] = field(default_factory=dict)
    """When each tenant's next ticket is due. One that is not in here begins now: an idle tenant saves nothing up."""
    weights: Mapping[str, int] = field(default_factory=dict)
    """By which these times were reckoned."""


def charge(order: FairOrder, waiting: Mapping[str, WaitingTenant], tenant: str, *, tickets: int) -> FairOrder:
    """Return the order after tickets of a tenant that began without being given their turn."""
    due = _joined(order, waiting)
    due[tenant] += tickets / waiting[tenant].weight
    clock = order.clock + tickets / sum(one.weight for one in waiting.values())
    return _kept(max(clock, min(due[name] for name in waiting)), due, waiting, order)


def next_turns(
    order: FairOrder, waiting: Mapping[str, WaitingTenant], *, most: int, until: str | None = None
) -> tuple[list[str], FairOrder]:
    """Return whose tickets come next, one tenant a ticket, and the order after them; none once it is `until`'s turn."""
    due, left = _joined(order, waiting), {tenant: one.tickets for tenant, one in waiting.items() if one.tickets > 0}
    together = sum(waiting[tenant].weight for tenant in left)
    later = [(due[tenant], tenant) for tenant in left]
    heapq.heapify(later)
    now: list[tuple[float, str]] = []
    clock, turns = order.clock, list[str]()
    while len(turns) < most and left:
        if not now and later and later[0][0] > clock + ROUNDING:
            clock = later[0][0]
        while later and later[0][0] <= clock + ROUNDING:
            at, tenant = heapq.heappop(later)
            heapq.heappush(now, (at + 1 / waiting[tenant].weight, tenant))
        ends, tenant = now[0]
        if tenant == until:
            break
        heapq.heappop(now)
        turns.append(tenant)
        due[tenant] = ends
        clock += 1 / together
        left[tenant] -= 1
        if left[tenant]:
            heapq.heappush(later, (ends, tenant))
        else:
            del left[tenant]
            together -= waiting[tenant].weight
    still = {tenant: waiting[tenant] for tenant in left}
    return turns, _kept(clock, due, still, FairOrder(weights={**order.weights, **_weights(waiting)}))


def _weights(waiting: Mapping[str, WaitingTenant]) -> dict[str, int]:
    return {tenant: one.weight for tenant, one in waiting.items()}


def _joined(order: FairOrder, waiting: Mapping[str, WaitingTenant]) -> dict[str, float]:
    """Return when each ticket is due. Who is a part of a ticket ahead or behind is so by the weight of now, too."""
    due = dict(order.due)
    for tenant, one in waiting.items():
        before = order.weights.get(tenant, one.weight)
        if tenant not in due or before != one.weight:
            ahead = due.get(tenant, order.clock) - order.clock
            due[tenant] = order.clock + ahead * before / one.weight
    return due


def _kept(clock: float, due: Mapping[str, float], waiting: Mapping[str, WaitingTenant], before: FairOrder) -> FairOrder:
    """Return an order that remembers who waits, and who is ahead of its share: to leave and come back is no gain."""
    weights = {**before.weights, **_weights(waiting)}
    kept = {tenant: at for tenant, at in due.items() if tenant in waiting or at > clock + ROUNDING}
    return FairOrder(clock, kept, {tenant: weights[tenant] for tenant in kept if tenant in weights})
