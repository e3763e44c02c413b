"""The streams of a test: new ones in the place of what the test before has used, in a tenth of the requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import Any

from wayline.chassis import Bus
from wayline.chassis.connection.leaders import once_led
from wayline.chassis.declare import declare
from wayline.chassis.stream_limits import Limits

API = "$JS.API"
OF_THE_SERVER = "_nats."
"""What the server adds to the metadata of a stream or consumer."""
ANSWER_WITHIN_S = 10.0
LED_WITHIN_S = 2.0
"""How long one try waits for a cluster that may have no leader yet."""

Values = dict[str, Any]


@dataclass(frozen=True)
class _Declared:
    """What `declare` makes for some limits, as the server describes it."""

    streams: Mapping[str, Values]
    consumers: Mapping[tuple[str, str], Values]


async def make_streams(bus: Bus, limits: Limits | None, *, is_used: bool) -> None:
    """Declare the streams, none where there are no limits; first take away those of a test that has used the server."""
    known = None if limits is None else _known().get(_key(limits))
    kept = await _take_away(bus, known) if is_used else frozenset()
    if limits is None:
        return
    if known is None or not (is_used or await _is_empty(bus)):
        async for _ in declare(bus.js, limits):
            pass
        _known().setdefault(_key(limits), await _describe(bus))
        return
    missing = {name: config for name, config in known.streams.items() if name not in kept}
    await asyncio.gather(*(_ask(bus, f"STREAM.CREATE.{name}", config) for name, config in missing.items()))
    consumers = {place: config for place, config in known.consumers.items() if place[0] in missing}
    await asyncio.gather(
        *(
            _ask(bus, f"CONSUMER.DURABLE.CREATE.{stream}.{name}", {"stream_name": stream, "config": config})
            for (stream, name), config in consumers.items()
        )
    )


@cache
def _known() -> dict[str, _Declared]:
    """Return what was declared in this process, for the limits it was declared for."""
    return {}


def _key(limits: Limits) -> str:
    return json.dumps(asdict(limits), sort_keys=True)


async def _take_away(bus: Bus, known: _Declared | None) -> frozenset[str]:
    """Delete the streams of an earlier test; return those that stay, because it has not touched them."""
    present = await _streams(bus)
    kept = frozenset(stream["config"]["name"] for stream in present if known and _is_as_declared(stream, known))
    gone = [stream["config"]["name"] for stream in present if stream["config"]["name"] not in kept]
    await asyncio.gather(*(_ask(bus, f"STREAM.DELETE.{name}") for name in gone))
    return kept


def _is_as_declared(stream: Values, known: _Declared) -> bool:
    """Return whether a stream has never had a message, and no consumer, whose requests could still wait in it."""
    config, state = _ours(stream["config"]), stream["state"]
    return config == known.streams.get(config["name"]) and not state["last_seq"] and not state["consumer_count"]


async def _is_empty(bus: Bus) -> bool:
    # A cluster that has just begun drops what it is asked before it has a leader.
    return not await once_led(partial(_streams, bus, within_s=LED_WITHIN_S))


async def _describe(bus: Bus) -> _Declared:
    streams = {stream["config"]["name"]: _ours(stream["config"]) for stream in await _streams(bus)}
    listed = [await _ask(bus, f"CONSUMER.LIST.{name}") for name in streams]
    consumers = {
        (one["stream_name"], one["name"]): _ours(one["config"]) for answer in listed for one in answer["consumers"]
    }
    return _Declared(streams, consumers)


async def _streams(bus: Bus, *, within_s: float = ANSWER_WITHIN_S) -> list[Values]:
    return (await _ask(bus, "STREAM.LIST", within_s=within_s))["streams"] or []


def _ours(config: Values) -> Values:
    metadata = config.get("metadata") or {}
    return {**config, "metadata": {name: one for name, one in metadata.items() if not name.startswith(OF_THE_SERVER)}}


async def _ask(bus: Bus, what: str, body: Values | None = None, *, within_s: float = ANSWER_WITHIN_S) -> Values:
    encoded = b"" if body is None else json.dumps(body).encode()
    answer = json.loads((await bus.nc.request(f"{API}.{what}", encoded, timeout=within_s)).data)
    assert "error" not in answer, (what, answer["error"])
    return answer
