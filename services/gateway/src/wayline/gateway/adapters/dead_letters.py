"""The dead-letter stream, read from its newest message backwards."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from dataclasses import dataclass

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
    DismissedLetterList,
)
from wayline.journal import fingerprint
from wayline.store import Store

STREAM = "DEAD"
WINDOW = 50
"""Messages read at once."""
SCANNED_MAX = 1_000
"""Messages looked at for one page: other tenants' letters lie between one's own."""
BODY_SHOWN_MAX_BYTES = 64 * 1024


@dataclass(frozen=True)
class DeadLetters:
    """One tenant's view of the stream."""

    bus: Bus
    store: Store
    tenant: str

    async def page(self, *, limit: int, before: int | None) -> DeadLetterPage:
        """Return the newest letters below a sequence; a page may be short or empty and still have a next one."""
        first, last = await self._bounds()
        top = last if before is None else min(last, before - 1)
        bottom = max(first, top - SCANNED_MAX + 1)
        found: list[DeadLetter] = []
        while top >= bottom:
            low = max(bottom, top - WINDOW + 1)
            for message in await self._window(low, top):
                found.append(_letter(message))
                if len(found) == limit:
                    return DeadLetterPage(dead_letters=tuple(found), next_cursor=_cursor(found[-1].sequence, first))
            top = low - 1
        return DeadLetterPage(dead_letters=tuple(found), next_cursor=_cursor(bottom, first))

    async def of_cause(self, fingerprint: str) -> list[DeadLetterBody]:
        """Return the newest letters of one cause with their bodies."""
        found: list[DeadLetterBody] = []
        first, top = await self._bounds()
        bottom = max(first, top - SCANNED_MAX + 1)
        while top >= bottom:
            low = max(bottom, top - WINDOW + 1)
            window = await self._window(low, top)
            found += [_with_body(message) for message in window if _letter(message).fingerprint == fingerprint]
            top = low - 1
        return found

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

    async def dismissed(self, *, limit: int) -> DismissedLetterList:
        """List the letters that were dismissed, newest first."""
        rows = await self.store.fetch(self.tenant, self.store.sql.dismissed_letters, self.tenant, limit)
        return DismissedLetterList(dismissed=tuple(DismissedLetter(**dict(row)) for row in rows))

    async def _window(self, low: int, high: int) -> list[RawStreamMsg]:
        found = await asyncio.gather(*(self._message(sequence) for sequence in range(high, low - 1, -1)))
        return [message for message in found if message is not None]

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


def _cursor(lowest_seen: int, first: int) -> str | None:
    return str(lowest_seen) if lowest_seen > first else None


def _as_text(data: bytes, *, cut: bool) -> str | None:
    """Return the body as text, unless it is not; a character that the limit cut in two does not make it binary."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        return data[: error.start].decode() if cut and error.start >= len(data) - 3 else None
