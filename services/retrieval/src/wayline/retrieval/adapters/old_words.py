"""Store the words of passages anew that an earlier version stored with other words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from wayline.retrieval.word_renewal import OldDocument
from wayline.store import Connection, Record, Store

DOCUMENTS_MAX = 100
"""Documents asked for at once."""
PASSAGES_MAX = 100
"""Passages renewed in one transaction, which holds the document's row and, at its end, the tenant's word counts."""


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
            await self._count(conn, tenant, [row for row in rows if row["words"] is not None])
            if len(rows) == PASSAGES_MAX:
                return int(rows[-1]["position"])
            await conn.execute(self._sql.end_old_words, tenant, document_id)
        return None

    async def _count(self, conn: Connection, tenant: str, renewed: Sequence[Record]) -> None:
        """Bring the tenant's counts to what the renewed passages hold; last, for others wait for it."""
        change: Counter[str] = Counter()
        words: Counter[tuple[str, int]] = Counter()
        for row in renewed:
            change.update(row["gained"])
            change.subtract(row["lost"])
            words[row["embedding_model"], row["dimensions"]] += row["words"]
        await conn.execute(self._sql.count_terms, tenant, list(change), list(change.values()))
        lost = sorted(term for term, chunks in change.items() if chunks < 0)
        if lost:
            await conn.execute(self._sql.drop_unused_terms, tenant, lost)
        for (model, dimensions), difference in sorted(words.items()):
            await conn.execute(self._sql.count_corpus, tenant, model, dimensions, 0, difference)
