"""Changes of configuration: one at a time, and only while what their request asks for holds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from fastapi import Response

from wayline.contracts.errors import WaylineError
from wayline.gateway.conditions import NOT_FOUND, Precondition
from wayline.gateway.handlers.shared.auditing import trail
from wayline.gateway.handlers.shared.dependencies import Gateway
from wayline.gateway.keys import Caller

ALWAYS = Precondition()

T = TypeVar("T")


@asynccontextmanager
async def changing(
    gateway: Gateway,
    caller: Caller,
    kind: str,
    name: str,
    *,
    condition: Precondition = ALWAYS,
    present: Callable[[], Awaitable[str]] | None = None,
) -> AsyncIterator[None]:
    """Let nobody else change what is named meanwhile. Raises PreconditionFailed; `present` returns its tag of now."""
    async with gateway.change_locks.held(caller.tenant, kind, name):
        if present is not None:
            if (known := trail()) is not None:
                known.before = await _tag_of_now(present)
            await condition.check(present)
        yield


async def _tag_of_now(present: Callable[[], Awaitable[str]]) -> str | None:
    try:
        return await present()
    except WaylineError as error:
        if error.status != NOT_FOUND:
            raise
        return None


@dataclass(frozen=True)
class Changeable(Generic[T]):
    """A kind of configuration that is changed by its name."""

    kind: str
    read: Callable[[Gateway, Caller, str], Awaitable[T]]
    """Returns what has the name now. Raises NotFound."""
    tag: Callable[[T], str]

    def changing(
        self, gateway: Gateway, caller: Caller, name: str, condition: Precondition = ALWAYS
    ) -> AbstractAsyncContextManager[None]:
        """Let nobody else change what has the name meanwhile. Raises PreconditionFailed."""

        async def present() -> str:
            return self.tag(await self.read(gateway, caller, name))

        return changing(gateway, caller, self.kind, name, condition=condition, present=present)


def tagged(response: Response, value: T, tag: str) -> T:
    """Return an answer with the entity tag of what it shows."""
    response.headers["ETag"] = tag
    return value
