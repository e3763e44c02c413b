"""A renewal of tokens has its whole time, however long another replica was waited for."""

from __future__ import annotations

import asyncio
from typing import Any

from wayline.tool_registry.logins import token_renewals
from wayline.tool_registry.logins.authorization_table import ClaimedTokens, Secrets
from wayline.tool_registry.logins.token_owner import TokenOwner
from wayline.tool_registry.logins.token_renewals import TokenRenewals

LIMIT_S = 0.2
"""Of a renewal: shorter than the wait for the other replica."""


class Table:
    """Tokens that another replica gives up late."""

    async def claim(self, *_: Any, **__: Any) -> ClaimedTokens:
        await asyncio.sleep(2 * LIMIT_S)
        return ClaimedTokens({"access_token": "old"}, ours=True)

    async def change(self, _: TokenOwner, change: Any) -> Secrets | None:
        return change({"access_token": "old"})

    async def end_claim(self, *_: Any) -> None:
        return None


async def test_a_wait_for_another_replica_takes_no_time_from_the_renewal(monkeypatch):
    monkeypatch.setattr(token_renewals, "RENEW_WITHIN_S", LIMIT_S)
    table: Any = Table()

    async def refresh(now: Secrets) -> Secrets:
        await asyncio.sleep(0)
        return {**now, "access_token": "new"}

    renewed = await TokenRenewals(table).renew(TokenOwner("default", "bank", ""), refresh)

    assert renewed is not None
    assert renewed["access_token"] == "new"
