"""Read documents of strangers for the web tools, those of one tenant one after the other."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import ClassVar

from wayline.chassis.concurrency.tenant_turns import TenantTurns
from wayline.documents import ReadLimits, Unreadable, without_controls
from wayline.documents.readable import MEGABYTE
from wayline.documents.reader_pool import ReaderPool

LIMITS = ReadLimits(
    pages_max=200,
    page_s=8.0,
    document_s=8.0,
    # Reading so much of a document's XML takes seconds at the worst.
    unpacked_max_bytes=10 * MEGABYTE,
    text_max_chars=1_000_000,
    cut=True,
)


class CannotRead(Exception):
    """A document brought no text; the sentence says why."""

    code: ClassVar[str] = "unreadable"


class NotReadInTime(CannotRead):
    """A document was not read before its deadline."""

    code = "timeout"


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """The text of a document."""

    title: str
    text: str


class DocumentReader:
    """Reads a few documents at once, one of each tenant, each in a process that can be killed."""

    def __init__(
        self, *, readers_max: int = 2, limits: ReadLimits = LIMITS, processes: ReaderPool | None = None
    ) -> None:
        self._slots = TenantTurns(readers_max)
        self._limits = limits
        self._processes = processes or ReaderPool()

    async def read(
        self, tenant: str, content: bytes, *, kind: str, charset: str = "", url: str = "", deadline: float | None = None
    ) -> ReadDocument:
        """Return the text of a document. Raises CannotRead, also at a deadline by the event loop's clock."""
        reading = False
        try:
            async with asyncio.timeout_at(deadline), self._slots.turn(tenant):
                reading = True
                found = await self._processes.read(content, kind=kind, limits=self._limits, charset=charset, url=url)
        except TimeoutError:
            why = "reading it took too long" if reading else "other documents were read first: try it again later"
            raise NotReadInTime(f"it was fetched, but not read in time: {why}") from None
        except Unreadable as error:
            raise CannotRead(str(error)) from None
        text = without_controls(found.text)
        if not text.strip():
            raise CannotRead("There is no text in the document.")
        return ReadDocument(without_controls(found.title), text)

    async def close(self) -> None:
        """End all processes that wait for a document."""
        await self._processes.close()
