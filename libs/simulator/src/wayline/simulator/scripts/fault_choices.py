"""Which requests go wrong: on demand, or at a seeded rate."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from wayline.simulator.scripts.faults import NO_FAULT, Fault
from wayline.simulator.scripts.script import Asked

Faults = Callable[[Asked], Fault]


def no_faults(asked: Asked) -> Fault:
    return NO_FAULT


def seeded(seed: int, rate: float, kinds: Sequence[Fault]) -> Faults:
    """Pick a fault for a share of the requests, by seed and attempt id: the same ones in every run."""

    def fault(asked: Asked) -> Fault:
        draw = hashlib.sha256(f"{seed}:{asked.attempt or asked.number}".encode()).digest()
        if int.from_bytes(draw[:8]) / 2**64 >= rate:
            return NO_FAULT
        return kinds[int.from_bytes(draw[8:16]) % len(kinds)]

    return fault
