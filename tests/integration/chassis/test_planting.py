"""Whoever may publish names a reply subject: no answer that JetStream gives there reaches what is not the asker's own.

One table: every identity, tenant and API that answers, against every family of subjects. What arrives in the account
of the streams, at another service or at another tenant is heard by witnesses there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import nats
import pytest
from nats import errors as nats_errors
from nats.aio.client import Client as Connection
from nats.aio.msg import Msg

from wayline.chassis import Bus, BusSettings
from wayline.chassis.access.accounts import covers, render_accounts
from wayline.chassis.access.clients import ANONYMOUS, Client
from wayline.chassis.access.identity import STREAMS_ACCOUNT, Identity
from wayline.chassis.access.permissions import IDENTITIES
from wayline.chassis.declare import declare
from wayline.contracts import headers as h
from wayline.embedded import NatsServer, minimal_config
from wayline.journal import Head, State
from wayline.standalone.setup.credentials import ADMIN, Credentials, load_credentials
from wayline.testkit import known_to_server, until
from wayline.testkit.fixtures import run

ACME = "acme"
SUBJECTS = (
    "events.{t}.planted",
    "signals.{t}.planted",
    "approvals.{t}.planted",
    "due.{t}.planted.w1",
    "later.{t}.planted.w1",
    "jobs.submit.{t}",
    "jobs.run.interactive.{t}",
    "documents.index.{t}",
    "live.{t}.planted",
    "deltas.{t}.planted",
    "replies.{t}.planted",
    "inbox.{t}.planted",
    "_INBOX.planted",
    "_INBOX_executor.planted",
    "dead.SUBMIT.router.planted",
    "telemetry.traces",
    "$O.PAYLOADS.M.planted",
    "$O.PAYLOADS.C.planted",
    "$O.UPLOADS.M.planted",
    "$O.UPLOADS.C.planted",
    "$KV.PROVIDERS.planted",
    "tools.call.{t}",
    "documents.delete.{t}",
    "agents.put.{t}",
    "$JS.ACK.RUN.interactive.1.1.1.1.0",
    "$JS.API.STREAM.DELETE.INDEX",
    "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.RUN.planted",
)
"""What may be planted on: each stream, the buckets, the server's own APIs, what tenants hear, what services answer."""
TARGETS = list(dict.fromkeys(subject.format(t=tenant) for subject in SUBJECTS for tenant in (ACME, "default")))


@dataclass
class BusUsers:
    """A server with the rendered accounts, and the keys of everybody in them."""

    server: NatsServer
    credentials: Credentials

    def seed(self, name: str) -> str | None:
        return None if name == "anonymous" else self.credentials.seeds[name]

    @asynccontextmanager
    async def connected(self, name: str) -> AsyncIterator[Connection]:
        seed = self.seed(name)
        options = {"nkeys_seed_str": seed} if seed else {}
        if name in IDENTITIES:
            options["inbox_prefix"] = IDENTITIES[name].inbox
        nc = await nats.connect(self.server.url, error_cb=_quiet, **options)
        yield nc
        await nc.close()


@pytest.fixture(scope="module")
def users(server_dir: Path) -> Iterator[BusUsers]:
    home = server_dir / "planting"
    home.mkdir()
    credentials = load_credentials(home / "keys.json", identities=[*IDENTITIES, ADMIN, ACME], roles=[])
    keys = credentials.public_keys()
    accounts = render_accounts(
        {name: keys[name] for name in IDENTITIES}, admin_key=keys[ADMIN], clients=[Client(ACME, public_key=keys[ACME])]
    )
    server = NatsServer(home / "nats", config=minimal_config(home / "nats" / "js") + accounts)
    run(server.start())
    users = BusUsers(server, credentials)
    run(_declare(users))
    yield users
    run(server.stop())


async def _declare(users: BusUsers) -> None:
    settings = BusSettings(nats_url=users.server.url, nats_seed=users.seed(ADMIN))
    bus = await Bus.connect(settings, service=ADMIN, exit_when_closed=False)
    assert [change async for change in declare(bus.js)]
    # Only the gateway may store an upload, and only retrieval reads one in bulk.
    await bus.request("$O.UPLOADS.C.carrier", b"+TERM", timeout_s=2, headers=RECORD)
    await bus.close()


async def _quiet(_: Exception) -> None:
    return None


RECORD = {
    h.RECORD: Head(0, State.ENDED, 1, "c").header(),
    h.MSG_ID: "planted",
}
NUMBERS = count(1)


def asking(who: Identity | Client) -> list[tuple[str, bytes]]:
    """Every request that this identity may make and that JetStream or a service answers, by the table of its rights."""
    found: list[tuple[str, bytes]] = []
    for pattern in who.may_publish():
        subject = pattern.replace("*", "default").replace(">", "x.y")
        bodies, bucket = [b"+ACK"], b"UPLOADS" if "UPLOADS" in subject else b"PAYLOADS"
        if ".MSG.GET." in subject or ".DIRECT.GET." in subject:
            bodies = [
                b'{"seq":1}',
                b'{"last_by_subj":"$O.%b.C.carrier"}' % bucket,
                b'{"seq":1,"next_by_subj":"$O.%b.C.carrier","batch":3}' % bucket,
            ]
        elif ".MSG.NEXT." in subject:
            bodies = [b'{"batch":5,"no_wait":true}']
        elif ".INFO." in subject:
            bodies = [b""]
        elif ".PURGE." in subject:
            bodies = [b'{"filter":"$O.%b.C.nothing"}' % bucket]
        elif subject.startswith("$JS.ACK."):
            # Of no delivery of ours: what it asks for next would come to the reply subject.
            subject, bodies = subject.replace("x.y", "1.1.1.1.0"), [b"+NXT 1"]
        found += [(subject, body) for body in bodies]
    return found


