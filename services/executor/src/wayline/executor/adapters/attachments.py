"""The contents that a job names, as its first record says which they are: read from retrieval, never from the log."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import sha256
from sys import getsizeof
from weakref import WeakValueDictionary

from wayline.chassis import Bus
from wayline.contracts.chat import Attachment
from wayline.contracts.errors import Bug, Retry, Unavailable
from wayline.contracts.knowledge import PIECE_MAX_BYTES, AttachmentPiece, ReadAttachment
from wayline.executor.adapters.bytes_in_flight import BytesInFlight
from wayline.llm import File, inputs

PIECES_AT_ONCE = 4
ASK_AGAIN_S = 0.2
AWAY_MAX_S = 5.0
"""How long a job holds its slot for a retrieval that is away."""
AWAY_S = 10.0
"""How long no job waits for it after that: at any time most slots are free of those that wait."""
CACHED_MAX_BYTES = 64 * 1024 * 1024
SENT_MAX_BYTES = 256 * 1024 * 1024

Key = tuple[str, str, inputs.Kind | None]
"""Whose, the hash of the content, and how it is sent."""


@dataclass(frozen=True, slots=True)
class _Whose:
    """For whom a document is read."""

    tenant: str
    seen_by: tuple[str, ...] | None


class Attachments:
    """What jobs of this process are sending. While a content is cached, all jobs are given the same object.

    Between its calls a job keeps nothing: what is not cached any more is read again.
    """

    def __init__(
        self, bus: Bus, *, cached_max_bytes: int = CACHED_MAX_BYTES, sent_max_bytes: int = SENT_MAX_BYTES
    ) -> None:
        self._bus = bus
        self._cached_max_bytes = cached_max_bytes
        self._cached: OrderedDict[Key, str] = OrderedDict()
        self._cached_bytes = 0
        self._reading: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()
        self._room = BytesInFlight(sent_max_bytes)
        self._away_until = 0.0

    def room(
        self, attachments: Sequence[Attachment], *, beside_bytes: int = 0
    ) -> AbstractContextManager[asyncio.Event]:
        """Reserve room for one call that sends these: its body is its own, however many jobs share the content.

        `beside_bytes`: of images that tools returned.
        """
        return self._room.wanted(sum(one.size_bytes for one in attachments) + beside_bytes)

    async def of(
        self, tenant: str, attachments: Sequence[Attachment], *, user_id: str | None = None, again: bool = False
    ) -> dict[str, File]:
        """Describe each attachment by document id; wait AWAY_MAX_S for a retrieval that is away.

        `user_id`: for whom the job runs. A document that this user may not find any more is given as a deleted one is.

        Raises Unavailable after that, so that others can use the slot; Reject where a document was deleted or has other
        content by now: also one that is in memory, unless a job is given it `again`.
        """
        found: dict[str, File] = {}
        whose = _Whose(tenant, None if user_id is None else (user_id,))
        for one in attachments:
            found[one.document_id] = File(one.name, one.media_type, await self._content(whose, one, again=again))
        return found

    async def _content(self, whose: _Whose, attachment: Attachment, *, again: bool) -> str:
        key = (whose.tenant, attachment.sha256, inputs.kind_of(attachment.media_type))
        # Jobs of one agent begin together, and are given the same documents: the first reads them for all.
        async with self._reading.setdefault(key, asyncio.Lock()):
            content = self._cached.get(key)
            if content is None:
                content = await self._read(whose, attachment)
                self._keep(key, content)
            else:
                self._cached.move_to_end(key)
                if not again:
                    await self._piece(whose, attachment, offset=0, length=0)
            return content

    async def _read(self, whose: _Whose, attachment: Attachment) -> str:
        pieces: list[bytes] = []
        offsets = range(0, attachment.size_bytes, PIECE_MAX_BYTES)
        for at in range(0, len(offsets), PIECES_AT_ONCE):
            asked = [self._piece(whose, attachment, offset=offset) for offset in offsets[at : at + PIECES_AT_ONCE]]
            pieces += await asyncio.gather(*asked)
        # In a thread, and once: the largest take as long as a heartbeat should not wait.
        return await asyncio.to_thread(_encoded, pieces, attachment)

    async def _piece(
        self, whose: _Whose, attachment: Attachment, *, offset: int, length: int = PIECE_MAX_BYTES
    ) -> bytes:
        asked = ReadAttachment(
            tenant=whose.tenant,
            seen_by=whose.seen_by,
            document_id=attachment.document_id,
            sha256=attachment.sha256,
            offset=offset,
            length=length,
        )
        loop = asyncio.get_running_loop()
        until = loop.time() + AWAY_MAX_S
        while True:
            if loop.time() < self._away_until:
                raise Unavailable("retrieval", detail="it did not for a while", after_s=AWAY_S)
            try:
                return b64decode((await self._bus.ask(asked, AttachmentPiece)).content_base64)
            except Retry as error:
                if loop.time() > until:
                    self._away_until = loop.time() + AWAY_S
                    raise Unavailable("retrieval", detail=str(error), after_s=AWAY_S) from None
                await asyncio.sleep(max(ASK_AGAIN_S, error.after_s))

    def _keep(self, key: Key, content: str) -> None:
        self._cached[key] = content
        self._cached_bytes += getsizeof(content)
        while self._cached_bytes > self._cached_max_bytes:
            _, oldest = self._cached.popitem(last=False)
            self._cached_bytes -= getsizeof(oldest)


def _encoded(pieces: Sequence[bytes], attachment: Attachment) -> str:
    content = b"".join(pieces)
    if sha256(content).hexdigest() != attachment.sha256:
        raise Bug(f"document {attachment.document_id!r} is not what its hash says")
    return inputs.encoded(attachment.media_type, content)
