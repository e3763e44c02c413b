"""Look-ups of names whose name servers never answer."""

from __future__ import annotations

import asyncio
import threading

import pytest

from wayline.guarded_http.lookups import LOOKUPS_PER_DOMAIN_MAX, Lookups, TooManyLookups
from wayline.testkit import until


async def test_a_domain_that_hangs_stops_no_other_lookup():
    answer, begun = threading.Event(), list[str]()

    def look_up(host: str, port: int):
        begun.append(host)
        if host.endswith(".tarpit.example"):
            answer.wait(30)
        return [(2, 1, 6, "", ("192.0.2.1", port))]

    lookups = Lookups(look_up)
    hanging = [asyncio.create_task(lookups.addresses(f"n{n}.tarpit.example", 80)) for n in range(20)]
    await until(lambda: len(begun) == LOOKUPS_PER_DOMAIN_MAX, why="its share of look-ups has begun")
    for task in hanging[:2]:
        task.cancel()

    assert await lookups.addresses("other.test", 443) == [(2, 1, 6, "", ("192.0.2.1", 443))]
    with pytest.raises(TooManyLookups):
        await lookups.addresses("more.tarpit.example", 80)
    answer.set()
    ended = await asyncio.gather(*hanging, return_exceptions=True)
    kinds = {TooManyLookups: 16, asyncio.CancelledError: 2, list: 2}
    assert {kind: sum(isinstance(one, kind) for one in ended) for kind in kinds} == kinds


@pytest.mark.parametrize("error", [OSError("no such name"), UnicodeError("label too long")])
async def test_a_lookup_that_fails_is_an_error_of_the_system(error):
    def look_up(host: str, port: int):
        raise error

    with pytest.raises(OSError, match=str(error)):
        await Lookups(look_up).addresses("a.test", 80)
