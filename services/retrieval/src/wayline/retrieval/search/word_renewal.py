"""Renew the words of passages that an earlier version stored, or whose document was renamed, beside the searches."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import structlog

from wayline.contracts.errors import Retry
from wayline.store import StoreError

log = structlog.get_logger()

PAUSE_S = 0.05
"""Between two batches of passages, so that searches and indexing go first."""
AGAIN_S = 10.0
"""After Postgres was away, and before looking again: a document may have been given another name."""


@dataclass(frozen=True, slots=True)
class OldDocument:
    """A document whose passages may still be stored with the words of an earlier version."""

    tenant: str
    document_id: str


class OldWords(Protocol):
    """The statements that renew the words of stored passages."""

    async def documents(self, after: OldDocument | None) -> list[OldDocument]: ...

    async def renew(self, document: OldDocument, *, after: int) -> int | None: ...


class WordRenewal:
    """A task that looks for passages whose words are not those of this version, or of their document's name."""

    def __init__(self, old_words: OldWords) -> None:
        self._old_words = old_words
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="renew words")

    async def stop(self, grace_s: float) -> None:
        """End between two batches' statements: what was not committed is done again by the next start."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            try:
                await self._renew_all()
            except (Retry, StoreError, OSError, TimeoutError) as error:
                log.warning("renewing the words of old passages is put off", why=str(error))
            await asyncio.sleep(AGAIN_S)

    async def _renew_all(self) -> None:
        """Renew every old document once."""
        seen = 0
        after: OldDocument | None = None
        while documents := await self._old_words.documents(after):
            for document in documents:
                await self._renew(document)
            seen += len(documents)
            after = documents[-1]
        if seen:
            log.info("words of old passages renewed", documents=seen)

    async def _renew(self, document: OldDocument) -> None:
        position: int | None = -1
        while position is not None:
            position = await self._old_words.renew(document, after=position)
            await asyncio.sleep(PAUSE_S)
