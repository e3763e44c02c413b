"""What `tools` and `follow` let a client do, on a server with the rendered accounts: serve its own tenant alone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import nats
import pytest
from nats.aio.client import Client as Connection
from nats.aio.msg import Msg
from nats.errors import NoRespondersError

from wayline.chassis.access.accounts import render_accounts
from wayline.chassis.access.clients import Client, Scope
from wayline.chassis.access.permissions import IDENTITIES
from wayline.embedded import NatsServer, minimal_config
from wayline.standalone.setup.credentials import ADMIN, Credentials, load_credentials
from wayline.testkit import known_to_server, until
from wayline.testkit.fixtures import run

REGISTRY = "tool_registry"
CLIENTS = {
    "acme": Client("acme", frozenset({Scope.TOOLS})),
    "rival": Client("rival", frozenset({Scope.TOOLS})),
    "shop": Client("acme", frozenset({Scope.SUBMIT, Scope.SIGNAL, Scope.APPROVE, Scope.FOLLOW})),
}
HEARTBEATS = 20


class Users:
    """Connections of the registry and of clients, with what the server refused each."""

    def __init__(self, server: NatsServer, credentials: Credentials, stack: AsyncExitStack) -> None:
        self._server = server
        self._credentials = credentials
        self._stack = stack
        self.refusals: dict[str, list[str]] = {}

    async def connect(self, name: str) -> Connection:
        refused = self.refusals.setdefault(name, [])

        async def note(error: Exception) -> None:
            refused.append(str(error))

        inbox = {"inbox_prefix": IDENTITIES[name].inbox} if name in IDENTITIES else {}
        nc = await nats.connect(
            self._server.url,
            nkeys_seed_str=self._credentials.seeds[name],
            error_cb=note,
            allow_reconnect=False,
            **inbox,
        )
        self._stack.push_async_callback(nc.close)
        return nc

    async def refused(self, name: str, subject: str) -> None:
        """Wait until the server refuses an identity a subject."""
        await until(
            lambda: any(f'"{subject}"' in one for one in self.refusals[name]), why=f"{name} is refused {subject}"
        )


@pytest.fixture(scope="module")
def server(server_dir: Path) -> Iterator[tuple[NatsServer, Credentials]]:
    home = server_dir / "tools-scope"
    home.mkdir()
    credentials = load_credentials(home / "keys.json", identities=[*IDENTITIES, ADMIN, *CLIENTS], roles=[])
    keys = credentials.public_keys()
    clients = [Client(one.tenant, one.scopes, keys[name]) for name, one in CLIENTS.items()]
    accounts = render_accounts({name: keys[name] for name in IDENTITIES}, admin_key=keys[ADMIN], clients=clients)
    server = NatsServer(home / "nats", config=minimal_config(home / "nats" / "js") + accounts)
    run(server.start())
    yield server, credentials
    run(server.stop())


@pytest.fixture
async def users(server: tuple[NatsServer, Credentials]) -> AsyncIterator[Users]:
    async with AsyncExitStack() as stack:
        yield Users(*server, stack)


async def test_a_service_announces_and_answers_with_heartbeats(users: Users):
    registry, acme = await users.connect(REGISTRY), await users.connect("acme")
    announced = await registry.subscribe("tools.announce.*.*")
    await known_to_server(registry)

    async def work(message: Msg) -> None:
        for _ in range(HEARTBEATS):
            await message.respond(b"")
        await message.respond(b"done")

    await acme.subscribe("tools.invoke.acme.orders", "orders", cb=work)
    await known_to_server(acme)
    await acme.publish("tools.announce.acme.orders", b"{}")
    assert (await announced.next_msg(timeout=5)).subject == "tools.announce.acme.orders"
    inbox = registry.new_inbox()
    answers = await registry.subscribe(inbox)
    await registry.publish("tools.invoke.acme.orders", b"{}", reply=inbox)

    bodies = [(await answers.next_msg(timeout=5)).data for _ in range(HEARTBEATS + 1)]
    assert bodies == [b""] * HEARTBEATS + [b"done"]


async def test_a_registry_that_starts_is_heard_by_services(users: Users):
    registry, acme, rival = [await users.connect(name) for name in (REGISTRY, "acme", "rival")]
    heard = [await nc.subscribe("tools.wanted") for nc in (acme, rival)]
    await known_to_server(acme, rival)

    await registry.publish("tools.wanted", b"{}")

    assert [(await one.next_msg(timeout=5)).data for one in heard] == [b"{}", b"{}"]


async def test_only_the_services_of_a_tenant_hear_of_its_cancelled_calls(users: Users):
    registry, acme, rival = [await users.connect(name) for name in (REGISTRY, "acme", "rival")]
    mine, theirs = await acme.subscribe("tools.stop.acme.orders"), await rival.subscribe("tools.stop.rival.orders")
    await known_to_server(acme, rival)

    for tenant in ("acme", "rival"):
        await registry.publish(f"tools.stop.{tenant}.orders", tenant.encode())

    assert [(await one.next_msg(timeout=5)).data for one in (mine, theirs)] == [b"acme", b"rival"]


async def test_a_call_without_a_service_is_refused_at_once(users: Users):
    registry = await users.connect(REGISTRY)

    with pytest.raises(NoRespondersError):
        await registry.request("tools.invoke.acme.orders", b"{}", timeout=10)


async def test_a_service_can_neither_announce_nor_hear_for_another_tenant(users: Users):
    rival = await users.connect("rival")

    await rival.publish("tools.announce.acme.orders", b"{}")
    await users.refused("rival", "tools.announce.acme.orders")
    for subject in ("tools.invoke.acme.orders", "tools.invoke.>", "tools.announce.>", "tools.stop.acme.orders"):
        await rival.subscribe(subject)
        await users.refused("rival", subject)


async def test_a_client_without_the_scope_neither_announces_nor_serves(users: Users):
    shop = await users.connect("shop")

    await shop.publish("tools.announce.acme.orders", b"{}")
    await users.refused("shop", "tools.announce.acme.orders")
    for subject in ("tools.invoke.acme.orders", "tools.wanted", "tools.stop.acme.orders"):
        await shop.subscribe(subject)
        await users.refused("shop", subject)


async def test_the_scope_tools_alone_submits_follows_and_calls_nothing(users: Users):
    acme = await users.connect("acme")

    for subject in (
        "jobs.submit.acme",
        "signals.acme.j1",
        "approvals.acme.j1",
        "tools.call.acme",
        "tools.invoke.acme.x",
    ):
        await acme.publish(subject, b"{}")
        await users.refused("acme", subject)
    for subject in ("live.acme.*", "deltas.acme.*"):
        await acme.subscribe(subject)
        await users.refused("acme", subject)


async def test_a_service_cannot_publish_on_a_reply_it_was_not_given(users: Users):
    acme = await users.connect("acme")

    await acme.publish(f"{IDENTITIES[REGISTRY].inbox}.1", b"{}")

    await users.refused("acme", f"{IDENTITIES[REGISTRY].inbox}.1".lower())


@pytest.mark.parametrize("asked", ["jobs.finished", "jobs.events"])
async def test_only_the_scope_follow_asks_for_jobs_of_its_tenant(users: Users, asked: str):
    tracing, shop, acme = [await users.connect(name) for name in ("tracing", "shop", "acme")]

    async def answer(message: Msg) -> None:
        await message.respond(message.subject.encode())

    await tracing.subscribe(f"{asked}.*", cb=answer)
    await known_to_server(tracing)

    async def answered() -> bytes:
        try:
            return (await shop.request(f"{asked}.acme", b"{}", timeout=5)).data
        except NoRespondersError:
            # The server makes a subscription known to other accounts a moment later.
            return b""

    assert await until(answered, why="the request is answered") == f"{asked}.acme".encode()
    await shop.publish(f"{asked}.rival", b"{}")
    await users.refused("shop", f"{asked}.rival")
    await acme.publish(f"{asked}.acme", b"{}")
    await users.refused("acme", f"{asked}.acme")
