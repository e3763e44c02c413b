"""What changes for an MCP client: the lists that its key may see, and the jobs that it watches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Any, Final

from mcp.shared.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp_types import SubscriptionFilter

from wayline.chassis import stopped
from wayline.contracts.errors import Reject, WaylineError
from wayline.contracts.events import Event
from wayline.contracts.knowledge import DocumentPage
from wayline.gateway.handlers.mcp.offers import Listing, Offers
from wayline.gateway.handlers.mcp.resources import Resources, job_of
from wayline.gateway.handlers.shared.dependencies import Gateway
from wayline.gateway.handlers.shared.own_jobs import require_own_job
from wayline.gateway.handlers.shared.read_job import find_log
from wayline.gateway.keys import Caller
from wayline.journal import follow

LOOK_EVERY_S: Final = 2.0
PAUSE_S: Final = 0.2
"""Between two reports: what changes meanwhile is told once."""
IDLE_S: Final = 15.0
WATCHED_MAX: Final = 100
"""Resources of one stream."""
READER_SIGN: Final = "\n"
"""Between a tenant and a user; neither has it in its name."""
EVERYTHING: Final = SubscriptionFilter(tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True)


class ClientLists:
    """The lists of which clients are told, read once for all streams of a tenant that look at the same time."""

    def __init__(self, gateway: Gateway, offers: Offers) -> None:
        self._offers = offers
        self._prompts = Listing(gateway.prompts.listed)
        self._resources = Resources(gateway)
        self._documents = Listing(self._documents_of)

    def wanted(self, caller: Caller, wanted: SubscriptionFilter) -> dict[ServerEvent, Callable[[], Awaitable[Any]]]:
        """Return how each list that a client wants to be told of is read, by what it is told."""
        lists: dict[ServerEvent, Callable[[], Awaitable[Any]]] = {}
        if wanted.tools_list_changed:
            lists[ToolsListChanged()] = partial(self._offers.listed, caller)
        if wanted.prompts_list_changed:
            lists[PromptsListChanged()] = partial(self._prompts.of, caller.tenant)
        if wanted.resources_list_changed:
            lists[ResourcesListChanged()] = partial(self._documents.of, _reader(caller.tenant, caller.user_id))
        return lists

    async def _documents_of(self, reader: str) -> DocumentPage:
        tenant, _, user_id = reader.partition(READER_SIGN)
        return await self._resources.page(tenant, user_id or None)


def _reader(tenant: str, user_id: str | None) -> str:
    return f"{tenant}{READER_SIGN}{user_id or ''}"


class Changes:
    """Looks after changes for one client while its stream is open."""

    def __init__(self, gateway: Gateway, lists: ClientLists, caller: Caller, wanted: SubscriptionFilter) -> None:
        self._gateway = gateway
        self._caller = caller
        self._lists = lists.wanted(caller, wanted)
        self._seen: dict[ServerEvent, Any] = {}
        self._watched: dict[str, asyncio.Task[None]] = {}
        self._untold: dict[ServerEvent, None] = {}
        self._changed = asyncio.Event()

    @property
    def wanted(self) -> SubscriptionFilter:
        """Return of what the client is told."""
        return SubscriptionFilter(
            tools_list_changed=ToolsListChanged() in self._lists or None,
            prompts_list_changed=PromptsListChanged() in self._lists or None,
            resources_list_changed=ResourcesListChanged() in self._lists or None,
            resource_subscriptions=list(self._watched) or None,
        )

    async def watch(self, uri: str, *, on: bool = True) -> int:
        """Tell when a resource changes, or no longer; return of how many. Raises Reject for one that never changes."""
        if not on:
            if (task := self._watched.pop(uri, None)) is not None:
                await stopped(task)
        elif uri not in self._watched:
            if len(self._watched) >= WATCHED_MAX:
                raise Reject(f"a stream tells of at most {WATCHED_MAX} resources: unsubscribe from one first")
            feed = await updates(self._gateway, self._caller, uri)
            self._watched[uri] = asyncio.create_task(self._follow(uri, feed), name=f"watch {uri}")
        return len(self._watched)

    async def begin(self) -> None:
        """Note how the lists are now, before the client is told that it is heard: what changes from then on is told."""
        await self._look()

    async def told(self) -> AsyncGenerator[ServerEvent | None]:
        """Yield what has changed, once for all changes since the last report; None now and then when idle."""
        looking = asyncio.create_task(self._look_on(), name="look for changes")
        try:
            while True:
                try:
                    async with asyncio.timeout(IDLE_S):
                        await self._changed.wait()
                except TimeoutError:
                    yield None
                    continue
                self._changed.clear()
                told, self._untold = self._untold, {}
                for event in told:
                    yield event
                await asyncio.sleep(PAUSE_S)
        finally:
            await stopped(looking)

    async def close(self) -> None:
        """Watch no resource any more."""
        await stopped(*self._watched.values())

    async def _look_on(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            await self._look()

    async def _look(self) -> None:
        """Compare each list with what it was."""
        for event, listed in self._lists.items():
            try:
                now = await listed()
            except WaylineError:
                # Its service is away; the next look tells.
                continue
            if self._seen.setdefault(event, now) != now:
                self._seen[event] = now
                self._tell(event)

    async def _follow(self, uri: str, feed: AsyncGenerator[None]) -> None:
        async for _ in feed:
            self._tell(ResourceUpdated(uri))

    def _tell(self, event: ServerEvent) -> None:
        self._untold[event] = None
        self._changed.set()


async def updates(gateway: Gateway, caller: Caller, uri: str) -> AsyncGenerator[None]:
    """Return what yields at each change of a resource. Raises Reject for one that there is not, or never changes."""
    job_id = job_of(uri)
    if job_id is None:
        raise Reject(f"{uri[:300]!r} is no resource that changes: those are job://…/result and job://…/trace")
    await require_own_job(gateway, caller, job_id)
    head = await find_log(gateway, caller.tenant, job_id)
    return _new_events(gateway, caller.tenant, job_id, head.seq if head is not None else 0)


async def _new_events(gateway: Gateway, tenant: str, job_id: str, after: int) -> AsyncGenerator[None]:
    async with aclosing(follow(gateway.bus, tenant, job_id, after)) as news:
        async for item in news:
            if isinstance(item, Event):
                yield
