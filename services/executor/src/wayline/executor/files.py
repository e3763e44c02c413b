"""The bytes of what a job names, as its first record says which they are: read from retrieval, never from the log."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import sha256
from weakref import WeakValueDictionary

from wayline.chassis import Bus
from wayline.contracts.chat import Attachment
from wayline.contracts.errors import Bug, Retry
from wayline.contracts.knowledge import PIECE_MAX_BYTES, AttachmentPiece, ReadAttachment
from wayline.llm import File

PIECES_AT_ONCE = 4
ASK_AGAIN_S = 0.2
CACHED_MAX_BYTES = 64 * 1024 * 1024

Key = tuple[str, str]
"""Whose, and the hash of the content."""


class Files:
    """What jobs of this process are sending. While a content is cached, all jobs are given the same object."""

    def __init__(self, bus: Bus, *, cached_max_bytes: int = CACHED_MAX_BYTES) -> None:
        self._bus = bus
        self._cached_max_bytes = cached_max_bytes
        self._cached: OrderedDict[Key, bytes] = OrderedDict()
        self._reading: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()

    async def of(self, tenant: str, attachments: Sequence[Attachment]) -> dict[str, File]:
        """Each attachment's bytes by document id; waits for a retrieval that is away.

        Raises Reject where a document was deleted or has other content by now: also one that is in memory.
        """
        found: dict[str, File] = {}
        for one in attachments:
            found[one.document_id] = File(one.name, one.media_type, await self._content(tenant, one))
        return found

    async def _content(self, tenant: str, attachment: Attachment) -> bytes:
        key = (tenant, attachment.sha256)
        # Jobs of one agent begin together, and are given the same documents: the first reads them for all.
        async with self._reading.setdefault(key, asyncio.Lock()):
            content = self._cached.get(key)
            if content is None:
                content = await self._read(tenant, attachment)
                self._keep(key, content)
            else:
                await self._piece(tenant, attachment, offset=0, length=0)
                self._cached.move_to_end(key)
            return content

    async def _read(self, tenant: str, attachment: Attachment) -> bytes:
        pieces: list[bytes] = []
        offsets = range(0, attachment.size_bytes, PIECE_MAX_BYTES)
        for at in range(0, len(offsets), PIECES_AT_ONCE):
            asked = [self._piece(tenant, attachment, offset=offset) for offset in offsets[at : at + PIECES_AT_ONCE]]
            pieces += await asyncio.gather(*asked)
        content = b"".join(pieces)
        # In a thread: the largest take as long as a heartbeat should not wait.
        if (await asyncio.to_thread(sha256, content)).hexdigest() != attachment.sha256:
            raise Bug(f"document {attachment.document_id!r} is not what its hash says")
        return content

    async def _piece(self, tenant: str, attachment: Attachment, *, offset: int, length: int = PIECE_MAX_BYTES) -> bytes:
        asked = ReadAttachment(
            tenant=tenant,
            document_id=attachment.document_id,
            sha256=attachment.sha256,
            offset=offset,
            length=length,
        )
        while True:
            try:
                return b64decode((await self._bus.ask(asked, AttachmentPiece)).content_base64)
            except Retry as error:
                await asyncio.sleep(max(ASK_AGAIN_S, error.after_s))

    def _keep(self, key: Key, content: bytes) -> None:
        self._cached[key] = content
        while sum(map(len, self._cached.values())) > self._cached_max_bytes:
            self._cached.popitem(last=False)
