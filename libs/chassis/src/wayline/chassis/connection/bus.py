"""One service's connection to the bus: publish with an id, ask, put aside; reconnecting for ever."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from math import ceil
from typing import Any, TypeVar

import orjson
import structlog
from nats import errors as nats_errors
from nats.aio.msg import Msg
from nats.js import errors as js_errors
from nats.js.api import PubAck
from pydantic import BaseModel

from wayline.chassis.claim_check.claims import CLIENT_BOUNDS, MESSAGE_MAX, STREAM_FULL, Claims, MovedField
from wayline.chassis.claim_check.large_replies import WORD, LargeReplies
from wayline.chassis.claim_check.payloads import Payloads
from wayline.chassis.claim_check.stored_bytes import StoredBytes
from wayline.chassis.connection.connecting import Link, connect
from wayline.chassis.connection.dead_letters import dead_letter
from wayline.chassis.connection.delivery import Delivery
from wayline.chassis.connection.received import check_headers, has_claims, refuses
from wayline.chassis.connection.requests import Answers, ask_everyone, unanswered
from wayline.chassis.nats_client.bus_client import BusClient
from wayline.chassis.settings import BusSettings
from wayline.chassis.topology import REPLIES, UPLOADS
from wayline.contracts import headers as h
from wayline.contracts.base import Message, Request, tenant_of
from wayline.contracts.errors import Bug, Full, Problem, Unavailable, WaylineError, raised
from wayline.telemetry import carried, metrics

log = structlog.get_logger()

PUBLISH_RETRY_S = 15.0
"""A cluster needs up to 7 s for a new leader; a publish is tried again with the same id for this long."""
PUBLISH_TIMEOUT_S = 2.0
SETTLED_WITHIN_S = 10.0
Moved = Mapping[str, MovedField]
_NONE_MOVED: Moved = {}
REQUEST_TIMEOUT_S = 5.0
PROBE_BYTES = 64 * 1024
"""The size of a probe's write: more than most records, so that a nearly full disk fails it."""
PROBE_TIMEOUT_S = 1.5
UNACKED_AFTER_S = 4.0
"""How long appends to a stream go without an ack before it is called down: a new leader takes a moment."""
UNACKED_FORGET_S = 30.0
"""How long a stream counts as down when no further append has been tried."""
WRONG_SEQUENCE = 10071
IN_PROCESS = frozenset({10158, 10164})
"""A cluster still copies a message of this id, or another of this subject: its outcome is not known yet."""

AWAY = (
    TimeoutError,
    nats_errors.TimeoutError,
    nats_errors.NoRespondersError,
    nats_errors.ConnectionReconnectingError,
    nats_errors.OutboundBufferLimitError,
    js_errors.NoStreamResponseError,
    # What a cluster says while it chooses a leader.
    js_errors.ServiceUnavailableError,
)

INBOX = "_INBOX."
NO_TENANT = "-"
"""The tenant's token in the subject of a dead letter without a tenant."""

M = TypeVar("M", bound=Message)
R = TypeVar("R", bound=BaseModel)


class WrongSequence(WaylineError):
    """The append was refused: the subject has a newer message than expected."""

    code = "wrong_sequence"


