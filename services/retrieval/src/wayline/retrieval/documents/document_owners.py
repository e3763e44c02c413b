"""Who sent each document, where that was said."""

from __future__ import annotations

from wayline.store import Store


class DocumentOwners:
    """One row a document of a user."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def note(self, tenant: str, document_id: str, user_id: str | None) -> None:
        """Note who sent a document; None: nobody is named, and an earlier name stays."""
        if user_id is not None:
            await self._store.execute(tenant, self._store.sql.note_owner, tenant, document_id, user_id)

    async def documents_of(self, tenant: str, user_id: str) -> list[str]:
        """Return the documents that a user sent."""
        rows = await self._store.fetch(tenant, self._store.sql.documents_of_user, tenant, user_id)
        return [row["document_id"] for row in rows]

    async def forget(self, tenant: str, document_id: str) -> None:
        """Forget who sent a document."""
        await self._store.execute(tenant, self._store.sql.forget_owner, tenant, document_id)
