"""The streams and consumers of the bus, one work queue for each purpose; only `wayline migrate` declares them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from nats.js import JetStreamContext
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DeliverPolicy,
    DiscardPolicy,
    KeyValueConfig,
    ObjectStoreConfig,
    RePublish,
    RetentionPolicy,
    StorageType,
    StreamConfig,
)
from nats.js.errors import NotFoundError

from wayline.contracts.jobs import backlog_of

DAY_S = 86_400.0
GIB = 1024**3
PAYLOADS = "PAYLOADS"
"""The object store of large fields; they age out, and nobody may purge it."""
UPLOADS = "UPLOADS"
"""The object store of uploaded documents' large fields; retrieval purges them with their document."""
REPLIES = "REPLIES"
"""The object store of large replies: in memory, and gone before long."""
REPLIES_KEPT_S = 60.0
"""Longer than a request waits for its answer and for what that has stored."""
REPLIES_MAX_BYTES = GIB // 4
PROVIDERS = "PROVIDERS"
DUPLICATES_S = 120.0
SUBMISSION_MAX_BYTES = 128 * 1024
"""With its headers; a service moves the largest fields of a body beyond `SubmitJob.body_max` to the object store."""
SIGNAL_MAX_BYTES = 16 * 1024
"""With its headers; a service moves what is beyond `Signal.body_max` to the object store."""
NOTICES_PER_TENANT_MAX = 5_000
"""Of one kind."""
WITHOUT_ROLLUP = {"allow_rollup_hdrs": False}
"""Of an object store: who may write there could empty it with one header. Our objects are not replaced."""
ADVISORIES = (
    "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.>",
    "$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.>",
)


@dataclass(frozen=True)
class Consumer:
    """A durable pull consumer and who binds to it."""

    stream: str
    name: str
    service: str
    subject: str
    ack_wait_s: float = 10.0
    max_deliver: int = -1
    max_ack_pending: int = 1_000
    headers_only: bool | None = None
    """True: bodies stay in the stream, and are read where they are wanted."""

    def config(self) -> ConsumerConfig:
        return ConsumerConfig(
            headers_only=self.headers_only,
            durable_name=self.name,
            filter_subject=self.subject,
            deliver_policy=DeliverPolicy.ALL,
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=self.ack_wait_s,
            max_deliver=self.max_deliver,
            max_ack_pending=self.max_ack_pending,
        )


# All that the stream holds may be out: what waits for something that is away must not keep back what need not wait.
SUBMIT_ROUTER = Consumer("SUBMIT", "router", "router", "jobs.submit.*", max_ack_pending=100_000)
RUN_INTERACTIVE = Consumer("RUN", "interactive", "executor", "jobs.run.interactive.*", max_ack_pending=20_000)
RUN_BATCH = Consumer("RUN", "batch", "executor", "jobs.run.batch.*", max_ack_pending=20_000)
RUN_BACKLOGS = {
    lane: replace(lane, name=backlog_of(lane.name), subject=f"jobs.run.{backlog_of(lane.name)}.*")
    for lane in (RUN_INTERACTIVE, RUN_BATCH)
}
"""Of each lane, the consumer of the tickets of tenants that have a ticket in it already."""
INDEX_RETRIEVAL = Consumer("INDEX", "retrieval", "retrieval", "documents.index.*", ack_wait_s=30)
EVENTS_TRACING = Consumer("EVENTS", "tracing", "tracing", "events.*.*", ack_wait_s=30, max_ack_pending=10_000)
EVENTS_NOTIFIER = Consumer(
    "EVENTS", "notifier", "notifier", "events.*.*", ack_wait_s=30, max_ack_pending=10_000, headers_only=True
)
SIGNALS_ROUTER = Consumer("SIGNALS", "router", "router", "signals.*.*")
APPROVALS_ROUTER = Consumer("SIGNALS", "approvals", "router", "approvals.*.*")
LATER_ROUTER = Consumer("LATER", "router", "router", "due.>")
TELEMETRY_TRACING = Consumer("TELEMETRY", "tracing", "tracing", "telemetry.traces", ack_wait_s=30, max_deliver=3)
NOTICES_NOTIFIER = Consumer("NOTICES", "notifier", "notifier", "notices.*.*", ack_wait_s=30)
DEAD_NOTIFIER = Consumer("DEAD", "notifier", "notifier", "dead.*.*.*", ack_wait_s=30, headers_only=True)
ADVISORY_ROUTER = Consumer("ADVISORY", "router", "router", "$JS.EVENT.ADVISORY.>", max_deliver=20)

CONSUMERS = (
    SUBMIT_ROUTER,
    RUN_INTERACTIVE,
    RUN_BATCH,
    *RUN_BACKLOGS.values(),
    INDEX_RETRIEVAL,
    EVENTS_TRACING,
    EVENTS_NOTIFIER,
    SIGNALS_ROUTER,
    APPROVALS_ROUTER,
    LATER_ROUTER,
    TELEMETRY_TRACING,
    NOTICES_NOTIFIER,
    DEAD_NOTIFIER,
    ADVISORY_ROUTER,
)


