"""An installation's own way out: its proxy, what is reached past it, and its own certificate authority."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

import httpx2
import pytest

from wayline.guarded_http import AddressPolicy, Blocked, GuardedClient, NotConnected
from wayline.guarded_http.outbound import Outbound
from wayline.guarded_http.proxy import GuardedProxy
from wayline.simulator.website import Page, Website

from .test_client import LOOPBACK, Names, certificates, website

MANY = 10_000_000
METADATA = ip_address("169.254.169.254")


async def unknown(host: str, port: int):
    raise OSError("no name server here")


async def test_an_unknown_name_goes_through_the_proxy_the_inside_past_it():
    asked = Names([LOOPBACK])
    async with website(page=Page("outside")) as outside, website(page=Page("inside")) as inside:
        policy = AddressPolicy.of([f"127.0.0.1:{outside.port}"])
        async with GuardedProxy(policy, bytes_max=MANY, resolver=asked).serving() as port:
            allowed = AddressPolicy.of([f"127.0.0.1:{inside.port}"], ports=(outside.port,))
            client = GuardedClient(allowed, proxy=f"http://127.0.0.1:{port}", resolver=unknown)
            far = await client.get(outside.url("/page", host="wiki.example"))
            near = await client.get(inside.url("/page"))
            await client.close()

    assert (far.content, near.content) == (b"outside", b"inside")
    # The proxy was asked for the one alone: it may not reach the other.
    assert asked.asked == ["wiki.example"]


@pytest.mark.parametrize("address", [LOOPBACK, METADATA])
async def test_a_name_of_the_inside_is_not_sent_to_the_proxy(address):
    seen = Names([LOOPBACK])
    async with GuardedProxy(AddressPolicy(), bytes_max=MANY, resolver=seen).serving() as port:
        client = GuardedClient(proxy=f"http://127.0.0.1:{port}", resolver=Names([address]))
        for url in ("http://wiki.example/", f"http://{address}/"):
            with pytest.raises(Blocked):
                await client.get(url)
        await client.close()

    assert seen.asked == []


async def test_a_tunnel_that_the_proxy_refuses_is_no_connection():
    async with GuardedProxy(AddressPolicy(), bytes_max=MANY, resolver=Names([LOOPBACK])).serving() as port:
        client = GuardedClient(proxy=f"http://127.0.0.1:{port}", resolver=unknown)
        with pytest.raises(NotConnected, match="the installation's proxy: 403"):
            await client.get("https://wiki.example/")
        await client.close()


async def test_a_programs_proxy_passes_on_through_the_installations():
    asked = Names([LOOPBACK])
    async with website(page=Page("outside")) as outside, website(page=Page("inside")) as inside:
        reached = AddressPolicy.of([f"127.0.0.1:{outside.port}"])
        async with GuardedProxy(reached, bytes_max=MANY, resolver=asked).serving() as port:
            outbound = Outbound(f"http://user:p%40ss@127.0.0.1:{port}")
            allowed = AddressPolicy.of([f"127.0.0.1:{inside.port}"], ports=(outside.port,))
            proxy = GuardedProxy(allowed, bytes_max=MANY, resolver=unknown, outbound=outbound)
            async with proxy.serving() as own, httpx2.AsyncClient(proxy=f"http://127.0.0.1:{own}") as program:
                far = await program.get(outside.url("/page", host="wiki.example"))
                near = await program.get(inside.url("/page"))
                refused = await program.get("http://169.254.169.254/")

    assert (far.text, near.text, refused.status_code) == ("outside", "inside", 403)
    assert asked.asked == ["wiki.example"]


async def test_an_installations_certificate_authority_is_trusted(tmp_path: Path):
    server, _ = certificates(tmp_path, "wiki.example")
    async with Website({"/page": Page("hello")}, tls=server) as site:
        policy = AddressPolicy.of([f"127.0.0.1:{site.port}"])
        client = GuardedClient(policy, resolver=Names([LOOPBACK]), ca_file=str(tmp_path / "certificate.pem"))
        answer = await client.get(site.url("/page", host="wiki.example"))
        await client.close()

    assert answer.content == b"hello"
