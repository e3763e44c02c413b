"""Make the files of a request documents, which jobs are given by their ids."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Final

from wayline.contracts.errors import Refused, Retry
from wayline.contracts.knowledge import AcceptDocument, Document, DocumentStatus, GetDocument, IndexDocument
from wayline.gateway.errors import UnsupportedParameter
from wayline.gateway.handlers.shared.dependencies import Gateway
from wayline.gateway.openai.sent_files import NewFile

FILES_MAX: Final = 32
"""That one request brings along."""
READY_WITHIN_S: Final = 30.0
"""How long all files of a request may take to be read."""
POLL_FIRST_S: Final = 0.05
POLL_MAX_S: Final = 0.5


async def store_files(gateway: Gateway, tenant: str, files: Sequence[NewFile], *, user_id: str | None) -> None:
    """Make files documents that no search finds, and wait until they can be given to a job.

    What a conversation brings along again is there already. Raises UnsupportedParameter, and Retry.
    """
    if len(files) > FILES_MAX:
        raise UnsupportedParameter("messages", f"{len(files)} files are too many; {FILES_MAX} are allowed")
    try:
        async with asyncio.timeout(READY_WITHIN_S):
            for file in files:
                await _store(gateway, tenant, file, user_id)
    except TimeoutError:
        raise Retry("the files of the request are still being read: send it again") from None


async def _store(gateway: Gateway, tenant: str, file: NewFile, user_id: str | None) -> None:
    if await _is_ready(gateway, tenant, file):
        return
    document = IndexDocument(
        tenant=tenant,
        document_id=file.document_id,
        name=file.name,
        media_type=file.media_type,
        content_base64=file.content_base64,
        url=file.url,
        audience=(),
        user_id=user_id,
    )
    msg_id = f"{tenant}/{file.document_id}:{sha256(document.to_wire()).hexdigest()[:32]}"
    ack = await gateway.bus.publish(document, msg_id=msg_id)
    with suppress(Retry):
        await gateway.bus.ask(
            AcceptDocument(
                tenant=tenant,
                sequence=ack.seq,
                document_id=file.document_id,
                name=file.name,
                media_type=file.media_type,
                user_id=user_id,
            ),
            Document,
        )
    pause_s = POLL_FIRST_S
    while not await _is_ready(gateway, tenant, file):
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 1.5, POLL_MAX_S)


async def _is_ready(gateway: Gateway, tenant: str, file: NewFile) -> bool:
    """Return whether a file can be given to jobs. Raises UnsupportedParameter for one that nobody can read."""
    try:
        known = await gateway.bus.ask(GetDocument(tenant=tenant, document_id=file.document_id), Document)
    except (Refused, Retry):
        return False
    if known.status is DocumentStatus.FAILED:
        raise UnsupportedParameter("messages", f"a file of it cannot be read: {known.error}", code="invalid_file")
    return known.status is DocumentStatus.READY
