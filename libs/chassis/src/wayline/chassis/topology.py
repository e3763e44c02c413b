"""The streams and consumers of the bus, one work queue for each purpose; only `wayline migrate` declares them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DeliverPolicy,
    DiscardPolicy,
    RePublish,
    RetentionPolicy,
    StreamConfig,
)

from wayline.contracts.jobs import backlog_of, waiting_of

DAY_S = 86_400.0
GIB = 1024**3
PAYLOADS = "PAYLOADS"
"""The object store of large fields; they age out, and nobody may purge it."""
UPLOADS = "UPLOADS"
"""The object store of uploaded documents' large fields; retrieval purges them with their document."""
REPLIES = "REPLIES"
"""The object store of large replies, gone before long. On disk: a NATS server that restarts forgets one in memory."""
REPLIES_KEPT_S = 60.0
"""Longer than a request waits for its answer and for what that has stored."""
REPLIES_MAX_BYTES = GIB // 4
PROVIDERS = "PROVIDERS"
CONTROLS = "CONTROLS"
"""The key-value bucket of pauses and limits, by which executors know whether they have to ask."""
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
RUN_WAITING = {
    lane: replace(lane, name=waiting_of(lane.name), service="router", subject=f"jobs.run.{waiting_of(lane.name)}.*")
    for lane in (RUN_INTERACTIVE, RUN_BATCH)
}
"""Of each lane, the tickets that wait for their tenant's turn. Nobody pulls them: these consumers only count."""
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
    *RUN_WAITING.values(),
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
        max_msgs=100_000,
        # Of SUBMISSION_MAX_BYTES each: half of the stream.
        max_msgs_per_subject=8_000,
        max_bytes=2 * GIB,
        max_msg_size=SUBMISSION_MAX_BYTES,
        duplicate_window=0.1,
    ),
    _queue("RUN", "jobs.run.*.*", max_bytes=GIB),
    _queue(
        "INDEX",
        "documents.index.*",
        discard_new_per_subject=True,
        # Of 256 KiB each, for what is larger is in the object store: a quarter of the stream.
        max_msgs_per_subject=2_000,
        max_bytes=2 * GIB,
    ),
    _stream(
        "EVENTS",
        "events.*.*",
        max_age=30 * DAY_S,
        max_bytes=8 * GIB,
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
        # Of one consumer; the tenant's next one pushes its oldest out.
        max_msgs_per_subject=1_000,
        allow_direct=True,
        discard=DiscardPolicy.OLD,
    ),
    # The last probe of each service: written only to see whether writing works.
    _stream("PROBES", "probe.*", max_msgs_per_subject=1, max_bytes=GIB // 256, discard=DiscardPolicy.OLD),
    _stream("ADVISORY", *ADVISORIES, max_age=30 * DAY_S, max_bytes=GIB // 16, discard=DiscardPolicy.OLD),
)
"""Every stream, with the limits that nobody has chosen otherwise."""


@dataclass(frozen=True)
class BucketDeclaration:
    """An object store or a key-value bucket, with the limits that nobody has chosen otherwise."""

    name: str
    max_age_s: float
    max_bytes: int | None = None
    key_value: bool = False

    @property
    def stream(self) -> str:
        """Return the stream that holds it."""
        return f"{'KV' if self.key_value else 'OBJ'}_{self.name}"

    def __str__(self) -> str:
        return f"{'key-value bucket' if self.key_value else 'object store'} {self.name}"


BUCKETS = (
    BucketDeclaration(PAYLOADS, max_age_s=30 * DAY_S, max_bytes=8 * GIB),
    BucketDeclaration(UPLOADS, max_age_s=30 * DAY_S, max_bytes=8 * GIB),
    BucketDeclaration(REPLIES, max_age_s=REPLIES_KEPT_S, max_bytes=REPLIES_MAX_BYTES),
    BucketDeclaration(PROVIDERS, max_age_s=DAY_S, key_value=True),
    BucketDeclaration(CONTROLS, max_age_s=0, key_value=True),
)
