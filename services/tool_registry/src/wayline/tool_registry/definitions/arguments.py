"""Check a call's arguments against its tool's schema, and say which field is wrong."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import orjson

from wayline.schemas import Budget, OverBudget, Schema, UnusableSchema, compile_schema

T = TypeVar("T")

SCHEMAS_KEPT_MAX = 1_000
"""Compiled schemas of tools that were called last; one that is compiled again takes about a millisecond."""
STEPS_ON_LOOP = 2_000
"""Of a check that is done at once; a longer one goes on beside the event loop."""
THREADS_MAX = 2
"""For checks beside the event loop; one tenant takes one of them at a time."""
PROBLEMS_MAX = 5


class Arguments:
    """Compiled schemas of tools, by the hash of their text."""

    def __init__(self) -> None:
        self._compiled: OrderedDict[str, Schema] = OrderedDict()
        self._threads = asyncio.Semaphore(THREADS_MAX)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def check(
        self, schema: dict[str, Any], arguments: dict[str, Any], *, digest: str | None = None, tenant: str
    ) -> str | None:
        """Return what `problem` does; what takes long is done beside the event loop, in the tenant's turn."""
        known = digest or digest_of(schema)
        if known in self._compiled:
            try:
                return _problem(self._schema(schema, known), arguments, Budget(STEPS_ON_LOOP))
            except OverBudget:
                pass
        return await self.beside(tenant, partial(self.problem, schema, arguments, digest=known))

    async def beside(self, tenant: str, work: Callable[[], T]) -> T:
        """Do something beside the event loop, in the tenant's turn."""
        turn = self._turns.setdefault(tenant, asyncio.Lock())
        async with turn, self._threads:
            return await asyncio.to_thread(work)

    def problem(
        self,
        schema: dict[str, Any],
        arguments: dict[str, Any],
        *,
        digest: str | None = None,
        budget: Budget | None = None,
    ) -> str | None:
        """Return what is wrong, field by field, or None; `digest` is the schema's, where the caller has it."""
        try:
            return _problem(self._schema(schema, digest or digest_of(schema)), arguments, budget or Budget())
        except UnusableSchema as error:
            return f"cannot be checked: the tool's schema cannot be used ({error})"
        except OverBudget as error:
            return f"cannot be checked: to compare the arguments with the tool's schema, {error}"

    def check_schema(self, schema: dict[str, Any]) -> str | None:
        """Return why nothing could ever be checked against this schema, or None."""
        try:
            compile_schema(schema, lenient=True)
            orjson.dumps(schema)
        except (UnusableSchema, TypeError) as error:
            # A text with half of a character cannot be sent to a model, for instance.
            return f"cannot be used ({error})"
        return None

    def _schema(self, schema: dict[str, Any], digest: str) -> Schema:
        """Return a compiled schema. Raises UnusableSchema."""
        # Taken out and put back, so that the first one is the one that was not called for the longest time. Two threads
        # may compile one beside each other.
        found = self._compiled.pop(digest, None)
        if found is None:
            # A pattern that our engine cannot search is left to the tool's server, which checks again.
            found = compile_schema(schema, lenient=True)
        self._compiled[digest] = found
        if len(self._compiled) > SCHEMAS_KEPT_MAX:
            self._compiled.popitem(last=False)
        return found


def _problem(schema: Schema, arguments: dict[str, Any], budget: Budget) -> str | None:
    return "; ".join(schema.problems(arguments, budget=budget)[:PROBLEMS_MAX]) or None


def digest_of(schema: dict[str, Any]) -> str:
    """Return what a compiled schema is known by."""
    return sha256(orjson.dumps(schema, option=orjson.OPT_SORT_KEYS)).hexdigest()
