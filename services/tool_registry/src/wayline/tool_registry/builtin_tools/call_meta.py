"""Tell a built-in tool about the call under way: its key and its tenant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from wayline.contracts.call_origin import CallOrigin
from wayline.tool_registry.calls.results import DIRECT, KEY, ORIGIN, RERANK, TENANT, USER

_meta_of_call: ContextVar[Mapping[str, Any]] = ContextVar("meta of the call under way")


@contextmanager
def call_meta(meta: Mapping[str, Any]) -> Iterator[None]:
    """Run a tool under what another server would read in the call's `_meta`: its key and its tenant."""
    token = _meta_of_call.set(meta)
    try:
        yield
    finally:
        _meta_of_call.reset(token)


def tenant_of_call() -> str:
    """Return the tenant whose job called the tool that is running."""
    return str(_meta_of_call.get()[TENANT])


def key_of_call() -> str:
    """Return the key of the call that is running: its name in the ledger."""
    return str(_meta_of_call.get()[KEY])


def user_of_call() -> str | None:
    """Return the user for whom the tool that is running was called."""
    return _meta_of_call.get().get(USER)


def audience_of_call() -> tuple[str, ...]:
    """Return on whose behalf the tool that is running reads: groups are known to the application alone."""
    user = user_of_call()
    return () if user is None else (user,)


def origin_of_call() -> CallOrigin | None:
    """Return what the log of the calling job proves; None: nothing is known of it."""
    return _meta_of_call.get().get(ORIGIN)


def is_direct_call() -> bool:
    """Return whether the tool that is running was called outside of any job."""
    return bool(_meta_of_call.get().get(DIRECT, False))


def is_reranked_call() -> bool:
    """Return whether the calling job ranks again what a search finds, where the call does not say otherwise."""
    return bool(_meta_of_call.get().get(RERANK, False))
