"""Declare the streams, consumers and buckets of the bus: what is missing is made, what has drifted is corrected.

Nothing becomes smaller or less durable by itself: a limit that an operator raised by hand stays, and a choice of less
than there is needs to be allowed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import orjson
from nats.js import JetStreamContext
from nats.js.api import ConsumerConfig, KeyValueConfig, ObjectStoreConfig, StreamConfig
from nats.js.errors import NotFoundError

from wayline.chassis.connection.leaders import once_led
from wayline.chassis.stream_limits import CHOSEN, Limits, remembered, wanted_bucket, wanted_stream
from wayline.chassis.topology import (
    BUCKETS,
    CONSUMERS,
    PAYLOADS,
    REPLIES,
    STREAMS,
    WITHOUT_ROLLUP,
    BucketDeclaration,
    Consumer,
)
from wayline.contracts.errors import WaylineError

SHRINKABLE: Final = ("max_bytes", "max_age", "max_msgs", "max_msgs_per_subject", "num_replicas")
"""The fields in which less means that something goes, or is refused sooner."""
LOG: Final = "EVENTS"


class WouldShrink(WaylineError):
    """A limit is chosen lower than what is there."""

    def __init__(self, changes: Sequence[str]) -> None:
        super().__init__(
            f"{'; '.join(changes)}. What is there may go with it: `wayline migrate --allow-shrink` does it, "
            "or choose at least as much."
        )


@dataclass(frozen=True)
class Store:
    """A stream or a bucket as it is, and as it must be."""

    declared: StreamConfig | BucketDeclaration
    present: StreamConfig | None
    wanted: dict[str, Any]
    chosen: dict[str, Any]
    """Of the wanted fields those that an operator chose, now or before."""
    now: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Of the chosen ones those of this run."""

    def __str__(self) -> str:
        return str(self.declared) if isinstance(self.declared, BucketDeclaration) else f"stream {self.declared.name}"

    def shrinking(self) -> dict[str, Any]:
        """Return the fields in which less is wanted than there is, with what is there."""
        if self.present is None:
            return {}
        there = {name: getattr(self.present, name) for name in SHRINKABLE if name in self.wanted}
        return {name: value for name, value in there.items() if _room(self.wanted[name]) < _room(value)}

    def drift(self, *, allow_shrink: bool) -> dict[str, Any]:
        """Return the fields that differ, as they must be; only what this run chose may shrink."""
        assert self.present is not None
        kept = {name: value for name, value in self.shrinking().items() if not (allow_shrink and name in self.now)}
        wanted = {**self.wanted, **kept}
        differing = {name: value for name, value in wanted.items() if getattr(self.present, name, None) != value}
        return {**differing, **_metadata(self.chosen, self.present.metadata)}


async def stores(js: JetStreamContext, limits: Limits) -> list[Store]:
    """Return every stream and bucket as it is, and as these limits and those chosen before want it."""
    found = [await _stream(js, stream, limits) for stream in STREAMS]
    found += [await _bucket(js, bucket, limits) for bucket in BUCKETS]
    [log] = [store for store in found if store.declared.name == LOG]
    return [_kept_with(log, store) if store.declared.name == PAYLOADS else store for store in found]


def _kept_with(log: Store, payloads: Store) -> Store:
    """Return the payloads kept at least as long as the log: one whose payloads are gone cannot be read."""
    age, now = {**log.wanted, **log.shrinking()}["max_age"], payloads.now
    if "max_age" in log.now and log.present and payloads.present and log.present.max_age == payloads.present.max_age:
        # They were as old as the log, and what is chosen for it, also less, is chosen for them.
        age = log.wanted["max_age"]
        now = {**now, "max_age": age}
    wanted = {**payloads.wanted, "max_age": max(payloads.wanted["max_age"], age, key=_room)}
    return replace(payloads, wanted=wanted, now=now)


async def declare(
    js: JetStreamContext, limits: Limits | None = None, *, allow_shrink: bool = False
) -> AsyncIterator[str]:
    """Create what is missing and correct what has drifted; yield one line about each change. Raises WouldShrink."""
    limits = limits or Limits()
    found = await stores(js, limits)
    if not allow_shrink and (shrinking := list(_refused(found))):
        raise WouldShrink(shrinking)
    for store in found:
        async for change in _declare_store(js, store, allow_shrink=allow_shrink):
            yield change
    for consumer in CONSUMERS:
        async for change in _declare_consumer(js, consumer, limits):
            yield change


def consumer_drift(consumer: Consumer, present: ConsumerConfig, limits: Limits) -> dict[str, Any]:
    """Return the fields in which a consumer differs, as they must be."""
    chosen = {**remembered(present.metadata), **limits.of_consumer(consumer)}
    wanted = {**_set_fields(consumer.config()), **chosen}
    differing = {name: value for name, value in wanted.items() if getattr(present, name, None) != value}
    return {**differing, **_metadata(chosen, present.metadata)}


