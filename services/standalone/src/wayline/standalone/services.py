"""The services there are, and how several of them live in one process."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Iterable
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
    """A service: its identity on the bus is its package's name too."""

    identity: str
    schema: str | None = None
    vector: bool = False
    stops: int = 1
    """Its turn when all stop: who asks goes before who answers, and who hears everybody's spans is last."""

    @property
    def name(self) -> str:
        """As people write it."""
        return self.identity.replace("_", "-")

    @property
    def role(self) -> str:
        """Its role in the database."""
        return f"wayline_{self.identity}"

    def migrations(self) -> Path:
        """Where its migrations are, without importing the service."""
        return Path(str(files(f"wayline.{self.identity}") / "migrations"))

    def load(self) -> None:
        """Import its wiring: most of what a start costs."""
        importlib.import_module(f"wayline.{self.identity}.app")

    def check_settings(self) -> None:
        """Read its settings. Raises WrongSetting."""
        importlib.import_module(f"wayline.{self.identity}.settings").Settings()

    async def build(self, settings: BusSettings) -> Service:
        """The service, connected but not started."""
        return await importlib.import_module(f"wayline.{self.identity}.app").build(bus_settings=settings)


MEMBERS = (
    Member("gateway", schema="gateway", stops=0),
    Member("router", schema="router"),
    Member("executor", stops=0),
    Member("retrieval", schema="retrieval", vector=True),
    Member("tool_registry", schema="tools"),
    Member("tracing", schema="tracing", stops=2),
)


def members(names: Iterable[str]) -> list[Member]:
    """The services of these names, each once. Raises UnknownService."""
    known = {member.identity: member for member in MEMBERS}
    chosen: dict[str, Member] = {}
    for name in names:
        identity = name.replace("-", "_")
        if identity not in known:
            raise UnknownService(name=name, known=[member.name for member in MEMBERS])
        chosen[identity] = known[identity]
    return list(chosen.values())


class Fleet:
    """Services that share this process: started together, stopped in turn."""

    def __init__(self, crew: Iterable[Member], settings_of: Callable[[Member], BusSettings]) -> None:
        self._crew = list(crew)
        self._settings_of = settings_of
        self._aboard: dict[Member, Service] = {}

    async def start(self, *, began: Callable[[Member], None] = lambda _: None) -> None:
        """Build and start every service; when one cannot, the others are stopped again."""
        async with asyncio.TaskGroup() as starting:
            for member in self._crew:
                starting.create_task(self._start(member, began))

    async def _start(self, member: Member, began: Callable[[Member], None]) -> None:
        service = await member.build(self._settings_of(member))
        self._aboard[member] = service
        await service.start()
        began(member)

    async def stop(self, grace_s: float | None = None) -> None:
        """Drain them in turn; `grace_s` is what each may take for the work in hand, its own setting by default."""
        for turn in sorted({member.stops for member in self._aboard}):
            going = [member for member in self._aboard if member.stops == turn]
            ended = await asyncio.gather(*(self._stop(member, grace_s) for member in going), return_exceptions=True)
            for member, error in zip(going, ended, strict=True):
                # What one could not put away must not keep the others from it; what is durable is on the bus.
                if isinstance(error, Exception):
                    log.error("a service did not stop in order", service=member.name, error=repr(error))

    async def _stop(self, member: Member, grace_s: float | None) -> None:
        await self._aboard[member].stop(grace_s)
        self._aboard.pop(member, None)

    def stuck(self) -> str | None:
        """Return the first word of subjects on which one of them gets no ack from the bus; None: there are none."""
        return next((word for service in self._aboard.values() if (word := service.bus.stuck)), None)

    async def ready(self) -> dict[str, str]:
        """How each thing that each service needs is, as `service.thing`."""
        states: dict[str, str] = {}
        for member, service in self._aboard.items():
            states |= {f"{member.name}.{need}": state for need, state in (await service.ready()).items()}
        return states
