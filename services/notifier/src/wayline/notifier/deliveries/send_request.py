"""One request to a receiver: signed, guarded, within its time, and never redirected."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from wayline.contracts.webhooks import SHOWN_CHARS_MAX, Attempt
from wayline.guarded_http import BadStatus, GuardedClient, GuardedRequestError, Limits, look_up_for
from wayline.notifier.webhooks.signing import signed_headers
from wayline.notifier.webhooks.webhook_table import Clock, WebhookTable, address_in
from wayline.store import Record
from wayline.store.sealing import CannotOpen

ANSWER_MAX_BYTES = 16 * 1024
"""Of a receiver's answer: what is beyond is not read."""
ERROR_CHARS_MAX = 500


@dataclass(frozen=True, slots=True)
class Tried:
    """A try, and how long its receiver asks to be left alone."""

    attempt: Attempt
    retry_after_s: float | None = None


@dataclass(frozen=True)
class RequestSender:
    """Sends deliveries."""

    table: WebhookTable
    client: GuardedClient
    clock: Clock
    timeout_s: float
    seconds: Callable[[], float] = time.monotonic

    async def send(self, row: Record) -> Tried:
        """Send a claimed delivery once."""
        look_up_for(row["tenant"])
        at, began = self.clock(), self.seconds()
        status, body, error, retry_after_s = None, b"", None, None
        try:
            content = row["body"].encode()
            headers = signed_headers(row["id"], int(at.timestamp()), content, self.table.secrets_of(row))
            answer = await self.client.request(
                "POST",
                row["url"] or address_in(row) or "",
                headers={**headers, "content-type": "application/json"},
                content=content,
                limits=Limits(body_max_bytes=ANSWER_MAX_BYTES, total_s=self.timeout_s, redirects_max=0, cut=True),
            )
            status, body = answer.status, answer.content
            if not 200 <= status < 300:
                error = f"it answered {status}; redirects are not followed" if status < 400 else f"it answered {status}"
        except BadStatus as failure:
            status, body, error = failure.status, failure.content, f"it answered {failure.status}"
            retry_after_s = failure.retry_after_s
        except (GuardedRequestError, CannotOpen) as failure:
            error = str(failure)[:ERROR_CHARS_MAX]
        duration_ms = (self.seconds() - began) * 1_000
        return Tried(_attempt(at, status, error, body, duration_ms), retry_after_s)


def _attempt(at: datetime, status: int | None, error: str | None, body: bytes, duration_ms: float) -> Attempt:
    # A null byte is in no text of Postgres.
    text = body.decode(errors="replace")[:SHOWN_CHARS_MAX].replace("\x00", "\ufffd")
    return Attempt(at=at, status=status, error=error, body=text, duration_ms=round(duration_ms, 1))
