"""The services of Wayline, and groups of them in one process."""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from wayline.standalone.errors import UnknownService

if TYPE_CHECKING:
    from wayline.chassis import BusSettings, Service


log = structlog.get_logger()


@dataclass(frozen=True)
class Member:
    """A service; its identity on the bus is also its package's name."""

    identity: str
    schema: str | None = None
    vector: bool = False
    keys: str | None = None
    """The setting of the keys that are its own: with which it encrypts, or signs, what it stores."""
    stops: int = 1
    """Its turn when all stop: services that ask before those that answer, and last the one that takes all spans."""

    @property
    def name(self) -> str:
        """Return the name as people write it."""
        return self.identity.replace("_", "-")

    @property
    def role(self) -> str:
        """Return its role in the database."""
        return f"wayline_{self.identity}"

    def variable(self, setting: str) -> str:
        """Return the environment variable of one of its settings."""
        return f"WAYLINE_{self.identity.upper()}_{setting}"

    def migrations(self) -> Path:
        """Return the folder of its migrations, without importing the service."""
        return Path(str(files(f"wayline.{self.identity}") / "migrations"))

    def load(self) -> None:
        """Import its wiring, which takes most of the time of a start."""
        importlib.import_module(f"wayline.{self.identity}.app")

    def check_settings(self) -> None:
        """Read its settings. Raises WrongSetting."""
        importlib.import_module(f"wayline.{self.identity}.settings").Settings()

    def unknown_settings(self) -> list[str]:
        """Return a sentence for each variable with its prefix that is none of its settings, as if misspelled."""
        settings = importlib.import_module(f"wayline.{self.identity}.settings").Settings
        return [
            f"{variable} is no setting of {self.name}" + (f"; did you mean {nearest}?" if nearest else "")
            for variable, nearest in settings.unknown_variables(os.environ).items()
        ]

    def pool_size(self) -> int:
        """Return how many connections to the database one process of it may open."""
        if self.schema is None:
            return 0
        return importlib.import_module(f"wayline.{self.identity}.settings").Settings().pool_size

    async def build(self, settings: BusSettings, defaults: Mapping[str, object] | None = None) -> Service:
        """Return the service, connected but not started; `defaults` of its settings yield to the environment."""
        build = importlib.import_module(f"wayline.{self.identity}.app").build
        unset = {
            name: value for name, value in (defaults or {}).items() if not os.environ.get(self.variable(name.upper()))
        }
        if not unset:
            return await build(bus_settings=settings)
        own = importlib.import_module(f"wayline.{self.identity}.settings").Settings(**unset)
        return await build(own, bus_settings=settings)


MEMBERS = (
    Member("gateway", schema="gateway", stops=0),
    Member("router", schema="router"),
    Member("executor", keys="snapshot_keys", stops=0),
    Member("retrieval", schema="retrieval", vector=True),
    Member("tool_registry", schema="tools", keys="keys"),
    Member("notifier", schema="notifier", keys="keys"),
    Member("tracing", schema="tracing", stops=2),
)


def members(names: Iterable[str]) -> list[Member]:
    """Return the services of these names, each once. Raises UnknownService."""
    known = {member.identity: member for member in MEMBERS}
    chosen: dict[str, Member] = {}
    for name in names:
        identity = name.replace("-", "_")
        if identity not in known:
            raise UnknownService(name=name, known=[member.name for member in MEMBERS])
        chosen[identity] = known[identity]
    return list(chosen.values())


class ServiceGroup:
    """Services that share this process: started together, stopped in turns."""

    def __init__(
        self,
        members: Iterable[Member],
        settings_of: Callable[[Member], BusSettings],
        defaults_of: Callable[[Member], Mapping[str, object]] = lambda _: {},
    ) -> None:
        self._members = list(members)
        self._settings_of = settings_of
        self._defaults_of = defaults_of
        self._running: dict[Member, Service] = {}

    async def start(self, *, began: Callable[[Member], None] = lambda _: None) -> None:
        """Build and start every service; when one fails, stop the others again."""
        async with asyncio.TaskGroup() as starting:
            for member in self._members:
                starting.create_task(self._start(member, began))

    async def _start(self, member: Member, began: Callable[[Member], None]) -> None:
        for unknown in member.unknown_settings():
            log.warning("unknown setting", detail=unknown)
        service = await member.build(self._settings_of(member), self._defaults_of(member))
        self._running[member] = service
        await service.start()
        began(member)

    async def stop(self, grace_s: float | None = None) -> None:
        """Drain them in turns; `grace_s` bounds the work in hand of each, by default its own setting."""
        for turn in sorted({member.stops for member in self._running}):
            going = [member for member in self._running if member.stops == turn]
            ended = await asyncio.gather(*(self._stop(member, grace_s) for member in going), return_exceptions=True)
            for member, error in zip(going, ended, strict=True):
                # One service's error must not keep the others from stopping in order.
                if isinstance(error, Exception):
                    log.error("a service did not stop in order", service=member.name, error=repr(error))

    async def _stop(self, member: Member, grace_s: float | None) -> None:
        await self._running[member].stop(grace_s)
        self._running.pop(member, None)

    def stuck(self) -> str | None:
        """Return the first word of subjects on which one of them gets no ack from the bus; None: there are none."""
        return next((word for service in self._running.values() if (word := service.bus.stuck)), None)

    async def ready(self) -> dict[str, str]:
        """Return the state of each thing that each service needs, as `service.thing`."""
        states: dict[str, str] = {}
        for member, service in self._running.items():
            states |= {f"{member.name}.{need}": state for need, state in (await service.ready()).items()}
        return states