def _stream(name: str, *subjects: str, **options: Any) -> StreamConfig:
    """Return the configuration of a stream that refuses messages when it is full."""
    usual = {"discard": DiscardPolicy.NEW, "duplicate_window": DUPLICATES_S}
    return StreamConfig(name=name, subjects=list(subjects), **{**usual, **options})


_queue = partial(_stream, retention=RetentionPolicy.WORK_QUEUE)

STREAMS = (
    # The log is what deduplicates; a long window would only refuse what the router can answer better.
    _queue(
        "SUBMIT",
        "jobs.submit.*",
        discard_new_per_subject=True,
        max_bytes=2 * GIB,
        max_msg_size=SUBMISSION_MAX_BYTES,
        duplicate_window=0.1,
    ),
    _queue("RUN", "jobs.run.*.*", max_bytes=GIB),
    _queue("INDEX", "documents.index.*", discard_new_per_subject=True, max_bytes=2 * GIB),
    _stream(
        "EVENTS",
        "events.*.*",
        max_age=30 * DAY_S,
        allow_direct=True,
        republish=RePublish(src="events.*.*", dest="live.{{wildcard(1)}}.{{wildcard(2)}}"),
    ),
    _stream(
        "SIGNALS",
        "signals.*.*",
        # In one stream with the others: the first of two decisions is told by its sequence.
        "approvals.*.*",
        max_age=30 * DAY_S,
        max_bytes=GIB,
        max_msg_size=SIGNAL_MAX_BYTES,
        # Clients choose these ids: in a long window one tenant's would be taken for another's. A repeat means nothing.
        duplicate_window=0.1,
        max_msgs_per_subject=1_000,
        discard_new_per_subject=True,
        allow_direct=True,
    ),
    _stream(
        "LATER",
        "later.>",
        "due.>",
        max_age=30 * DAY_S,
        max_bytes=GIB,
        allow_msg_schedules=True,
        allow_rollup_hdrs=True,
        # The server schedules nothing in a stream that refuses when full.
        discard=DiscardPolicy.OLD,
    ),
    _queue("TELEMETRY", "telemetry.traces", max_age=DAY_S, max_bytes=GIB // 4, discard=DiscardPolicy.OLD),
    # What happens beside the logs of jobs. A tenant's notices are few; of more its own oldest go.
    _queue(
        "NOTICES",
        "notices.*.*",
        max_age=7 * DAY_S,
        max_bytes=GIB // 8,
        max_msgs_per_subject=NOTICES_PER_TENANT_MAX,
        discard=DiscardPolicy.OLD,
    ),
    # Without a tenant as older versions wrote them.
    _stream(
        "DEAD",
        "dead.*.*",
        "dead.*.*.*",
        max_age=30 * DAY_S,
        max_bytes=GIB,
        allow_direct=True,
        discard=DiscardPolicy.OLD,
    ),
    # The last probe of each service: written only to see whether writing works.
    _stream("PROBES", "probe.*", max_msgs_per_subject=1, max_bytes=GIB // 256, discard=DiscardPolicy.OLD),
    _stream("ADVISORY", *ADVISORIES, max_age=30 * DAY_S, max_bytes=GIB // 16, discard=DiscardPolicy.OLD),
)
"""Every stream, without the values that `Limits` sets."""


@dataclass(frozen=True)
class Limits:
    """What may differ between a laptop, a test and a cluster."""

    replicas: int = 1
    ack_wait_s: float = 10.0
    """How soon a killed executor's jobs are taken over."""
    submit_max: int = 100_000
    submit_max_per_tenant: int = 8_000
    """Of SUBMISSION_MAX_BYTES each: half of the stream."""
    index_max_per_tenant: int = 2_000
    """Of 256 KiB each, for what is larger is in the object store: a quarter of the stream."""
    dead_max_per_tenant: int = 1_000
    """Dead letters of one consumer; the tenant's next one pushes its oldest out."""
    events_max_bytes: int = 8 * GIB
    memory: bool = field(default=False, repr=False)
    """Keep streams in memory: only for tests that measure something else."""


def streams(limits: Limits) -> list[StreamConfig]:
    """Return every stream as it must be."""
    everywhere = {
        "num_replicas": limits.replicas,
        "storage": StorageType.MEMORY if limits.memory else StorageType.FILE,
    }
    bounds = {
        "SUBMIT": {"max_msgs": limits.submit_max, "max_msgs_per_subject": limits.submit_max_per_tenant},
        "EVENTS": {"max_bytes": limits.events_max_bytes},
        "INDEX": {"max_msgs_per_subject": limits.index_max_per_tenant},
        "DEAD": {"max_msgs_per_subject": limits.dead_max_per_tenant},
    }
    return [stream.evolve(**everywhere, **bounds.get(stream.name or "", {})) for stream in STREAMS]


def consumers(limits: Limits) -> list[Consumer]:
    """Return every consumer as it must be; the run lanes take their `ack_wait` from the limits."""
    return [
        replace(consumer, ack_wait_s=limits.ack_wait_s) if consumer.stream == "RUN" else consumer
        for consumer in CONSUMERS
    ]


async def declare(js: JetStreamContext, limits: Limits | None = None) -> AsyncIterator[str]:
    """Create what is missing and correct what has drifted; yield one line about each change."""
    limits = limits or Limits()
    for stream in streams(limits):
        async for change in _declare_stream(js, stream):
            yield change
    for consumer in consumers(limits):
        async for change in _declare_consumer(js, consumer):
            yield change
    for bucket in (PAYLOADS, UPLOADS):
        objects = _declare_objects(js, bucket, max_age_s=30 * DAY_S, max_bytes=8 * GIB, replicas=limits.replicas)
        async for change in objects:
            yield change
    async for change in _declare_objects(
        js,
        REPLIES,
        max_age_s=REPLIES_KEPT_S,
        max_bytes=REPLIES_MAX_BYTES,
        replicas=limits.replicas,
        storage=StorageType.MEMORY,
    ):
        yield change
    async for change in _declare_providers(js, max_age_s=DAY_S, replicas=limits.replicas):
        yield change


async def _declare_stream(js: JetStreamContext, wanted: StreamConfig) -> AsyncIterator[str]:
    assert wanted.name is not None
    try:
        present = (await js.stream_info(wanted.name)).config
    except NotFoundError:
        await js.add_stream(wanted)
        yield f"stream {wanted.name} created"
        return
    async for corrected in _correct(js, present, f"stream {wanted.name}", **_set_fields(wanted)):
        yield corrected


async def _declare_consumer(js: JetStreamContext, wanted: Consumer) -> AsyncIterator[str]:
    try:
        present = (await js.consumer_info(wanted.stream, wanted.name)).config
    except NotFoundError:
        await js.add_consumer(wanted.stream, wanted.config())
        yield f"consumer {wanted.stream}/{wanted.name} created"
        return
    drifted = _drift(_set_fields(wanted.config()), present)
    if drifted:
        await js.add_consumer(wanted.stream, present.evolve(**drifted))
        yield f"consumer {wanted.stream}/{wanted.name}: {', '.join(sorted(drifted))} corrected"


async def _declare_objects(
    js: JetStreamContext,
    bucket: str,
    *,
    max_age_s: float,
    max_bytes: int,
    replicas: int,
    storage: StorageType = StorageType.FILE,
) -> AsyncIterator[str]:
    what = f"object store {bucket}"
    try:
        present = (await js.stream_info(f"OBJ_{bucket}")).config
    except NotFoundError:
        config = ObjectStoreConfig(ttl=max_age_s, max_bytes=max_bytes, replicas=replicas, storage=storage)
        await js.create_object_store(bucket, config)
        present = (await js.stream_info(f"OBJ_{bucket}")).config
        await js.update_stream(present.evolve(**WITHOUT_ROLLUP))
        yield f"{what} created"
        return
    wanted = {"max_age": max_age_s, "max_bytes": max_bytes, "num_replicas": replicas, **WITHOUT_ROLLUP}
    async for corrected in _correct(js, present, what, **wanted):
        yield corrected


async def _declare_providers(js: JetStreamContext, *, max_age_s: float, replicas: int) -> AsyncIterator[str]:
    what = f"key-value bucket {PROVIDERS}"
    try:
        present = (await js.stream_info(f"KV_{PROVIDERS}")).config
    except NotFoundError:
        await js.create_key_value(KeyValueConfig(bucket=PROVIDERS, history=1, ttl=max_age_s, replicas=replicas))
        yield f"{what} created"
        return
    async for corrected in _correct(js, present, what, max_age=max_age_s, num_replicas=replicas):
        yield corrected


async def _correct(js: JetStreamContext, present: StreamConfig, what: str, **wanted: object) -> AsyncIterator[str]:
    drifted = _drift(wanted, present)
    if drifted:
        await js.update_stream(present.evolve(**drifted))
        yield f"{what}: {', '.join(sorted(drifted))} corrected"


def _set_fields(config: StreamConfig | ConsumerConfig) -> dict[str, Any]:
    """Return the fields that are set."""
    return {name: value for name, value in vars(config).items() if value is not None}


def _drift(wanted: dict[str, Any], present: object) -> dict[str, Any]:
    """Return the fields that differ in the server's configuration."""
    return {name: value for name, value in wanted.items() if getattr(present, name, None) != value}
