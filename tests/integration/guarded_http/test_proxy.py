"""The proxy of a browser on real sockets: what a page reaches through it, and what it does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from wayline.guarded_http import AddressPolicy
from wayline.guarded_http.proxy import CONNECTIONS_MAX, WAITING_MAX, GuardedProxy
from wayline.simulator.website import Page, Website

from .test_client import LOOPBACK, PUBLIC, Names, redirect, website

MANY = 10_000_000


@asynccontextmanager
async def browsing(*sites: Website, bytes_max: int = MANY, **more: Any) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield a client whose requests all go through a proxy that reaches these sites alone."""
    policy = AddressPolicy.of([f"127.0.0.1:{site.port}" for site in sites])
    async with GuardedProxy(policy, bytes_max=bytes_max, **more).serving() as port:
        async with httpx2.AsyncClient(proxy=f"http://127.0.0.1:{port}", timeout=20) as client:
            yield client


async def tunnel(port: int, to: str) -> bytes:
    """Ask a proxy for a tunnel, and return the first line of its answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n".encode())
    try:
        return await asyncio.wait_for(reader.readline(), 20)
    finally:
        writer.close()


async def test_a_page_is_passed_on_without_headers_of_the_proxy():
    async with website(page=Page("hello")) as site, browsing(site) as client:
        headers = {"Accept-Language": "de", "Proxy-Authorization": "Basic c2VjcmV0"}
        answer = await client.get(site.url("/page?a=1"), headers=headers)

    [seen] = site.seen
    assert (answer.status_code, answer.text, seen.path) == (200, "hello", "/page?a=1")
    assert seen.headers["accept-language"] == "de"
    assert not any(name.lower().startswith("proxy-") for name in seen.headers)


async def test_a_host_named_in_a_header_is_not_passed_on():
    async with website(page=Page("hello")) as site, browsing(site) as client:
        await client.get(site.url("/page"), headers={"Host": "other.example"})

    [seen] = site.seen
    assert seen.headers["host"] == f"127.0.0.1:{site.port}"


async def test_a_tunnel_reaches_an_allowed_host_and_no_other():
    async with website(page=Page("hello")) as site, website() as inside:
        policy = AddressPolicy.of([f"127.0.0.1:{site.port}"])
        async with GuardedProxy(policy, bytes_max=MANY).serving() as port:
            allowed = await tunnel(port, f"127.0.0.1:{site.port}")
            refused = [await tunnel(port, to) for to in (f"127.0.0.1:{inside.port}", "169.254.169.254:80", "[::1]:443")]

    assert b" 200 " in allowed
    assert [b" 403 " in line for line in refused] == [True] * 3


async def test_a_redirect_to_the_inside_is_refused_at_the_next_hop():
    async with website() as inside:
        async with website(page=redirect(inside.url("/secret"))) as site, browsing(site) as client:
            answer = await client.get(site.url("/page"), follow_redirects=True)

    assert (answer.status_code, inside.seen) == (403, [])
    assert "may not be reached" in answer.text or "may not be used" in answer.text


@pytest.mark.parametrize("addresses", [[LOOPBACK], [PUBLIC, LOOPBACK]], ids=["inside", "one of two inside"])
async def test_a_name_with_an_inside_address_is_refused(addresses: list[Any]):
    names = Names(addresses)
    async with website(page=Page("secret")) as site:
        policy = AddressPolicy(ports=(site.port,))
        async with GuardedProxy(policy, bytes_max=MANY, resolver=names).serving() as port:
            async with httpx2.AsyncClient(proxy=f"http://127.0.0.1:{port}", timeout=20) as client:
                refused = await client.get(f"http://evil.example:{site.port}/page")

    assert (refused.status_code, site.seen, names.asked) == (403, [], ["evil.example"])


async def test_what_is_no_request_to_a_proxy_is_refused():
    async with GuardedProxy(AddressPolicy(), bytes_max=MANY).serving() as port:
        for sent in (b"GET / HTTP/1.1\r\n\r\n", b"nonsense\r\n\r\n", b"GET ftp://example.org/ HTTP/1.1\r\n\r\n"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            assert b" 403 " in await asyncio.wait_for(reader.readline(), 20)
            writer.close()


async def test_all_connections_together_bring_no_more_than_allowed():
    async with website(page=Page(b"x" * 1_000_000)) as site, browsing(site, bytes_max=1_500_000) as client:
        whole = await client.get(site.url("/page"))
        with pytest.raises(httpx2.TransportError):
            await client.get(site.url("/page"))

    assert len(whole.content) == 1_000_000


async def test_a_connection_above_those_that_may_wait_is_closed():
    async with GuardedProxy(AddressPolicy(), bytes_max=MANY).serving() as port:
        waiting = [await asyncio.open_connection("127.0.0.1", port) for _ in range(CONNECTIONS_MAX + WAITING_MAX)]

        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await asyncio.wait_for(reader.read(), 20) == b""
        for _, other in [*waiting, (reader, writer)]:
            other.close()
