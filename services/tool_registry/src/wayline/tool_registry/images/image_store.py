"""Store images that tools make: as documents of their tenant, the bytes in the object store."""

from __future__ import annotations

from base64 import b64encode
from contextlib import suppress
from hashlib import sha256

from wayline.chassis import Bus, keep_trying
from wayline.contracts.errors import Retry
from wayline.contracts.knowledge import AcceptDocument, Document, IndexDocument
from wayline.tool_registry.images.images_api import MadeImage

STORE_WITHIN_S = 30.0
NAME_CHARS_MAX = 60
SUFFIXES = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}


class ImageStore:
    """Stores images over the bus; retrieval keeps them until they are deleted."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def put(self, tenant: str, key: str, image: MadeImage, *, prompt: str, model: str) -> str:
        """Store an image under an id that its call's key gives it, and return that id. Raises Retry."""
        document_id = f"img_{sha256(key.encode()).hexdigest()[:20]}"
        document = IndexDocument(
            tenant=tenant,
            document_id=document_id,
            name=f"{_title(prompt)}.{SUFFIXES[image.kind.media_type]}",
            media_type=image.kind.media_type,
            content_base64=b64encode(image.content).decode(),
            metadata={"made_by": model},
        )
        ack = await keep_trying(
            "store an image", lambda: self._bus.publish(document, msg_id=document_id), within_s=STORE_WITHIN_S
        )
        accepted = AcceptDocument(
            tenant=tenant,
            document_id=document_id,
            name=document.name,
            media_type=document.media_type,
            size_bytes=len(image.content),
            sequence=ack.seq,
            metadata=document.metadata,
        )
        # So that the id can be looked up at once; without retrieval it is listed once it is read.
        with suppress(Retry):
            await self._bus.ask(accepted, Document)
        return document_id


def _title(prompt: str) -> str:
    """Return a prompt's first words as a name on one line."""
    line = " ".join("".join(one if one.isprintable() and one not in "/\\" else " " for one in prompt).split())
    return line[:NAME_CHARS_MAX].strip() or "image"
