"""A service: its handlers bound to the bus, started, watched and drained."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import structlog
import uvloop

from wayline.chassis.connection.bus import SETTLED_WITHIN_S, Bus
from wayline.chassis.deaf_servers import DeafServers
from wayline.chassis.draining import DRAINED, Draining
from wayline.chassis.handling.responder import Ask, Responder
from wayline.chassis.handling.worker import Work, Worker
from wayline.chassis.logs import plain
from wayline.chassis.loop_lag import LoopLag
from wayline.chassis.loop_pauses import shorten_pauses
from wayline.chassis.probes import ProbeServer, probes, server
from wayline.chassis.process_secrets import keep_secrets
from wayline.chassis.settings import BusSettings
from wayline.chassis.stored_report import StoredReport
from wayline.contracts.errors import WaylineError, WrongSetting
from wayline.telemetry import BusExporter, Telemetry, metrics

log = structlog.get_logger()

SPANS_SUBJECT = "telemetry.traces"

S = TypeVar("S")
CHECK_WITHIN_S = 3.0
"""How long one thing that a service needs may take to show that it works."""
WELL_FRESH_S = 5.0
ILL_FRESH_S = 1.0
"""How long the result of a check is used again: each check is a write."""


class Part(Protocol):
    """Anything that runs beside the handlers: an HTTP server, a poller, the executor's job loop."""

    async def start(self) -> None: ...

    async def stop(self, grace_s: float) -> None: ...


@dataclass
class Service:
    """What a service is made of; `app.py` builds one, connected. `close` gives back last what handlers work with."""

    name: str
    settings: BusSettings
    bus: Bus
    telemetry: Telemetry
    exporter: BusExporter
    work: Sequence[Work[Any]] = ()
    asks: Sequence[Ask[Any]] = ()
    parts: Sequence[Part] = ()
    reports_stored: bool = True
    """Whether this process reports to the router what it stores for each tenant; the router itself does not."""
    needs: dict[str, Callable[[], Awaitable[None]]] = field(default_factory=dict)
    close: Callable[[], Awaitable[None]] | None = None

    _checked: tuple[float, asyncio.Task[dict[str, str]] | None] = field(default=(0.0, None), init=False)
    _draining: Draining = field(init=False)
    _running: list[Part] = field(default_factory=list, init=False)
    _http: tuple[ProbeServer, asyncio.Task[None]] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._draining = Draining(self.name, self.ready)

    async def start(self) -> None:
        """Bind every handler, start every part, open the probes; ready when this returns."""
        self.exporter.start(self._send_spans)
        self._running = [
            *self.parts,
            LoopLag(self.name),
            DeafServers(self.bus),
            *([StoredReport(self.bus)] if self.reports_stored else ()),
            *(Responder(self.bus, self.telemetry, ask) for ask in (*self._draining.asks(), *self.asks)),
            *(Worker(self.bus, self.telemetry, work, self.settings) for work in self.work),
        ]
        self._draining.watch(self._running)
        for part in self._running:
            await part.start()
        await self.bus.settled(within_s=max(self.settings.connect_wait_s, SETTLED_WITHIN_S))
        if self.settings.health_port is not None:
            http = server(probes(self.ready), host=self.settings.health_host, port=self.settings.health_port)
            self._http = http, asyncio.create_task(http.serve())
        log.info("ready", service=self.name)

    async def _send_spans(self, batch: bytes) -> None:
        await self.bus.nc.publish(SPANS_SUBJECT, batch)

    async def ready(self) -> dict[str, str]:
        """Return the state of each thing this service needs: `ok` where a write has just worked, else the error."""
        now = time.monotonic()
        until, checking = self._checked
        # One check answers all probes that come at the same time or soon after it.
        if checking is None or (checking.done() and now >= until):
            checking = asyncio.create_task(self._check())
            self._checked = now, checking
        states = dict(await asyncio.shield(checking))
        return states if self._draining.drained_at is None else {**states, "work": DRAINED}

    async def _check(self) -> dict[str, str]:
        checks = {"bus": self.bus.check, **self.needs}
        results = await asyncio.gather(*(_check_result(check) for check in checks.values()))
        states = dict(zip(checks, results, strict=True))
        for need, state in states.items():
            metrics.need_met.labels(self.name, need).set(state == "ok")
        well = all(state == "ok" for state in states.values())
        self._checked = time.monotonic() + (WELL_FRESH_S if well else ILL_FRESH_S), self._checked[1]
        return states

    async def stop(self, grace_s: float | None = None) -> None:
        """Unsubscribe, finish the work in hand within the grace, send the last spans, leave the bus."""
        grace = self.settings.drain_grace_s if grace_s is None else grace_s
        # An earlier result says nothing about a service that is being stopped.
        self._checked = 0.0, None
        parts = self._running[::-1]
        ended = await asyncio.gather(*(part.stop(grace) for part in parts), return_exceptions=True)
        for part, error in zip(parts, ended, strict=True):
            if error is not None:
                # One part's error must not end the others' grace, nor skip the steps below.
                log.error("not stopped", service=self.name, part=type(part).__name__, error=repr(error), exc_info=error)
        await self.exporter.stop()
        if self._http is not None:
            self._http[0].should_exit = True
            await self._http[1]
        if self.close is not None:
            await self.close()
        await self.bus.close()


async def _check_result(check: Callable[[], Awaitable[None]]) -> str:
    """Return `ok`, or the error of a check that fails or takes too long."""
    try:
        await asyncio.wait_for(check(), CHECK_WITHIN_S)
    except TimeoutError:
        return f"no answer within {CHECK_WITHIN_S:g} s"
    except Exception as error:
        return str(error) or type(error).__name__
    return "ok"


async def connected(
    settings: BusSettings, name: str, open_store: Callable[[], Awaitable[S]], *, key_ids: Sequence[str] = ()
) -> tuple[Bus, S]:
    """Connect to the bus and to the service's tables; leave the bus again when the tables cannot be reached."""
    bus = await Bus.connect(settings, service=name, key_ids=key_ids)
    try:
        return bus, await open_store()
    except BaseException:
        await bus.close()
        raise


Build = Callable[[], Awaitable[Service]]


async def run(build: Build) -> None:
    """Run one service until SIGTERM or SIGINT: the first drains it, a second one ends it at once."""
    stop, hurry = asyncio.Event(), asyncio.Event()

    def on_signal() -> None:
        (hurry if stop.is_set() else stop).set()

    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, on_signal)
    service = await build()
    await service.start()
    shorten_pauses()
    await stop.wait()
    draining = asyncio.create_task(service.stop())
    hurried = asyncio.create_task(hurry.wait())
    await asyncio.wait({draining, hurried}, return_when=asyncio.FIRST_COMPLETED)
    hurried.cancel()
    if draining.done():
        return draining.result()
    draining.cancel()
    await asyncio.gather(draining, return_exceptions=True)
    await service.stop(0)


def main(build: Build) -> None:
    """Run a service as its `__main__`: print an error that says what to do as one line, not as a traceback."""
    plain()
    keep_secrets()
    try:
        uvloop.run(run(build))
    except WrongSetting as error:
        print(f"wayline: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    except WaylineError as error:
        raise SystemExit(f"wayline: {error}") from None
