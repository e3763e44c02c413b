"""A connection that fails is let go at once, and with it what was to be sent."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack, suppress
from ipaddress import ip_address

import httpcore2
import pytest

from wayline.guarded_http import AddressPolicy
from wayline.guarded_http.guarded_transport import CheckedConnections
from wayline.testkit.cycles import ours, uncollected, whose


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["127.0.0.2", "127.0.0.1"]], ids=["refused", "the second works"])
async def test_a_connection_that_fails_leaves_no_cycles(addresses: list[str], free_tcp_port: int):
    async def resolve(_host: str, _port: int):
        return [ip_address(address) for address in addresses]

    policy = AddressPolicy.of([f"127.0.0.0/8:{free_tcp_port}", "host.example:*"])
    connections = CheckedConnections(policy, resolve)

    async def connect() -> None:
        with suppress(httpcore2.ConnectError):
            stream = await connections.connect_tcp("host.example", free_tcp_port)
            await stream.aclose()

    async with AsyncExitStack() as stack:
        if len(addresses) > 1:
            server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", free_tcp_port)
            await stack.enter_async_context(server)
        await connect()
        with uncollected() as found:
            await connect()

    assert Counter(filter(ours, map(whose, found))) == {}
