"""What each identity may say and hear, held against a real server that was given the rendered configuration."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import nats
import orjson
import pytest
from nats.aio.client import Client
from nats.errors import NoRespondersError, TimeoutError

from wayline.chassis import Bus, BusSettings
from wayline.chassis.access.accounts import covers, render_accounts
from wayline.chassis.access.clients import ANONYMOUS
from wayline.chassis.access.permissions import IDENTITIES
from wayline.chassis.claim_check.claims import MESSAGE_MAX, PayloadMissing, claimed
from wayline.chassis.declare import declare
from wayline.chassis.topology import CONSUMERS
from wayline.contracts.jobs import SubmitJob
from wayline.contracts.knowledge import IndexDocument
from wayline.embedded import NatsServer
from wayline.journal import bulk_read
from wayline.standalone.servers.nats_config import render
from wayline.standalone.setup.credentials import ADMIN, Credentials, load_credentials
from wayline.testkit import known_to_server, until
from wayline.testkit.fixtures import run

CLIENT = "client"
LAST = "nobody.may.say.this"

NOBODY_MAY_SAY = (
    "$JS.API.STREAM.CREATE.OTHER",
    "$JS.API.STREAM.DELETE.EVENTS",
    "$JS.API.STREAM.PURGE.EVENTS",
    "$JS.API.STREAM.UPDATE.EVENTS",
    "$JS.API.CONSUMER.DELETE.EVENTS.tracing",
    "$JS.API.CONSUMER.CREATE.EVENTS.spy",
    "$JS.API.CONSUMER.CREATE.SIGNALS",
    "$JS.API.CONSUMER.DURABLE.CREATE.RUN.spy",
    "$JS.API.CONSUMER.CREATE.OBJ_PAYLOADS",
    "$JS.API.CONSUMER.CREATE.OBJ_PAYLOADS.spy.$O.PAYLOADS.C.x1",
    "WAYLINE.API.CONSUMER.CREATE.OBJ_PAYLOADS",
    "$JS.API.STREAM.PURGE.OBJ_PAYLOADS",
    "WAYLINE.API.STREAM.PURGE.OBJ_PAYLOADS",
    "WAYLINE.API.STREAM.MSG.DELETE.OBJ_PAYLOADS",
    "WAYLINE.API.STREAM.CREATE.OTHER",
    "WAYLINE.API.STREAM.PURGE.EVENTS",
    "$SYS.REQ.SERVER.PING",
    "_INBOX_gateway.stolen",
    "_INBOX_admin.stolen",
    "live.default.j1",
    "due.default.j1.w1",
)
NOBODY_MAY_HEAR = (
    ">",
    "events.>",
    "jobs.>",
    "signals.>",
    "documents.index.*",
    "telemetry.traces",
    "dead.>",
    "replies.>",
    "$JS.>",
    "$SYS.>",
    "_INBOX_admin.>",
)
OF_ANOTHER_TENANT = ("jobs.submit.acme", "signals.acme.j1", "approvals.acme.j1", "tools.announce.acme.orders")
HEARD_OF_ANOTHER_TENANT = (
    "live.acme.>",
    "deltas.acme.>",
    "replies.acme.>",
    "live.>",
    "live.*.j1",
    "replies.*.j1",
    "tools.invoke.>",
    "tools.invoke.*.orders",
    "tools.invoke.acme.orders",
)


@dataclass(frozen=True)
class Guarded:
    """A running server that knows the identities."""

    server: NatsServer
    credentials: Credentials

    def settings(self, identity: str) -> BusSettings:
        seed = None if identity == CLIENT else self.credentials.seeds[identity]
        return BusSettings(nats_url=self.server.url, nats_seed=seed, nats_accounts=identity in IDENTITIES)

    @asynccontextmanager
    async def bus(self, identity: str) -> AsyncIterator[Bus]:
        bus = await Bus.connect(self.settings(identity), service=identity, exit_when_closed=False)
        yield bus
        await bus.close()


@pytest.fixture(scope="module")
def guarded(server_dir: Path) -> Iterator[Guarded]:
    home = server_dir / "guarded"
    home.mkdir()
    credentials = load_credentials(home / "keys.json", identities=[*IDENTITIES, ADMIN], roles=[])
    server = NatsServer(home / "nats", config=render(_accounts(credentials)))
    run(server.start())
    guarded = Guarded(server, credentials)
    run(_declare(guarded))
    yield guarded
    run(server.stop())


def _accounts(credentials: Credentials) -> str:
    keys = credentials.public_keys()
    return render_accounts(keys, admin_key=keys[ADMIN])


async def _declare(guarded: Guarded) -> None:
    async with guarded.bus(ADMIN) as bus:
        assert [change async for change in declare(bus.js)]


def publish_table(identity: str) -> tuple[str, ...]:
    return tuple(ANONYMOUS.may_publish()) if identity == CLIENT else tuple(IDENTITIES[identity].may_publish())


def subscribe_table(identity: str) -> tuple[str, ...]:
    return tuple(ANONYMOUS.may_subscribe()) if identity == CLIENT else tuple(IDENTITIES[identity].may_subscribe())


EVERYBODY = (*IDENTITIES, CLIENT)
EVERY_SUBJECT = sorted(
    {pattern.replace("*", "x1").replace(">", "x1.x2") for identity in EVERYBODY for pattern in publish_table(identity)}
)
EVERY_PATTERN = sorted({pattern for identity in EVERYBODY for pattern in subscribe_table(identity)})


def refused(wanted: Iterable[str], table: Iterable[str]) -> set[str]:
    """What the table does not allow."""
    table = tuple(table)
    return {subject for subject in wanted if not any(covers(allowed, subject) for allowed in table)}


async def denied_by_server(nc: Client, errors: list[str]) -> set[str]:
    """What the server refused so far; the last refusal, of what nobody may say, is the sign that all have come."""
    await nc.publish(LAST, b"")
    await until(lambda: any(LAST in error for error in errors), why="the server refuses what nobody may say")
    return {error.split('"')[1] for error in errors if "permissions violation" in error} - {LAST}


@asynccontextmanager
async def connected(guarded: Guarded, identity: str) -> AsyncIterator[tuple[Client, list[str]]]:
    errors: list[str] = []

    async def note(error: Exception) -> None:
        errors.append(str(error))

    seed = guarded.settings(identity).nats_seed
    options = {"nkeys_seed_str": seed, "inbox_prefix": f"_INBOX_{identity}"} if seed else {}
    nc = await nats.connect(guarded.server.url, error_cb=note, **options)
    yield nc, errors
    await nc.close()


@pytest.mark.parametrize("identity", EVERYBODY)
async def test_an_identity_may_publish_what_the_table_says_and_nothing_else(guarded: Guarded, identity: str):
    wanted = [*EVERY_SUBJECT, *NOBODY_MAY_SAY, *OF_ANOTHER_TENANT]

    async with connected(guarded, identity) as (nc, errors):
        for subject in wanted:
            await nc.publish(subject, b"")
        denied = await denied_by_server(nc, errors)

    # The client library tells errors in lower case.
    assert denied == {subject.lower() for subject in refused(wanted, publish_table(identity))}


@pytest.mark.parametrize("identity", EVERYBODY)
async def test_an_identity_may_subscribe_to_its_table_only(guarded: Guarded, identity: str):
    wanted = [*EVERY_PATTERN, *NOBODY_MAY_HEAR, *HEARD_OF_ANOTHER_TENANT]

    async with connected(guarded, identity) as (nc, errors):
        for subject in wanted:
            await nc.subscribe(subject)
        denied = await denied_by_server(nc, errors)

    assert denied == {subject.lower() for subject in refused(wanted, subscribe_table(identity))}


def test_no_identity_is_granted_a_forbidden_subject():
    for identity in EVERYBODY:
        assert refused(NOBODY_MAY_HEAR, subscribe_table(identity)) == set(NOBODY_MAY_HEAR), identity
        assert refused(NOBODY_MAY_SAY, publish_table(identity)) == set(NOBODY_MAY_SAY), identity


def test_the_anonymous_client_has_what_the_design_lists():
    assert set(ANONYMOUS.may_publish()) == {
        "jobs.submit.default",
        "signals.default.*",
        "approvals.default.*",
        "tools.announce.default.*",
        "jobs.finished.default",
        "jobs.events.default",
    }
    assert set(ANONYMOUS.may_subscribe()) == {
        "_INBOX.>",
        "replies.default.>",
        "live.default.*",
        "deltas.default.*",
        "tools.invoke.default.*",
        "tools.stop.default.*",
        "tools.wanted",
    }


async def test_a_bare_client_submits_a_job_and_gets_the_ack(guarded: Guarded):
    async with connected(guarded, CLIENT) as (nc, _):
        ack = await nc.jetstream().publish("jobs.submit.default", b'{"agent": "assistant", "input": "hello"}')

    assert ack.stream == "SUBMIT"


async def test_a_bare_client_cannot_read_what_others_submitted(guarded: Guarded):
    async with connected(guarded, CLIENT) as (nc, errors):
        with pytest.raises((TimeoutError, NoRespondersError)):
            await nc.request("$JS.API.STREAM.MSG.GET.SUBMIT", b'{"seq":1}', timeout=0.5)

    assert any("$js.api.stream.msg.get.submit" in error for error in errors)


@pytest.mark.parametrize("consumer", CONSUMERS, ids=lambda consumer: f"{consumer.stream}-{consumer.name}")
async def test_a_service_fetches_from_its_consumer(guarded: Guarded, consumer):
    async with guarded.bus(consumer.service) as bus:
        inbox = bus.nc.new_inbox()
        answers = await bus.nc.subscribe(inbox)
        asked = orjson.dumps({"batch": 1, "no_wait": True})
        await bus.nc.publish(f"{bus.api}.CONSUMER.MSG.NEXT.{consumer.stream}.{consumer.name}", asked, reply=inbox)
        answer = await answers.next_msg(timeout=2)

    # A message that the tests above left, or the server's word that there is none: either way it was allowed to ask.
    assert answer.subject != inbox or (answer.headers or {})["Status"] == "404"


@pytest.mark.parametrize(
    ("identity", "stream"),
    [
        ("gateway", "EVENTS"),
        ("router", "EVENTS"),
        ("executor", "EVENTS"),
        ("executor", "SIGNALS"),
        ("tracing", "EVENTS"),
    ],
)
async def test_a_service_reads_in_bulk_what_it_decides_from(guarded: Guarded, identity: str, stream: str):
    async with guarded.bus(identity) as bus:
        assert [message async for message in bulk_read(bus, stream, f"{stream.lower()}.default.{identity}")] == []


@pytest.mark.parametrize("identity", IDENTITIES)
async def test_a_service_puts_a_large_field_aside_and_reads_it_back(guarded: Guarded, identity: str):
    large = orjson.dumps({"text": "x" * (MESSAGE_MAX + 1), "of": identity})

    async with guarded.bus(identity) as bus:
        async with asyncio.timeout(10):
            small, moved = await bus.claims.check_in(large, f"default/{identity}")
            whole = await bus.claims.check_out(small)

    assert (moved, orjson.loads(whole)) == (True, orjson.loads(large))


async def test_retrieval_deletes_uploads_and_cannot_purge_a_jobs_payloads(guarded: Guarded):
    large = orjson.dumps({"text": "y" * (MESSAGE_MAX + 1)})
    upload = IndexDocument(tenant="default", document_id="d1", name="d1", text="z" * (MESSAGE_MAX + 1))
    async with guarded.bus("executor") as executor, guarded.bus("gateway") as gateway:
        small, _ = await executor.claims.check_in(large, "default/j1")
        body, _ = await gateway.wire(upload)

    async with guarded.bus("retrieval") as retrieval:
        whole = await retrieval.uploads.check_out(body)
        await retrieval.uploads.drop(claimed(body))
        with pytest.raises(PayloadMissing):
            await retrieval.uploads.check_out(body)
        for api in ("WAYLINE.API", "$JS.API"):
            await retrieval.nc.publish(f"{api}.STREAM.PURGE.OBJ_PAYLOADS", b"{}")
        await until(lambda: len(retrieval.denied) == 2, why="the server refuses both")
        kept = await retrieval.claims.check_out(small)

    assert IndexDocument.from_wire(whole, upload.subject) == upload
    assert kept == large
    async with guarded.bus(ADMIN) as admin:
        stored = await admin.js.stream_info("OBJ_UPLOADS", subjects_filter=">")
    assert [one for one in stored.state.subjects or {} if not one.endswith(".x1")] == []


def test_the_router_alone_may_erase_logs_signals_and_payloads():
    erased = [f"STREAM.MSG.DELETE.{stream}" for stream in ("EVENTS", "SIGNALS", "OBJ_PAYLOADS")]
    wanted = {f"{api}.{call}" for api in ("$JS.API", "WAYLINE.API") for call in erased}
    for identity in EVERYBODY:
        granted = wanted - refused(wanted, publish_table(identity))
        assert granted == ({f"$JS.API.{call}" for call in erased} if identity == "router" else set()), identity


async def test_a_service_may_answer_its_caller_once_and_no_other(guarded: Guarded):
    async with connected(guarded, "router") as (router, errors), connected(guarded, "gateway") as (gateway, _):

        async def answer(message) -> None:
            await message.respond(b"once")
            await message.respond(b"twice")

        await router.subscribe("agents.get.*", cb=answer)
        await known_to_server(router)
        reply = await gateway.request("agents.get.default", b"{}", timeout=2)
        await until(lambda: any('"_r_.' in error for error in errors), why="a second answer is refused")

    assert reply.data == b"once"


async def test_a_denied_publish_fails_at_once_and_says_who_may_not(guarded: Guarded):
    async with guarded.bus("retrieval") as bus:
        with pytest.raises(Exception, match=r"retrieval may not publish on jobs\.submit\.default"):
            await bus.publish(SubmitJob(tenant="default", agent="assistant", input="hello"), msg_id="j1")
