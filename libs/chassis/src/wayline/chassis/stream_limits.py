"""The limits of streams and stores that an operator chooses: kept beside each of them, and there at the next start.

What is chosen stands in the stream's own metadata, so that `wayline migrate` and every start know it without being told
again. A default of a newer version, a hand-made change and a choice can be told apart: only the last is remembered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from nats.js.api import StorageType, StreamConfig

from wayline.chassis.topology import BUCKETS, REPLIES, STREAMS, BucketDeclaration, Consumer

CHOSEN: Final = "wayline.chosen"
"""The key of the metadata: what was chosen, as JSON by field."""
SIZED: Final = frozenset({stream.name or "" for stream in STREAMS} | {b.name for b in BUCKETS if b.max_bytes})
"""What has a limit of bytes."""
AGED: Final = frozenset(
    {stream.name or "" for stream in STREAMS if stream.max_age}
    | {bucket.name for bucket in BUCKETS if bucket.max_age_s and bucket.name != REPLIES}
)
"""What may be kept longer or shorter. Work that waits has no age: it would vanish."""


@dataclass(frozen=True)
class Limits:
    """What an operator chooses; None, or not named: as it was chosen before, else the default."""

    replicas: int | None = None
    ack_wait_s: float | None = None
    """How soon a killed executor's jobs are taken over."""
    submit_max_per_tenant: int | None = None
    index_max_per_tenant: int | None = None
    dead_max_per_tenant: int | None = None
    max_bytes: Mapping[str, int] = field(default_factory=dict[str, int])
    """By stream or store."""
    max_age_s: Mapping[str, float] = field(default_factory=dict[str, float])
    """By stream or store. Payloads are kept at least as long as the logs that refer to them."""
    memory: bool = field(default=False, repr=False)
    """Keep streams in memory: only for tests that measure something else."""

    def of(self, name: str) -> dict[str, Any]:
        """Return the fields that are chosen for a stream or a store."""
        per_tenant = {
            "SUBMIT": self.submit_max_per_tenant,
            "INDEX": self.index_max_per_tenant,
            "DEAD": self.dead_max_per_tenant,
        }
        fields = {
            "num_replicas": self.replicas,
            "max_msgs_per_subject": per_tenant.get(name),
            "max_bytes": self.max_bytes.get(name),
            "max_age": self.max_age_s.get(name),
        }
        return {name: value for name, value in fields.items() if value is not None}

    def of_consumer(self, consumer: Consumer) -> dict[str, Any]:
        """Return the fields that are chosen for a consumer."""
        chosen = self.ack_wait_s if consumer.stream == "RUN" else None
        return {} if chosen is None else {"ack_wait": chosen}


def remembered(metadata: Mapping[str, str] | None) -> dict[str, Any]:
    """Return what was chosen before, by the metadata of a stream or a consumer."""
    return orjson.loads((metadata or {}).get(CHOSEN, "{}"))


def wanted_stream(stream: StreamConfig, limits: Limits, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a stream as they must be: the default, what was chosen before, what is chosen now."""
    chosen = {**before, **limits.of(stream.name or "")}
    storage = StorageType.MEMORY if limits.memory else StorageType.FILE
    fields = {name: value for name, value in vars(stream).items() if value is not None}
    return {**fields, "storage": storage, "num_replicas": 1, **chosen}


def wanted_bucket(bucket: BucketDeclaration, limits: Limits, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a bucket as they must be, of those that may differ."""
    sizes = {} if bucket.max_bytes is None else {"max_bytes": bucket.max_bytes}
    # No update changes where it is stored: only that of replies is made anew.
    anew = {"storage": StorageType.FILE} if bucket.name == REPLIES else {}
    fields = {"max_age": bucket.max_age_s, "num_replicas": 1, **sizes, **anew}
    return {**fields, **before, **limits.of(bucket.name)}
