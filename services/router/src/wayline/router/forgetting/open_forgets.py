"""The users who are being forgotten: what is submitted for them meanwhile waits, and then runs whole.

A submission that the bus had taken before the request to forget was answered is let in, so that it is erased like the
others. A later one would begin in a session that is being erased, so it waits in its stream until that is done.
"""

from __future__ import annotations

import time

from wayline.contracts.errors import Deferred
from wayline.router.forgetting.forget_table import ForgetTable

FRESH_S = 0.5
"""How long what was read is believed."""
GATE_CLOSED_AFTER_S = 2 * FRESH_S
"""From when on every router lets the submissions of a user wait who is being forgotten."""
TRY_AGAIN_S = 2.0


class OpenForgets:
    """Asked for each submission that names a user; two statements a second serve all."""

    def __init__(self, table: ForgetTable) -> None:
        self._table = table
        self._read_at = -FRESH_S
        self._open: dict[tuple[str, str], int | None] = {}

    async def require_not_forgetting(self, tenant: str, user_id: str | None, *, sequence: int) -> None:
        """Pass for a submission whose user is not being forgotten, or that is forgotten with him. Raises Deferred."""
        if user_id is None:
            return
        now = time.monotonic()
        if now - self._read_at >= FRESH_S:
            self._open, self._read_at = await self._table.open_users(), now
        upto = self._open.get((tenant, user_id), sequence)
        if upto is None or sequence > upto:
            raise Deferred("its user is being forgotten: it begins when that is done", after_s=TRY_AGAIN_S)
