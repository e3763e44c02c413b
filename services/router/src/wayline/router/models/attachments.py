"""The documents that a job or an agent names: which bytes they have now, and whether a model may be given them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wayline.chassis import Bus
from wayline.contracts.chat import Attachment, FilePart, ImagePart, Part, TextPart
from wayline.contracts.errors import Reject, Unavailable
from wayline.contracts.knowledge import AttachmentList, DescribeAttachments

ASK_TIMEOUT_S = 2.0
AWAY_S = 1.0
"""How long nobody is asked after retrieval did not answer."""


@dataclass(frozen=True, slots=True)
class AttachmentLimits:
    """How much one job may be given, whatever its model takes."""

    files_max: int
    total_max_bytes: int


class Attachments:
    """Asks retrieval, which keeps documents; where no part names one, nobody is asked."""

    def __init__(self, bus: Bus, limits: AttachmentLimits) -> None:
        self._bus = bus
        self._limits = limits
        self._away_until = 0.0

    async def of(self, tenant: str, parts: Sequence[Part], *, user_id: str | None = None) -> tuple[Attachment, ...]:
        """Return what the parts name, each document once. Raises Reject for what a job cannot be given.

        `user_id`: for whom the job runs; a document that this user may not find is none.
        """
        named = naming(parts)
        ids = tuple(dict.fromkeys(part.document_id for part in named))
        if not ids:
            return ()
        if len(ids) > self._limits.files_max:
            raise Reject(
                f"{len(ids)} files are named and a job is given {self._limits.files_max} at most: name fewer, or raise "
                "WAYLINE_ROUTER_FILES_MAX",
                code="too_many_files",
                status=422,
            )
        return given(named, await self._described(tenant, ids, user_id), self._limits)

    async def _described(self, tenant: str, ids: tuple[str, ...], user_id: str | None) -> AttachmentList:
        """Ask retrieval about documents. Raises Unavailable; for a moment after that without asking."""
        if time.monotonic() < self._away_until:
            raise Unavailable("retrieval", detail="it did not a moment ago")
        try:
            seen_by = None if user_id is None else (user_id,)
            asked = DescribeAttachments(tenant=tenant, document_ids=ids, seen_by=seen_by)
            return await self._bus.ask(asked, AttachmentList, timeout_s=ASK_TIMEOUT_S)
        except Unavailable:
            self._away_until = time.monotonic() + AWAY_S
            raise


def naming(parts: Iterable[Part]) -> list[ImagePart | FilePart]:
    """Return the parts that name a document."""
    return [part for part in parts if not isinstance(part, TextPart)]


def given(
    parts: Sequence[ImagePart | FilePart], described: AttachmentList, limits: AttachmentLimits
) -> tuple[Attachment, ...]:
    """Return the attachments that parts mean. Raises Reject with what to do about the first that cannot be given."""
    known = {attachment.document_id: attachment for attachment in described.attachments}
    for part in parts:
        _check(part, known.get(part.document_id), described)
    found = tuple({part.document_id: known[part.document_id] for part in parts}.values())
    size = sum(attachment.size_bytes for attachment in found)
    if size > limits.total_max_bytes:
        raise Reject(
            f"the files have {size} bytes together and a job is given {limits.total_max_bytes} at most: name fewer or "
            "smaller ones, or raise WAYLINE_ROUTER_FILES_MAX_BYTES",
            code="files_too_large",
            status=422,
        )
    return found


def _check(part: ImagePart | FilePart, found: Attachment | None, described: AttachmentList) -> None:
    named = f"document {part.document_id!r}"
    if part.document_id in described.waiting:
        raise Reject(
            f"{named} is still being read: wait until GET /v1/documents/{part.document_id} says that it is ready",
            code="document_not_ready",
            status=409,
        )
    if found is None:
        why = described.refused.get(part.document_id)
        if why is not None:
            raise Reject(f"{named} cannot be given to a job: {why}", code="document_unusable", status=422)
        raise Reject(f"no {named}: upload it with POST /v1/documents first", code="unknown_document", status=404)
    if part.sha256 is not None and part.sha256 not in (found.sha256, found.original_sha256):
        raise Reject(
            f"{named} has other content than what is meant: name what it has now (sha256 {_digest(found)}), or leave "
            "sha256 out",
            code="document_changed",
            status=409,
        )


def _digest(attachment: Attachment) -> str:
    """Return the hash of a document's own bytes, also where a model is given their text."""
    return attachment.original_sha256 or attachment.sha256


def fixed(parts: Sequence[Part], attachments: Sequence[Attachment]) -> tuple[Part, ...]:
    """Return the same parts, each with the hash of the bytes that its document has now."""
    known = {attachment.document_id: _digest(attachment) for attachment in attachments}
    return tuple(
        part if isinstance(part, TextPart) else part.model_copy(update={"sha256": known[part.document_id]})
        for part in parts
    )
