"""The dead-letter stream, read from its newest message backwards."""

from __future__ import annotations

from base64 import b64encode
from collections import deque
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime

from nats.aio.msg import Msg
from nats.js.api import RawStreamMsg
from nats.js.errors import NotFoundError

from wayline.chassis import Bus
from wayline.chassis.connection.bus import AWAY
from wayline.contracts import headers as h
from wayline.contracts.errors import NotFound, Unavailable
from wayline.gateway.shapes.dead_letters import (
    DeadLetter,
    DeadLetterBody,
    DeadLetterPage,
    DismissedLetter,
)
from wayline.journal import bulk_read, fingerprint
from wayline.store import Store

STREAM = "DEAD"
WITHOUT_TENANT = "dead.*.*"
"""Letters of the version before the one that writes their tenant into the subject."""
WINDOW = 1_000
"""Sequences that are looked at first for a page: other tenants' letters lie between one's own, and are not read."""
WIDER = 16
LETTERS_MAX = 2_000
"""Letters of one tenant that are looked at for one cause."""
BODY_SHOWN_MAX_BYTES = 64 * 1024


@dataclass(frozen=True)
class DeadLetters:
    """One tenant's view of the stream."""

    bus: Bus
    store: Store
    tenant: str

    async def page(self, *, limit: int, before: int | None) -> DeadLetterPage:
        """Return the newest letters below a sequence."""
        first, last = await self._bounds()
        top = last if before is None else min(last, before - 1)
        found = await self._newest(limit + 1, first=first, top=top)
        page = found[:limit]
        more = len(found) > limit
        return DeadLetterPage(
            dead_letters=tuple(_letter(message) for message in page),
            next_cursor=str(page[-1].seq) if more and page else None,
        )

    async def count(self) -> int:
        """Return how many letters there are, without those that versions before this one wrote."""
        try:
            info = await self.bus.js.stream_info(STREAM, subjects_filter=f"dead.*.*.{self.tenant}")
        except AWAY as error:
            raise Unavailable("the bus", detail=type(error).__name__) from None
        return sum((info.state.subjects or {}).values())

    async def of_cause(self, fingerprint: str) -> list[DeadLetterBody]:
        """Return the newest letters of one cause with their bodies."""
        first, last = await self._bounds()
        newest = await self._newest(LETTERS_MAX, first=first, top=last)
        return [_with_body(message) for message in newest if _letter(message).fingerprint == fingerprint]

    async def get(self, sequence: int) -> DeadLetterBody:
        """Return one letter with its headers and body. Raises NotFound, also for another tenant's."""
        message = await self._message(sequence)
        if message is None:
            raise NotFound("dead letter", str(sequence))
        return _with_body(message)

    async def dismiss(self, sequence: int, *, reason: str, by: str) -> DismissedLetter:
        """Take a letter off the stream, keeping why. Raises NotFound, also for another tenant's."""
        message = await self._message(sequence)
        if message is None:
            raise NotFound("dead letter", str(sequence))
        letter = _letter(message)
        # Written first: after a crash in between the letter still stands, and can be dismissed again.
        row = await self.store.fetchrow(
            self.tenant,
            self.store.sql.dismiss_letter,
            self.tenant,
            sequence,
            letter.code,
            letter.subject,
            letter.reason,
            reason,
            by,
        )
        assert row is not None
        try:
            await self.bus.js.delete_msg(STREAM, sequence)
        except NotFoundError:
            pass
        except AWAY as error:
            raise Unavailable("the bus", detail=type(error).__name__) from None
        return DismissedLetter(**dict(row))

    async def dismissed(self, *, limit: int, after: tuple[datetime | None, int | None]) -> list[DismissedLetter]:
        """List the letters that were dismissed, newest first, behind a moment and a letter."""
        rows = await self.store.fetch(self.tenant, self.store.sql.dismissed_letters, self.tenant, limit, *after)
        return [DismissedLetter(**dict(row)) for row in rows]

    async def _newest(self, most: int, *, first: int, top: int) -> list[RawStreamMsg]:
        """Return this tenant's newest letters between two sequences, the newest first.

        The server looks for them by their subjects, and only forward: so from further and further back.
        """
        found: list[RawStreamMsg] = []
        for subject in (f"dead.*.*.{self.tenant}", WITHOUT_TENANT):
            back = WINDOW
            while True:
                low = max(first, top - back + 1)
                newest = await self._between(subject, low, top, most=most)
                if len(newest) == most or low <= first:
                    break
                back *= WIDER
            found += newest
        return sorted(found, key=lambda message: -(message.seq or 0))[:most]

    async def _between(self, subject: str, low: int, top: int, *, most: int) -> list[RawStreamMsg]:
        """Return the last letters of this tenant on a subject between two sequences."""
        newest: deque[RawStreamMsg] = deque(maxlen=most)
        if top < low:
            return []
        async with aclosing(bulk_read(self.bus, STREAM, subject, after=low - 1)) as messages:
            async for message in messages:
                letter = _raw(message)
                if (letter.seq or 0) > top:
                    break
                if (letter.headers or {}).get(h.TENANT) == self.tenant:
                    newest.append(letter)
        return list(newest)

    async def _message(self, sequence: int) -> RawStreamMsg | None:
        try:
            message = await self.bus.js.get_msg(STREAM, sequence, direct=True)
        except NotFoundError:
            return None
        except AWAY as error:
            raise Unavailable("the bus", detail=type(error).__name__) from None
        return message if (message.headers or {}).get(h.TENANT) == self.tenant else None

    async def _bounds(self) -> tuple[int, int]:
        try:
            state = (await self.bus.js.stream_info(STREAM)).state
        except AWAY as error:
            raise Unavailable("the bus", detail=type(error).__name__) from None
        return max(1, state.first_seq), state.last_seq


def _raw(message: Msg) -> RawStreamMsg:
    """Return a message that was read in bulk as one that was read alone."""
    headers = message.headers or {}
    return RawStreamMsg(
        subject=headers.get("Nats-Subject"),
        seq=int(headers["Nats-Sequence"]),
        data=message.data,
        headers=headers,
        time=datetime.fromisoformat(headers["Nats-Time-Stamp"]),
    )


def _letter(message: RawStreamMsg) -> DeadLetter:
    headers = message.headers or {}
    code, reason = headers.get(h.DEAD_CODE, ""), headers.get(h.DEAD_REASON, "")
    return DeadLetter(
        sequence=message.seq or 0,
        at=message.time,
        code=code,
        reason=reason,
        # As of a job that failed so before it ran.
        fingerprint=fingerprint(code, "", reason),
        stream=headers.get(h.DEAD_STREAM, ""),
        consumer=headers.get(h.DEAD_CONSUMER, ""),
        subject=headers.get(h.DEAD_SUBJECT, ""),
        deliveries=int(headers.get(h.DEAD_DELIVERIES) or 0),
        bytes=len(message.data or b""),
    )


def _with_body(message: RawStreamMsg) -> DeadLetterBody:
    data = message.data or b""
    shown = data[:BODY_SHOWN_MAX_BYTES]
    text = _as_text(shown, cut=len(shown) < len(data))
    return DeadLetterBody(
        **_letter(message).model_dump(),
        headers=dict(message.headers or {}),
        text=text,
        base64=None if text is not None else b64encode(shown).decode(),
        truncated=len(shown) < len(data),
    )


def _as_text(data: bytes, *, cut: bool) -> str | None:
    """Return the body as text, unless it is not; a character that the limit cut in two does not make it binary."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        return data[: error.start].decode() if cut and error.start >= len(data) - 3 else None
