"""Look-ups of names whose name servers never answer."""

from __future__ import annotations

import asyncio
import threading

import pytest

from wayline.guarded_http.lookups import (
    LOOKUPS_MAX,
    LOOKUPS_PER_DOMAIN_MAX,
    WAITING_PER_DOMAIN_MAX,
    Found,
    Lookups,
    TooManyLookups,
    looked_up_for,
)
from wayline.testkit import until


class Resolver:
    """A system's resolver that answers for some names only when it is told to."""

    def __init__(self, *, hangs: str) -> None:
        self.begun: list[str] = []
        self.told = threading.Event()
        self._hangs = hangs

    def look_up(self, host: str, port: int) -> Found:
        self.begun.append(host)
        if host.endswith(self._hangs):
            self.told.wait(30)
        return [(2, 1, 6, "", (host, port))]


def answer(host: str, port: int) -> Found:
    return [(2, 1, 6, "", (host, port))]


async def test_a_domain_that_hangs_stops_no_other_lookup():
    resolver = Resolver(hangs=".tarpit.example")
    lookups = Lookups(resolver.look_up)
    hanging = [asyncio.create_task(lookups.addresses(f"n{n}.tarpit.example", 80)) for n in range(20)]
    await until(lambda: len(resolver.begun) == LOOKUPS_PER_DOMAIN_MAX, why="its share of look-ups has begun")
    for task in hanging[:2]:
        task.cancel()

    assert await lookups.addresses("other.test", 443) == answer("other.test", 443)
    assert len(resolver.begun) == LOOKUPS_PER_DOMAIN_MAX + 1
    resolver.told.set()
    ended = await asyncio.gather(*hanging, return_exceptions=True)
    assert [one for one in ended if not isinstance(one, BaseException)] == [
        answer(f"n{n}.tarpit.example", 80) for n in range(2, 20)
    ]


async def test_many_who_want_one_name_have_it_looked_up_once():
    resolver = Resolver(hangs="api.example.com")
    lookups = Lookups(resolver.look_up)
    wanted = [asyncio.create_task(lookups.addresses("api.example.com", 443)) for _ in range(20)]
    await until(lambda: resolver.begun, why="the look-up has begun")
    wanted[0].cancel()
    resolver.told.set()

    ended = await asyncio.gather(*wanted, return_exceptions=True)
    assert ended[1:] == [answer("api.example.com", 443)] * 19
    assert resolver.begun == ["api.example.com"]


async def test_one_too_many_of_a_domain_is_refused_at_once():
    resolver = Resolver(hangs=".tarpit.example")
    lookups = Lookups(resolver.look_up)
    most = LOOKUPS_PER_DOMAIN_MAX + WAITING_PER_DOMAIN_MAX
    hanging = [asyncio.create_task(lookups.addresses(f"n{n}.tarpit.example", 80)) for n in range(most)]
    await asyncio.sleep(0)

    with pytest.raises(TooManyLookups):
        await lookups.addresses("more.tarpit.example", 80)
    # Who waits no longer takes no place.
    hanging[-1].cancel()
    await asyncio.wait(hanging[-1:])
    last = asyncio.create_task(lookups.addresses("more.tarpit.example", 80))
    resolver.told.set()
    assert await last == answer("more.tarpit.example", 80)
    await asyncio.gather(*hanging, return_exceptions=True)


@pytest.mark.parametrize(
    "error", [OSError("no such name"), UnicodeError("label too long"), ValueError("embedded null character")]
)
async def test_a_lookup_that_fails_is_an_error_of_the_system(error):
    def look_up(host: str, port: int):
        raise error

    with pytest.raises(OSError, match=str(error)):
        await Lookups(look_up).addresses("a.test", 80)


async def test_tenants_with_many_domains_that_hang_leave_places_to_another():
    resolver = Resolver(hangs=".tarpit")
    lookups = Lookups(resolver.look_up)
    hanging = list[asyncio.Task[Found]]()
    for tenant in ("a", "b", "c"):
        with looked_up_for(tenant):
            names = [f"{name}.{tenant}{domain}.tarpit" for domain in range(90) for name in range(4)]
            hanging += [asyncio.create_task(lookups.addresses(name, 80)) for name in names]
    await asyncio.sleep(0)
    assert 60 < len(resolver.begun) <= LOOKUPS_MAX * 3 / 4

    with looked_up_for("quiet"):
        assert await lookups.addresses("other.test", 443) == answer("other.test", 443)
    resolver.told.set()
    await asyncio.gather(*hanging, return_exceptions=True)


async def test_one_domain_that_hangs_for_a_tenant_answers_another():
    resolver = Resolver(hangs="slow.co.test")
    lookups = Lookups(resolver.look_up)
    with looked_up_for("a"):
        hanging = [asyncio.create_task(lookups.addresses(f"n{n}.slow.co.test", 80)) for n in range(20)]
    await until(lambda: len(resolver.begun) == LOOKUPS_PER_DOMAIN_MAX, why="its share of look-ups has begun")

    with looked_up_for("b"):
        assert await lookups.addresses("shop.co.test", 443) == answer("shop.co.test", 443)
    resolver.told.set()
    await asyncio.gather(*hanging, return_exceptions=True)
