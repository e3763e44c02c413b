"""Prompts in Postgres."""

from __future__ import annotations

from typing import Final

from wayline.contracts.errors import Conflict, NotFound
from wayline.gateway.shapes.prompts import Prompt, PromptBody
from wayline.store import Record, Store

PROMPTS_MAX: Final = 200
"""Of one tenant."""


class Prompts:
    """The prompts of every tenant."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def put(self, tenant: str, name: str, prompt: PromptBody) -> Prompt:
        """Save a prompt. Raises Conflict for a tenant that has as many as it may."""
        body = prompt.model_dump(mode="json")
        row = await self._store.fetchrow(tenant, self._store.sql.put_prompt, tenant, name, body, PROMPTS_MAX)
        if row is None:
            raise Conflict(f"tenant {tenant!r} has {PROMPTS_MAX} prompts: delete one first", code="too_many_prompts")
        return _prompt(row)

    async def get(self, tenant: str, name: str) -> Prompt:
        """Return a prompt. Raises NotFound."""
        row = await self._store.fetchrow(tenant, self._store.sql.get_prompt, tenant, name)
        if row is None:
            raise NotFound("prompt", name)
        return _prompt(row)

    async def listed(self, tenant: str) -> list[Prompt]:
        """List a tenant's prompts by name."""
        return [_prompt(row) for row in await self._store.fetch(tenant, self._store.sql.list_prompts, tenant)]

    async def delete(self, tenant: str, name: str) -> bool:
        """Delete a prompt; False where there is none."""
        return await self._store.fetchval(tenant, self._store.sql.delete_prompt, tenant, name) is not None


def _prompt(row: Record) -> Prompt:
    # Written by a newer version it may have more than this one knows.
    return Prompt(
        name=row["name"], prompt=PromptBody.model_validate(row["prompt"], extra="ignore"), saved_at=row["saved_at"]
    )