async def plant_everything(nc: Connection, who: Identity | Client) -> int:
    """Ask everything that may be asked, with every target as the reply subject; returns how often."""
    asked = 0
    for subject, body in asking(who):
        for target in TARGETS:
            for more in ({}, {"Nats-Trace-Dest": target}):
                await nc.publish(subject, body, reply=target, headers={**RECORD, h.MSG_ID: f"p{next(NUMBERS)}", **more})
                asked += 1
        await nc.flush()
    return asked


@asynccontextmanager
async def witnessed(users: BusUsers, but: str) -> AsyncIterator[set[tuple[str, str]]]:
    """Where, and on which subject, somebody else hears anything: every target in the account of the streams, and all
    that each service and tenant may hear."""
    heard: set[tuple[str, str]] = set()

    async def listen(nc: Connection, where: str, pattern: str) -> None:
        async def on_message(message: Msg) -> None:
            # What a stream delivers has its own subject, wherever it is delivered to.
            heard.add((where, message.subject if "*" in pattern else pattern))

        await nc.subscribe(pattern, cb=on_message)

    async with AsyncExitStack() as stack:
        streams = await stack.enter_async_context(users.connected(ADMIN))
        connections = [streams]
        for target in TARGETS:
            await listen(streams, STREAMS_ACCOUNT, target)
        for name, who in WHO.items():
            if name != but:
                nc = await stack.enter_async_context(users.connected(name))
                connections.append(nc)
                for pattern in who.may_subscribe():
                    await listen(nc, name, pattern)
        await known_to_server(*connections)
        yield heard
        for nc in connections:
            await nc.flush()


ANSWERED = [pattern for identity in IDENTITIES.values() for pattern in identity.answers]
"""Nobody answers these here."""


async def settle(nc: Connection, who: Identity | Client) -> None:
    """Wait for an answer of each kind: those that were asked for before it have been given."""
    for subject, body in asking(who):
        if not subject.startswith("$JS.ACK.") and not any(covers(pattern, subject) for pattern in ANSWERED):
            with suppress(TimeoutError, nats_errors.Error):
                await nc.request(subject, body, timeout=2)


def may_say(who: Identity | Client, subject: str) -> bool:
    """Whether the table lets it publish there anyway."""
    return any(covers(pattern, subject) for pattern in who.may_publish())


OUTSIDE = [name for name, identity in IDENTITIES.items() if identity.account != STREAMS_ACCOUNT]
WHO = {"anonymous": ANONYMOUS, ACME: Client(ACME), **{name: IDENTITIES[name] for name in OUTSIDE}}


@pytest.mark.parametrize("name", WHO)
async def test_no_answer_reaches_a_subject_that_its_asker_only_named(users: BusUsers, name: str):
    who = WHO[name]
    before = await stored(users)
    async with users.connected(name) as nc:
        if name in IDENTITIES:
            # Bytes of its own, with the headers of a record, for JetStream to deliver.
            await nc.request("$O.PAYLOADS.C.carrier", b"+TERM", timeout=2, headers=RECORD)
        async with witnessed(users, name) as heard:
            assert await plant_everything(nc, who) > len(TARGETS)
            await settle(nc, who)

    assert {(where, subject) for where, subject in heard if not may_say(who, subject)} == set()
    after = await stored(users)
    more = {subject for subject, n in after.items() if n > before.get(subject, 0)}
    assert {subject for subject in more if not may_say(who, subject)} == set()
    assert sum(after.values()) > sum(before.values()), "what it may say itself was stored"


async def stored(users: BusUsers) -> dict[str, int]:
    """How many messages lie on each subject of each stream."""
    found: dict[str, int] = {}
    async with users.connected(ADMIN) as nc:
        js = nc.jetstream()
        for stream in await js.streams_info():
            assert stream.config.name is not None
            found |= (await js.stream_info(stream.config.name, subjects_filter=">")).state.subjects or {}
    return found


@pytest.mark.parametrize("reply", ["$JS.ACK.RUN.interactive.1.1.1.1.0", "_R_.abc.def"])
async def test_the_server_refuses_its_own_reply_subjects(users: BusUsers, reply: str):
    """An answer there would ack another's ticket, or end another's request."""
    errors: list[str] = []

    async def note(error: Exception) -> None:
        errors.append(str(error))

    nc = await nats.connect(users.server.url, error_cb=note)
    await nc.publish("jobs.submit.default", b"{}", reply=reply)
    await until(lambda: any("publish with reply" in error for error in errors), why="the server refuses it")
    await nc.close()


def test_no_identity_creates_consumers_or_purges_what_is_kept():
    allowed = {subject for identity in IDENTITIES.values() for subject in identity.uses()}

    assert [subject for subject in allowed if ".CONSUMER.CREATE" in subject or ".CONSUMER.DURABLE" in subject] == []
    assert [subject for subject in allowed if "$JS.FC" in subject or ".STREAM.NAMES" in subject] == []
    assert {
        (identity.name, subject)
        for identity in IDENTITIES.values()
        for subject in identity.uses()
        if ".PURGE." in subject
    } == {
        ("executor", "$JS.API.STREAM.PURGE.LATER"),
        ("retrieval", "$JS.API.STREAM.PURGE.OBJ_UPLOADS"),
        ("router", "$JS.API.STREAM.PURGE.KV_CONTROLS"),
        ("router", "$JS.API.STREAM.PURGE.SIGNALS"),
    }
