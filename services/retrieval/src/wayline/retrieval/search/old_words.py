"""Store the words of passages anew that an earlier version stored with other words."""

from __future__ import annotations

from wayline.retrieval.search.word_renewal import OldDocument
from wayline.store import Store

DOCUMENTS_MAX = 100
"""Documents asked for at once."""
PASSAGES_MAX = 100
"""Passages renewed in one transaction, which holds the document's row."""


class OldWordsTable:
    """The statements that renew the words of stored passages."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sql = store.sql

    async def documents(self, after: OldDocument | None) -> list[OldDocument]:
        """Return the next documents of any tenant whose words are old."""
        tenant, document_id = (after.tenant, after.document_id) if after else ("", "")
        async with self._store.system() as conn:
            rows = await conn.fetch(self._sql.documents_with_old_words, tenant, document_id, DOCUMENTS_MAX)
        return [OldDocument(row["tenant"], row["document_id"]) for row in rows]

    async def renew(self, document: OldDocument, *, after: int) -> int | None:
        """Renew the passages that follow a position; return the last one's, or None when the document is done.

        Renewing a passage again changes nothing, so two services may do the same document, and one that was killed
        begins it anew.
        """
        tenant, document_id = document.tenant, document.document_id
        async with self._store.tenant(tenant) as conn:
            if not await conn.fetchval(self._sql.lock_old_words, tenant, document_id):
                return None
            rows = await conn.fetch(self._sql.renew_words, tenant, document_id, after, PASSAGES_MAX)
            if len(rows) == PASSAGES_MAX:
                return int(rows[-1]["position"])
            await conn.execute(self._sql.end_old_words, tenant, document_id)
        return None
