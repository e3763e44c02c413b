"""The bus: reachable, fsync on every write, every stream and consumer as declared, no dead letters."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence

import httpx2
from nats.js import JetStreamContext
from nats.js.api import StreamInfo
from nats.js.errors import NotFoundError

from wayline.chassis.declare import consumer_drift, stores
from wayline.chassis.stream_limits import Limits
from wayline.chassis.topology import BUCKETS, CONSUMERS, STREAMS
from wayline.standalone.doctor.finding import Finding, Findings, note, ok, problem, warning
from wayline.standalone.errors import NoServers
from wayline.standalone.settings import Settings
from wayline.standalone.setup.installation import Installation
from wayline.standalone.setup.migrate import find_servers
from wayline.standalone.setup.migrations import administering

WAIT_S = 2.0
BEHIND_NAMED_MAX = 3
"""Streams that are named of a server that is behind."""
MIGRATE = "run `wayline migrate`"


async def examine_bus(settings: Settings, installation: Installation) -> Findings:
    """Examine the bus as far as it can be reached."""
    if not settings.nats_url and installation.running() is None:
        yield note("bus", "not running", "`wayline up` starts it")
        return
    try:
        access = find_servers(settings, installation)
    except NoServers as error:
        yield problem("bus", str(error), "set WAYLINE_POSTGRES_DSN")
        return
    try:
        async with administering(access, wait_s=WAIT_S) as js:
            yield ok("bus", f"answers at {access.nats_address}")
            async for finding in _examine_streams(js, settings.limits):
                yield finding
    except Exception as error:
        yield problem(
            "bus", str(error) or type(error).__name__, "check that the server runs and that WAYLINE_NATS_URL is right"
        )
        return
    yield await _sync(settings, installation, own=access.own_bus)


async def _examine_streams(js: JetStreamContext, limits: Limits) -> Findings:
    found = await stores(js, limits)
    wrong = [f"{store} is missing" for store in found if store.present is None]
    for store in found:
        if store.present is not None and (drift := store.drift(allow_shrink=False)):
            wrong.append(f"{store}: {', '.join(sorted(drift))} differ")
    wrong += [text async for text in _wrong_consumers(js, limits)]
    if wrong:
        yield problem("streams", "; ".join(wrong), MIGRATE)
    else:
        yield ok("streams", f"{len(found)} streams and {len(CONSUMERS)} consumers are as declared")
    if all(store.present is not None for store in found) and (copies := await examine_copies(js)) is not None:
        yield copies
    yield _dead_letters(await _letters(js))


async def examine_copies(js: JetStreamContext) -> Finding | None:
    """Examine the copies of each stream in a cluster; None: the bus is one server."""
    names = (*(stream.name or "" for stream in STREAMS), *(bucket.stream for bucket in BUCKETS))
    # One by one: a list of all waits for every server, also for one that is away.
    found = [await js.stream_info(name) for name in names]
    return judge_copies(found)


def judge_copies(found: Sequence[StreamInfo]) -> Finding | None:
    """Return what there is to say of the copies of these streams; None: the bus is one server."""
    streams = [one for one in found if one.cluster is not None and one.cluster.name]
    if not streams:
        return None
    single = [stream.config.name or "" for stream in streams if (stream.config.num_replicas or 1) < 3]
    if named := _not_current(streams):
        return problem("copies", "; ".join(named), "start that server, or see its log; jobs go on without it")
    if single:
        return warning("copies", f"{', '.join(single)}: lost with its one server", "run `wayline migrate --replicas 3`")
    return ok("copies", f"{len(streams)} streams on every server that they need")


def _not_current(streams: Sequence[StreamInfo]) -> list[str]:
    """Return of each server that lacks something whether it is away, or how far it is behind and where most."""
    away: Counter[str] = Counter()
    behind: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for stream in streams:
        for copy in (stream.cluster and stream.cluster.replicas) or ():
            if copy.offline:
                away[copy.name or "?"] += 1
            elif not copy.current:
                behind[copy.name or "?"][stream.config.name or ""] = copy.lag or 0
    told = [f"server {name} is away, with its copies of {n} streams" for name, n in away.items()]
    for name, lags in behind.items():
        most = sorted(lags.items(), key=lambda lag: -lag[1])[:BEHIND_NAMED_MAX]
        lacks = ", ".join(f"{lag:,} entries of {stream}" for stream, lag in most if lag)
        told.append(f"server {name} is behind in {len(lags)} of its streams{f' and lacks {lacks}' if lacks else ''}")
    return told


async def _letters(js: JetStreamContext) -> int:
    try:
        return (await js.stream_info("DEAD")).state.messages
    except NotFoundError:
        return 0


async def _wrong_consumers(js: JetStreamContext, limits: Limits) -> AsyncIterator[str]:
    for consumer in CONSUMERS:
        try:
            present = (await js.consumer_info(consumer.stream, consumer.name)).config
        except NotFoundError:
            yield f"consumer {consumer.stream}/{consumer.name} is missing"
            continue
        if drift := consumer_drift(consumer, present, limits):
            yield f"consumer {consumer.stream}/{consumer.name}: {', '.join(sorted(drift))} differ"


def _dead_letters(waiting: int) -> Finding:
    if waiting:
        return warning("dead letters", f"{waiting} are waiting", "`wayline dead-letters list` shows them")
    return ok("dead letters", "none")


async def _sync(settings: Settings, installation: Installation, *, own: bool) -> Finding:
    """Examine whether acknowledged writes are on disk; ask the server where it has a monitoring page."""
    url = settings.nats_monitor_url or (
        f"http://127.0.0.1:{settings.nats_monitor_port}" if settings.nats_monitor_port else None
    )
    if url is not None:
        async with httpx2.AsyncClient(trust_env=False, timeout=WAIT_S) as http:
            config = (await http.get(f"{url}/varz")).json()["jetstream"]["config"]
        always = bool(config.get("sync_always"))
    elif own and settings.nats_url is None:
        always = "sync_interval: always" in _lines(installation)
    else:
        return note("sync", "unknown: the server's monitoring page is not set", "set WAYLINE_NATS_MONITOR_URL")
    if always:
        return ok("sync", "every write is on disk before it is acknowledged")
    return problem(
        "sync",
        "the bus acknowledges before it writes to disk: a power cut loses accepted jobs",
        "set `sync_interval: always` in the server's jetstream block",
    )


def _lines(installation: Installation) -> str:
    conf = installation.nats / "nats.conf"
    return conf.read_text() if conf.exists() else ""
