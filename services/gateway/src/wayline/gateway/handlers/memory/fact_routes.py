"""The routes of one fact, the same for memories and for insights."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Query, Response

from wayline.contracts.errors import NotFound
from wayline.contracts.memory import Fact, FactPage, FactState, MemoriesForgotten
from wayline.gateway.conditions import IfUnchanged
from wayline.gateway.handlers.memory.facts import FactPath, changed, decided, forgotten, tag_of
from wayline.gateway.handlers.shared.changing import tagged
from wayline.gateway.handlers.shared.dependencies import Gateway, GatewayDependency, MemoryReleaser, Reader, Writer
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails, tags
from wayline.gateway.parameters import Cursor
from wayline.gateway.shapes.memories import DecisionBody, FactChangeBody

PRESENT: tuple[FactState, ...] = ("active", "quarantined")
EVER: tuple[FactState, ...] = ("active", "quarantined", "superseded", "expired", "rejected")
VERSIONS_MAX = 100
"""Of one fact's history, in a page."""
VERSIONS = "Return what {} was before, the newest version first."
CHANGE = "Change {}: a new version supersedes it."
RELEASE = "Let {} that is quarantined count from now on, as the word of the caller."


class Versions(NamedTuple):
    """Which versions of a fact are read, the newest first."""

    fact_id: str
    states: tuple[FactState, ...] = PRESENT
    limit: int = 1
    cursor: str | None = None


ReadFact = Callable[[Gateway, Caller, Versions], Awaitable[FactPage]]


@dataclass(frozen=True, slots=True)
class FactRoutes:
    """What is done with one fact of a kind."""

    noun: str
    phrase: str
    """The noun with its article."""
    read: ReadFact

    def add_to(self, router: APIRouter) -> None:
        """Add the routes of one fact below a kind's own."""
        for method, path, endpoint, name, about, answers in (
            ("GET", "", self.get, "get_{}", "Return {} with where it is from.", tags(404)),
            ("GET", "/versions", self.versions, "list_{}_versions", VERSIONS, fails(400, 404)),
            ("PATCH", "", self.change, "change_{}", CHANGE, tags(404, 409, 412, 413)),
            ("POST", "/release", self.release, "release_{}", RELEASE, fails(404, 409)),
            ("POST", "/reject", self.reject, "reject_{}", "Refuse {} that is quarantined for good.", fails(404, 409)),
            ("DELETE", "", self.delete, "delete_{}", "Delete {} with all of its versions.", fails(404)),
        ):
            router.add_api_route(
                f"/{{fact_id}}{path}",
                endpoint,
                methods=[method],
                name=name.format(self.noun),
                description=about.format(self.phrase),
                responses=answers,
            )

    async def get(self, fact_id: FactPath, gateway: GatewayDependency, caller: Reader, response: Response) -> Fact:
        """Return a fact with where it is from."""
        found = await self._found(gateway, caller, fact_id)
        return tagged(response, found, tag_of(found))

    async def versions(
        self,
        *,
        fact_id: FactPath,
        gateway: GatewayDependency,
        caller: Reader,
        limit: Annotated[int, Query(ge=1, le=VERSIONS_MAX)] = VERSIONS_MAX,
        cursor: Cursor = None,
    ) -> FactPage:
        """Return what a fact was before."""
        found = await self.read(gateway, caller, Versions(fact_id, EVER, limit, cursor))
        if not found.facts and cursor is None:
            raise NotFound(self.noun, fact_id)
        return found

    async def change(
        self,
        *,
        fact_id: FactPath,
        body: FactChangeBody,
        gateway: GatewayDependency,
        caller: Writer,
        condition: IfUnchanged,
        response: Response,
    ) -> Fact:
        """Change a fact."""
        fact = await changed(gateway, caller, lambda: self._found(gateway, caller, fact_id), body, condition)
        return tagged(response, fact, tag_of(fact))

    async def release(
        self, fact_id: FactPath, body: DecisionBody, gateway: GatewayDependency, caller: MemoryReleaser
    ) -> Fact:
        """Let a quarantined fact count."""
        return await decided(gateway, caller, await self._found(gateway, caller, fact_id), "release", body.reason)

    async def reject(
        self, fact_id: FactPath, body: DecisionBody, gateway: GatewayDependency, caller: MemoryReleaser
    ) -> Fact:
        """Refuse a quarantined fact."""
        return await decided(gateway, caller, await self._found(gateway, caller, fact_id), "reject", body.reason)

    async def delete(self, fact_id: FactPath, gateway: GatewayDependency, caller: Writer) -> MemoriesForgotten:
        """Delete a fact."""
        return await forgotten(gateway, caller, await self._found(gateway, caller, fact_id))

    async def _found(self, gateway: Gateway, caller: Caller, fact_id: str) -> Fact:
        """Return a fact that is not history. Raises NotFound, also for a memory of another user than the key's."""
        page = await self.read(gateway, caller, Versions(fact_id))
        if not page.facts:
            raise NotFound(self.noun, fact_id)
        return page.facts[0]