class Bus:
    """A connected client of the bus, as one identity."""

    def __init__(self, nc: BusClient, link: Link) -> None:
        self.nc = nc
        self.service = link.service
        self.api = link.api
        """The prefix under which this identity reaches JetStream."""
        self.js = nc.jetstream(timeout=PUBLISH_TIMEOUT_S, prefix=self.api)
        self._answers = Answers(nc)
        self.stored = StoredBytes()
        payloads = Payloads(nc, self.api, self.request)
        self.claims = Claims(payloads, stored=self.stored)
        self.uploads = Claims(Payloads(nc, self.api, self.request, bucket=UPLOADS), also_read=payloads)
        replies = Payloads(nc, self.api, self.request, bucket=REPLIES)
        self.replies = LargeReplies(
            Claims(replies), per_tenant_max_bytes=link.replies_per_tenant_max_bytes, read_fill=replies.fill
        )
        self.denied = link.denied
        self.reconnected = link.reconnected
        self.reconnected.append(self._answers.forget)
        self._link = link
        self._unacked: dict[str, tuple[float, float]] = {}
        """When appends on a first word of a subject began to get no ack, and when the last one got none."""
        # A server that restarted may store again what it did not before.
        self.reconnected.append(self._unacked.clear)
        self._published = cache(partial(metrics.messages_published.labels, self.service))

    @classmethod
    async def connect(
        cls, settings: BusSettings, *, service: str, exit_when_closed: bool = True, key_ids: Sequence[str] = ()
    ) -> Bus:
        """Connect as `service`, whose connection shows `key_ids`; with `exit_when_closed` the process ends with it.

        Raises Unavailable when no bus answers in time, Reject when it does not know our credentials.
        """
        replies_max_bytes = settings.replies_per_tenant_max_bytes
        link = Link(service, exit_when_closed, settings.nats_accounts, replies_max_bytes, tuple(key_ids))
        return cls(await connect(link, settings), link)

    async def check(self) -> None:
        """See that the bus stores what is published. Raises Unavailable, saying what is wrong.

        A server whose disk was full goes on answering but stores nothing until it is restarted, so a connection alone
        proves nothing.
        """
        if not self.nc.is_connected:
            raise Unavailable("the bus", detail="reconnecting")
        if stuck := self.stuck:
            raise Unavailable("the bus", detail=f"{stuck}.> gets no ack; its disk may be full")
        subject = f"probe.{self.service}"
        self._require_allowed(subject)
        try:
            reply = await self.request(subject, bytes(PROBE_BYTES), timeout_s=PROBE_TIMEOUT_S)
        except AWAY as error:
            detail = f"it stores nothing, its disk may be full ({type(error).__name__})"
            raise Unavailable("the bus", detail=detail) from None
        if error := orjson.loads(reply.data).get("error"):
            raise Unavailable("the bus", detail=f"it stores nothing: {error.get('description')}")

    @property
    def has_other_servers(self) -> bool:
        """Return whether the bus is a cluster, of whose servers this client knows another."""
        return len(self.nc.servers) > 1

    @property
    def stuck(self) -> str | None:
        """Return the first word of subjects on which this process got no ack for a while; None: there are none."""
        now = time.monotonic()
        for word, (since, last) in self._unacked.items():
            if last - since >= UNACKED_AFTER_S and now - last < UNACKED_FORGET_S:
                return word
        return None

    async def close(self) -> None:
        """Flush and leave; what was published is out, where there is a bus to take it."""
        self._link.closing = True
        with suppress(OSError, nats_errors.Error):
            if self.nc.is_connected:
                await self.nc.drain()
            elif not self.nc.is_closed:
                await self.nc.close()

    async def settled(self, *, within_s: float = SETTLED_WITHIN_S) -> None:
        """Wait until the server knows every subscription made so far: a request right now would find it.

        Raises Unavailable when the server does not answer in time.
        """
        # The client writes PING at once but commands through a buffer, so one round trip may overtake a subscription;
        # by the time the first is back the buffer is out, and the second comes after it.
        try:
            async with asyncio.timeout(within_s):
                for _ in range(2):
                    await self.nc.flush(ceil(within_s))
        except TimeoutError:
            raise Unavailable("the bus", detail=f"no answer to a ping within {within_s:g} s") from None

    async def wire(
        self, message: Message, headers: Mapping[str, str] | None = None, *, moved: Moved = _NONE_MOVED
    ) -> tuple[bytes, dict[str, str]]:
        """Return a message's body (large fields claimed) and its headers with schema, tenant and trace."""
        body = message.to_wire()
        wire_headers = {h.SCHEMA: message.schema_id(), h.TENANT: message.tenant, **carried(), **(headers or {})}
        most = message.body_max or MESSAGE_MAX
        if len(body) > most:
            claims = self._claims_of(type(message))
            body, _ = await claims.check_in(body, f"{message.tenant or '-'}/{message.owner}", most=most)
            wire_headers[h.CLAIMS] = "1"
        if moved:
            claims, owner = self._claims_of(type(message)), f"{message.tenant or '-'}/{message.owner}"
            placed = {name: await claims.put_field(owner, field) for name, field in moved.items()}
            body = orjson.dumps({**orjson.loads(body), **placed})
            wire_headers[h.CLAIMS] = "1"
        return body, wire_headers

    async def publish(
        self,
        message: Message,
        *,
        msg_id: str,
        headers: Mapping[str, str] | None = None,
        within_s: float = PUBLISH_RETRY_S,
        moved: Moved = _NONE_MOVED,
    ) -> PubAck:
        """Store a message in its stream; without an ack, try again with the same id for `within_s`.

        `moved`: fields that it leaves out and that are stored piece by piece. Raises Full when the stream is full,
        Unavailable when the time is over.
        """
        body, wire_headers = await self.wire(message, headers, moved=moved)
        self._published(message.subject_template).inc()
        wire_headers[h.MSG_ID] = msg_id
        return await self.store(message.subject, body, wire_headers, within_s=within_s)

    async def store(
        self, subject: str, body: bytes, headers: dict[str, str], *, within_s: float = PUBLISH_RETRY_S
    ) -> PubAck:
        """Publish encoded bytes and wait for the stream's ack; try once where the stream is known to be down.

        Raises Full, WrongSequence, Unavailable, or Bug when this identity may not publish here.
        """
        word = subject.partition(".")[0]
        deadline = time.monotonic() + (within_s if self.stuck != word else 0.0)
        while True:
            self._require_allowed(subject)
            try:
                ack = await self._store_once(subject, body, headers)
            except AWAY as error:
                now = time.monotonic()
                self._unacked[word] = self._unacked.get(word, (now, now))[0], now
                if now > deadline:
                    detail = f"{subject} gets no ack, its disk may be full ({type(error).__name__})"
                    raise Unavailable("the bus", detail=detail) from error
                await asyncio.sleep(0.1)
            else:
                self._unacked.pop(word, None)
                return ack

    def _require_allowed(self, subject: str) -> None:
        """Raise Bug where the server has denied this subject: the publish itself would only time out."""
        # nats-py hands on the server's error in lower case.
        if self.denied and (denied := self.denied.get(subject.lower())):
            raise Bug(f"{self.service} may not publish on {subject}: {denied}")

    async def _store_once(self, subject: str, body: bytes, headers: dict[str, str]) -> PubAck:
        reply = await self.request(subject, body, timeout_s=PUBLISH_TIMEOUT_S, headers=headers)
        ack = orjson.loads(reply.data)
        if "error" not in ack:
            return PubAck(stream=ack["stream"], seq=ack["seq"], duplicate=ack.get("duplicate", False))
        error = ack["error"]
        if error.get("err_code") == WRONG_SEQUENCE:
            raise WrongSequence(error["description"])
        if error.get("err_code") == STREAM_FULL or "maximum" in error.get("description", ""):
            raise Full(f"the stream for {subject}")
        if error.get("code") == 503 or error.get("err_code") in IN_PROCESS:
            raise js_errors.NoStreamResponseError
        raise Bug(f"the bus refused {subject}: {error}")

    async def send(
        self, message: Message, *, subject: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        """Publish a message that is not stored: deltas, replies, cancellations."""
        body, wire_headers = await self.wire(message, headers)
        await self.nc.publish(subject or message.subject, body, headers=wire_headers)

    def inbox_of(self, tenant: str, subject: str) -> str:
        """Return where to publish for a client's own subject: an inbox is in the account of the client's tenant."""
        if self._link.accounts and subject.startswith(INBOX):
            return f"inbox.{tenant}.{subject.removeprefix(INBOX)}"
        return subject

    def request(
        self, subject: str, body: bytes, *, timeout_s: float, headers: dict[str, str] | None = None
    ) -> Coroutine[Any, Any, Msg]:
        """Ask with encoded bytes and wait for one answer. Raises TimeoutError or nats-py's own errors."""
        return self._answers.ask(subject, body, timeout_s=timeout_s, headers=headers)

    async def ask(
        self,
        request: Request,
        replies: type[R],
        *,
        timeout_s: float = REQUEST_TIMEOUT_S,
        headers: Mapping[str, str] | None = None,
    ) -> R:
        """Ask and wait for the one answer.

        Raises the other side's refusal (Refused, or Retry where asking again may help), or Unavailable when no answer
        comes in time.
        """
        body, wire_headers = await self.wire(request, {h.REPLIES: WORD, **(headers or {})})
        subject = request.subject
        self._require_allowed(subject)
        try:
            reply = await self.request(subject, body, timeout_s=timeout_s, headers=wire_headers)
        except AWAY as error:
            raise unanswered(request, error) from None
        return await self._read(reply, replies, tenant=request.tenant)

    async def ask_everyone(
        self,
        request: Request,
        replies: type[R],
        *,
        timeout_s: float = REQUEST_TIMEOUT_S,
        quiet_s: float | None = None,
    ) -> list[R]:
        """Ask every replica and return their answers. Raises as `ask` does where none of them gives a good answer.

        `quiet_s`: how long after an answer another one may still come, where answers take them time.
        """
        body, wire_headers = await self.wire(request, {h.REPLIES: WORD})
        self._require_allowed(request.subject)
        try:
            answers = await ask_everyone(
                self.nc, request.subject, body, timeout_s=timeout_s, quiet_s=quiet_s, headers=wire_headers
            )
        except AWAY as error:
            raise unanswered(request, error) from None
        read = [await self._read(answer, replies, tenant=request.tenant) for answer in answers if not refuses(answer)]
        return read or [await self._read(answers[0], replies, tenant=request.tenant)]

    async def _read(self, reply: Msg, replies: type[R], *, tenant: str) -> R:
        data = await self.body(reply, tenant=tenant)
        if refuses(reply):
            raise raised(Problem.model_validate_json(data))
        return replies.model_validate_json(data, extra="ignore")

    async def body(self, message: Msg, *, tenant: str | None = None) -> bytes:
        """Return a received message's body with its claimed fields put back; they must be its tenant's own.

        A message that was read from a stream names its tenant here: it may have come on an inbox.
        """
        if not has_claims(message):
            return message.data
        if tenant is None:
            tenant = tenant_of(message.subject)
        if (message.headers or {}).get(h.CLAIMS) == WORD:
            return await self.replies.check_out(message.data, tenant or "-")
        return await self.claims.check_out(message.data, within=f"{tenant or '-'}/")

    async def hear(self, kind: type[M], message: Msg) -> M:
        """Read a received message, checking its headers against its subject. Raises InvalidMessage."""
        check_headers(kind, message)
        return await self.read(kind, message, message.subject)

    async def read(self, kind: type[M], message: Msg, subject: str) -> M:
        """Read a message that was published on `subject`. Raises InvalidMessage.

        What clients may publish can refer to no more than what a service moved out of this very message.
        """
        if not has_claims(message):
            return kind.from_wire(message.data, subject)
        tenant = kind.address(subject).get("tenant") or "-"
        claims = self._claims_of(kind)
        if not kind.from_clients:
            return kind.from_wire(await claims.check_out(message.data, within=f"{tenant}/"), subject)
        owner = kind.owner_of(message.data, subject)
        data = await claims.check_out(message.data, within=f"{tenant}/{owner}/", bounds=CLIENT_BOUNDS)
        return kind.from_wire(data, subject)

    def _claims_of(self, kind: type[Message]) -> Claims:
        return self.uploads if kind.is_upload else self.claims

    async def put_aside(self, delivery: Delivery, *, code: str, reason: str) -> None:
        """Copy what cannot be handled to the dead-letter stream, with its reason, subject, headers and body."""
        body, headers = dead_letter(delivery, code=code, reason=reason)
        subject = f"dead.{delivery.stream}.{delivery.consumer}.{headers[h.TENANT] or NO_TENANT}"
        await self.store(subject, body, headers)
        metrics.dead_letters.labels(delivery.stream, delivery.consumer, code).inc()
        log.warning("dead letter", stream=delivery.stream, consumer=delivery.consumer, code=code, reason=reason)
