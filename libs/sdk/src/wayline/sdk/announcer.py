"""Announces the tools of a service: at its start, every few seconds, and when it leaves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from faststream.nats import NatsBroker
from nats import errors as nats_errors

from wayline.contracts import headers as h
from wayline.contracts.bus_tools import ANNOUNCE_EVERY_S, Announced, AnnounceTools, BusTool
from wayline.contracts.errors import Problem, raised
from wayline.sdk.errors import ToolsRefused

log = logging.getLogger("wayline.sdk")

ANSWER_WITHIN_S = 3.0
"""How long a registry has to say what is wrong with an announcement."""

Offered = Callable[[], tuple[BusTool, ...]]


class Announcer:
    """Says what a service offers, for as long as it runs."""

    def __init__(self, broker: NatsBroker, instance: AnnounceTools, offered: Offered) -> None:
        """Make an announcer; `instance` says everything of this process but its tools."""
        self._broker = broker
        self._instance = instance
        self._offered = offered
        self._taken = False
        """Whether a registry has taken the announcement."""
        self._leaving = False
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Announce the tools now and from now on. Raises ToolsRefused where the registry does not offer them."""
        await self._announce_and_ask()
        self._task = asyncio.create_task(self._repeat(), name="announcing tools")

    def stop(self) -> None:
        """Announce the tools no more."""
        self._leaving = True
        if self._task is not None:
            self._task.cancel()

    async def leave(self) -> None:
        """Say that this process takes no more calls."""
        await self._publish(self._instance.model_copy(update={"leaving": True}))

    async def on_wanted(self, _: Any) -> None:
        """Announce the tools to a registry that has just started."""
        if not self._leaving:
            await self._publish(self._announcement())

    async def _repeat(self) -> None:
        while True:
            await asyncio.sleep(ANNOUNCE_EVERY_S)
            try:
                await (self._publish(self._announcement()) if self._taken else self._announce_and_ask())
            except (nats_errors.Error, ToolsRefused) as error:
                log.warning("%s is not announced: %s", self._instance.service, error or type(error).__name__)

    async def _announce_and_ask(self) -> None:
        """Announce the tools as a request, until a registry has said what is wrong with them. Raises ToolsRefused."""
        announcement, service = self._announcement(), self._instance.service
        nc = await self._broker.connect()
        try:
            answer = await nc.request(
                announcement.subject, announcement.to_wire(), timeout=ANSWER_WITHIN_S, headers=_headers(announcement)
            )
        except (nats_errors.NoRespondersError, nats_errors.TimeoutError, TimeoutError):
            log.warning("no registry has taken the tools of %s yet; they are announced again", service)
            return
        except nats_errors.MaxPayloadError:
            raise ToolsRefused(f"{service}: its tools are too large to be announced; shorten their schemas") from None
        if h.ERROR in (answer.headers or {}):
            raise ToolsRefused(f"{service}: {raised(Problem.model_validate_json(answer.data))}")
        taken = Announced.model_validate_json(answer.data)
        if taken.left_out:
            raise ToolsRefused("; ".join(f"the tool {name}: {why}" for name, why in taken.left_out.items()))
        log.info("offering %s as %s", _names(announcement, taken), service)
        if taken.held:
            names = ", ".join(sorted(filter(None, taken.held))) or "the instructions"
            log.warning("%s: an administrator has to approve them: wayline mcp approve %s", names, service)
        self._taken = True

    def _announcement(self) -> AnnounceTools:
        return self._instance.model_copy(update={"tools": self._offered()})

    async def _publish(self, announcement: AnnounceTools) -> None:
        nc = await self._broker.connect()
        await nc.publish(announcement.subject, announcement.to_wire(), headers=_headers(announcement))


def _names(announcement: AnnounceTools, taken: Announced) -> str:
    """Return the names of the tools that can be called now."""
    return ", ".join(sorted(tool.name for tool in announcement.tools if tool.name not in taken.held)) or "no tools"


def _headers(announcement: AnnounceTools) -> dict[str, str]:
    return {h.SCHEMA: announcement.schema_id(), h.TENANT: announcement.tenant}
