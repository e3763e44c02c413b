"""The stores that hold something of users and jobs, in the order in which they are erased."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from wayline.chassis import Bus
from wayline.contracts.base import Request
from wayline.contracts.forgetting import (
    Erased,
    EraseFromGateway,
    EraseFromNotifier,
    EraseFromRegistry,
    EraseFromRetrieval,
    EraseFromTracing,
)
from wayline.router.forgetting.erasure_scope import ErasureScope
from wayline.router.forgetting.own_rows import OwnRows
from wayline.router.forgetting.stored_messages import StoredMessages

ANSWER_WITHIN_S = 30.0
"""A service may have to delete many documents."""

AskedOfService = (
    type[EraseFromGateway]
    | type[EraseFromNotifier]
    | type[EraseFromRegistry]
    | type[EraseFromRetrieval]
    | type[EraseFromTracing]
)


@dataclass(frozen=True, slots=True)
class ErasableStore:
    """One store: it counts what it has, and erases it. Both may be repeated."""

    name: str
    count: Callable[[ErasureScope, Iterable[str]], Awaitable[Erased]]
    """Given texts to look for in all rows of the tenant, too."""
    erase: Callable[[ErasureScope], Awaitable[None]]


def erasable_stores(bus: Bus, messages: StoredMessages, own: OwnRows) -> tuple[ErasableStore, ...]:
    """Return all of them. The logs go first, or tracing would make its rows from them again."""
    return (
        ErasableStore("logs", lambda scope, _: messages.count(scope), messages.erase),
        _service(bus, "gateway", EraseFromGateway),
        _service(bus, "registry", EraseFromRegistry),
        _service(bus, "retrieval", EraseFromRetrieval),
        ErasableStore("router", lambda scope, _: own.count(scope), own.erase),
        _service(bus, "tracing", EraseFromTracing),
        _service(bus, "notifier", EraseFromNotifier),
    )


def _service(bus: Bus, name: str, request: AskedOfService) -> ErasableStore:
    def asked(scope: ErasureScope, samples: Iterable[str] = (), *, count_only: bool) -> Request:
        return request(
            tenant=scope.tenant,
            user_id=scope.user_id,
            subject_ref=scope.subject_ref,
            job_ids=scope.job_ids,
            count_only=count_only,
            samples=tuple(samples),
        )

    async def count(scope: ErasureScope, samples: Iterable[str]) -> Erased:
        return await bus.ask(asked(scope, samples, count_only=True), Erased, timeout_s=ANSWER_WITHIN_S)

    async def erase(scope: ErasureScope) -> None:
        await bus.ask(asked(scope, count_only=False), Erased, timeout_s=ANSWER_WITHIN_S)

    return ErasableStore(name, count, erase)