def _refused(found: Sequence[Store]) -> Iterator[str]:
    """Yield what this run would make smaller, in words."""
    for store in found:
        for name, there in store.shrinking().items():
            if name in store.now:
                yield f"{store}: {name} is {there} and would become {store.wanted[name]}"


def _room(value: float | None) -> float:
    """Return a limit as a number that can be compared: none, zero and -1 are no limit."""
    return value if value is not None and value > 0 else float("inf")


def _told(drift: Mapping[str, Any]) -> str:
    """Return what a correction changes, in words."""
    fields = sorted(drift.keys() - {"metadata"})
    return f"{', '.join(fields)} corrected" if fields else "what was chosen is kept"


def _metadata(chosen: Mapping[str, Any], present: Mapping[str, str] | None) -> dict[str, Any]:
    """Return the metadata field where it does not say what was chosen; empty: it does."""
    if remembered(present) == chosen:
        return {}
    # Keys with an underscore are the server's own, which it writes itself.
    others = {name: value for name, value in (present or {}).items() if not name.startswith("_")}
    return {"metadata": {**others, CHOSEN: orjson.dumps(chosen, option=orjson.OPT_SORT_KEYS).decode()}}


async def _present(js: JetStreamContext, name: str) -> StreamConfig | None:
    try:
        return (await once_led(partial(js.stream_info, name))).config
    except NotFoundError:
        return None


async def _stream(js: JetStreamContext, stream: StreamConfig, limits: Limits) -> Store:
    name = stream.name or ""
    present = await _present(js, name)
    before, now = remembered(present and present.metadata), limits.of(name)
    return Store(stream, present, wanted_stream(stream, limits, before), {**before, **now}, now)


async def _bucket(js: JetStreamContext, bucket: BucketDeclaration, limits: Limits) -> Store:
    present = await _present(js, bucket.stream)
    before, now = remembered(present and present.metadata), limits.of(bucket.name)
    wanted = wanted_bucket(bucket, limits, before)
    if not bucket.key_value:
        wanted |= WITHOUT_ROLLUP
    return Store(bucket, present, wanted, {**before, **now}, now)


async def _declare_store(js: JetStreamContext, store: Store, *, allow_shrink: bool) -> AsyncIterator[str]:
    if store.present is None:
        await _create(js, store)
        yield f"{store} created"
        return
    if drift := store.drift(allow_shrink=allow_shrink):
        if "storage" in drift and store.declared.name == REPLIES:
            # It was in memory, which no update changes. What it holds is gone in a minute anyway; no other is emptied.
            await js.delete_stream(store.present.name or "")
            await _create(js, store)
            yield f"{store} made anew, on disk"
            return
        await js.update_stream(store.present.evolve(**drift))
        yield f"{store}: {_told(drift)}"


async def _create(js: JetStreamContext, store: Store) -> None:
    kept = _metadata(store.chosen, None)
    if isinstance(store.declared, StreamConfig):
        await js.add_stream(store.declared.evolve(**store.wanted, **kept))
        return
    bucket, wanted = store.declared, store.wanted
    age, copies = wanted["max_age"], wanted["num_replicas"]
    if bucket.key_value:
        await js.create_key_value(KeyValueConfig(bucket=bucket.name, history=1, ttl=age, replicas=copies))
    else:
        size = wanted["max_bytes"]
        made = ObjectStoreConfig(ttl=age, max_bytes=size, replicas=copies)
        await js.create_object_store(bucket.name, made)
    # The client's own functions take neither of these.
    more = {**({} if bucket.key_value else WITHOUT_ROLLUP), **kept}
    if more:
        await js.update_stream((await js.stream_info(bucket.stream)).config.evolve(**more))


async def _declare_consumer(js: JetStreamContext, consumer: Consumer, limits: Limits) -> AsyncIterator[str]:
    what = f"consumer {consumer.stream}/{consumer.name}"
    try:
        present = (await once_led(partial(js.consumer_info, consumer.stream, consumer.name))).config
    except NotFoundError:
        chosen = limits.of_consumer(consumer)
        await js.add_consumer(consumer.stream, consumer.config().evolve(**chosen, **_metadata(chosen, None)))
        yield f"{what} created"
        return
    if drift := consumer_drift(consumer, present, limits):
        await js.add_consumer(consumer.stream, present.evolve(**drift))
        yield f"{what}: {_told(drift)}"


def _set_fields(config: ConsumerConfig) -> dict[str, Any]:
    """Return the fields that are set."""
    return {name: value for name, value in vars(config).items() if value is not None}
