"""A credential of the bus works as soon as it is made, allows what its scopes say, and ends when it is revoked."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import nats
import pytest
from nats.aio.client import Client
from nats.errors import Error

from wayline.chassis import Bus, BusSettings
from wayline.chassis.declare import declare
from wayline.embedded import NatsServer, free_port
from wayline.standalone.bus import manage_clients
from wayline.standalone.errors import ClientInvalid
from wayline.standalone.servers.embedded import nats_server
from wayline.standalone.settings import Settings
from wayline.standalone.setup.installation import Installation, ServerAccess, write_environments
from wayline.testkit import until


@dataclass
class EmbeddedBus:
    """An embedded bus as `wayline up` starts it."""

    settings: Settings
    installation: Installation
    server: NatsServer
    access: ServerAccess
    admin: Bus
    lost: list[str] = field(default_factory=list)
    """Who was cut off."""

    async def create(self, name: str, tenant: str, *scopes: str) -> str:
        _, seed, told = await asyncio.to_thread(
            manage_clients.create, name, tenant=tenant, scopes=scopes, settings=self.settings
        )
        assert told.servers == 1
        return seed

    async def revoke(self, name: str) -> None:
        await asyncio.to_thread(manage_clients.revoke, name, settings=self.settings)

    @asynccontextmanager
    async def connected(self, who: str, seed: str | None) -> AsyncIterator[tuple[Client, list[str]]]:
        errors: list[str] = []

        async def note(error: Exception) -> None:
            errors.append(str(error))

        async def cut() -> None:
            self.lost.append(who)

        options = {"nkeys_seed_str": seed} if seed else {}
        nc = await nats.connect(self.server.url, error_cb=note, disconnected_cb=cut, allow_reconnect=False, **options)
        try:
            yield nc, errors
        finally:
            await nc.close()


@pytest.fixture
async def embedded(tmp_path: Path) -> AsyncIterator[EmbeddedBus]:
    settings = Settings(data_dir=tmp_path, nats_port=free_port())
    installation = Installation(tmp_path)
    installation.prepare()
    credentials = installation.load_credentials()
    server = nats_server(installation, settings, credentials)
    await server.start()
    access = ServerAccess(server.url, "postgresql://postgres@127.0.0.1:1/wayline", credentials, own_bus=True)
    write_environments(installation, access)
    admin = await Bus.connect(
        BusSettings(nats_url=server.url, nats_seed=access.seed_of("admin")), service="admin", exit_when_closed=False
    )
    async for _ in declare(admin.js):
        pass
    yield EmbeddedBus(settings, installation, server, access, admin)
    await admin.close()
    await server.kill()


async def refused(nc: Client, errors: list[str], subject: str) -> bool:
    """Publish, and wait until the server says that this client may not."""
    await nc.publish(subject, b"{}")
    await until(lambda: _told(errors, f'publish to "{subject}"'), why=f"the server refuses {subject}")
    return True


def _told(errors: list[str], what: str) -> bool:
    return any(what in error for error in errors)


async def test_a_new_credential_works_at_once_for_its_tenant_only(embedded: EmbeddedBus):
    async with embedded.connected("before", None) as (before, _):
        seed = await embedded.create("shop", "acme", "submit", "signal", "follow")

        async with embedded.connected("shop", seed) as (nc, errors):
            live, others = await nc.subscribe("live.acme.*"), await nc.subscribe("live.default.*")
            inbox = await nc.subscribe(reply := nc.new_inbox())
            ack = await nc.jetstream().publish("jobs.submit.acme", b"{}")
            signalled = await nc.jetstream().publish("signals.acme.j1", b"{}")
            await embedded.admin.js.publish("events.default.j1", b"theirs")
            await embedded.admin.js.publish("events.acme.j1", b"mine")
            await embedded.admin.nc.publish(f"inbox.default.{reply.removeprefix('_INBOX.')}", b"theirs")
            await embedded.admin.nc.publish(f"inbox.acme.{reply.removeprefix('_INBOX.')}", b"mine")

            assert (ack.stream, signalled.stream) == ("SUBMIT", "SIGNALS")
            assert (await live.next_msg(timeout=5)).data == b"mine"
            assert (await inbox.next_msg(timeout=5)).data == b"mine"
            assert await refused(nc, errors, "jobs.submit.default")
            assert await refused(nc, errors, "events.acme.j1")
            assert _told(errors, 'subscription to "live.default.*"')
            assert others.pending_msgs == 0
        # Whoever was there before has noticed nothing.
        assert (await before.jetstream().publish("jobs.submit.default", b"{}")).stream == "SUBMIT"
    assert embedded.lost.count("before") <= 1


@pytest.mark.parametrize(
    ("scope", "may", "may_not"),
    [
        ("submit", ["jobs.submit.acme"], ["signals.acme.j1"]),
        ("signal", ["signals.acme.j1"], ["jobs.submit.acme", "approvals.acme.j1"]),
        ("approve", ["approvals.acme.j1"], ["jobs.submit.acme", "signals.acme.j1"]),
        ("follow", [], ["jobs.submit.acme", "signals.acme.j1"]),
    ],
)
async def test_a_scope_allows_what_it_names_and_no_more(
    embedded: EmbeddedBus, scope: str, may: list[str], may_not: list[str]
):
    seed = await embedded.create("one", "acme", scope)

    async with embedded.connected("one", seed) as (nc, errors):
        await nc.subscribe("live.acme.*")
        for subject in may:
            assert (await nc.jetstream().publish(subject, b"{}")).seq
        assert all([await refused(nc, errors, subject) for subject in may_not])
        assert _told(errors, 'subscription to "live.acme.*"') == (scope != "follow")


async def test_a_revoked_credential_is_cut_off_and_others_go_on(embedded: EmbeddedBus):
    seed, other = await embedded.create("shop", "acme", "submit"), await embedded.create("till", "acme", "submit")

    async with embedded.connected("shop", seed) as (nc, _), embedded.connected("till", other) as (till, _):
        await embedded.revoke("shop")
        await until(lambda: nc.is_closed, why="the revoked client is cut off")

        assert (await till.jetstream().publish("jobs.submit.acme", b"{}")).seq
        assert "till" not in embedded.lost
    with pytest.raises(Error, match="Authorization"):
        async with embedded.connected("shop", seed):
            pass


async def test_services_stay_connected_while_credentials_come_and_go(embedded: EmbeddedBus):
    router = await Bus.connect(
        BusSettings(nats_url=embedded.server.url, nats_seed=embedded.access.seed_of("router")),
        service="router",
        exit_when_closed=False,
    )
    tracing = await Bus.connect(
        BusSettings(nats_url=embedded.server.url, nats_seed=embedded.access.seed_of("tracing"), nats_accounts=True),
        service="tracing",
        exit_when_closed=False,
    )
    again: list[str] = []
    router.reconnected.append(lambda: again.append("router"))
    tracing.reconnected.append(lambda: again.append("tracing"))

    await embedded.create("shop", "acme", "submit")
    await embedded.revoke("shop")

    assert (await router.js.stream_info("EVENTS")).config.name == "EVENTS"
    assert (await tracing.js.stream_info("EVENTS")).config.name == "EVENTS"
    assert again == []
    await router.close()
    await tracing.close()


async def test_credentials_outlive_a_server_that_dies(embedded: EmbeddedBus):
    seed = await embedded.create("shop", "acme", "submit")
    await embedded.server.kill()
    await embedded.server.start()

    async with embedded.connected("shop", seed) as (nc, _):
        assert (await nc.jetstream().publish("jobs.submit.acme", b"{}")).stream == "SUBMIT"


async def test_seeds_are_kept_nowhere_and_files_are_the_owners(embedded: EmbeddedBus):
    seed = await embedded.create("shop", "acme", "submit")
    files = [path for path in embedded.installation.root.rglob("*") if path.is_file()]

    assert [path for path in files if seed.encode() in path.read_bytes()] == []
    assert os.stat(embedded.installation.clients).st_mode & 0o077 == 0
    assert [one.name for one in manage_clients.clients(embedded.settings)] == ["shop"]


@pytest.mark.parametrize(
    ("name", "tenant", "scopes", "reason"),
    [
        ("Shop", "acme", ["submit"], "is not a name"),
        ("shop", "Acme", ["submit"], "is not a tenant"),
        ("shop", "acme.*", ["submit"], "is not a tenant"),
        ("shop", "acme", [], "there are: submit, signal, approve, follow"),
        ("shop", "acme", ["all"], "no scope all"),
    ],
)
def test_a_credential_that_cannot_be_is_refused(tmp_path: Path, name: str, tenant: str, scopes: list[str], reason: str):
    with pytest.raises(ClientInvalid, match=reason):
        manage_clients.create(name, tenant=tenant, scopes=scopes, settings=Settings(data_dir=tmp_path))
    assert manage_clients.clients(Settings(data_dir=tmp_path)) == []


def test_a_name_is_taken_until_it_is_revoked(tmp_path: Path):
    settings = Settings(data_dir=tmp_path)
    _, _, told = manage_clients.create("shop", tenant="acme", scopes=["submit"], settings=settings)
    with pytest.raises(ClientInvalid, match="revoke it"):
        manage_clients.create("shop", tenant="acme", scopes=["submit"], settings=settings)
    manage_clients.revoke("shop", settings=settings)
    with pytest.raises(ClientInvalid, match="there is no credential 'shop'"):
        manage_clients.revoke("shop", settings=settings)

    assert (told.servers, manage_clients.clients(settings)) == (0, [])
    assert json.loads((tmp_path / "credentials/clients.json").read_text()) == {"clients": []}
