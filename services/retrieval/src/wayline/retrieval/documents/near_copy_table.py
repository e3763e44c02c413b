"""Which documents have nearly the same text: noted with each document, found by an index of keys."""

from __future__ import annotations

from wayline.retrieval.documents.near_copies import CANDIDATES_MAX, SAME_MIN, bands_of, share_of
from wayline.store import Connection
from wayline.store.queries import Queries


async def note_near_copy(
    conn: Connection, sql: Queries, *, tenant: str, document_id: str, signature: bytes | None
) -> None:
    """Note a document's signature, and the other one that its text is nearest to, where one is near."""
    await conn.execute(sql.drop_bands, tenant, document_id)
    share, near = 0.0, None
    if signature is not None:
        bands = bands_of(signature)
        rows = await conn.fetch(sql.near_candidates, tenant, document_id, bands, CANDIDATES_MAX)
        found = [(share_of(signature, row["signature"]), row["document_id"]) for row in rows]
        share, near = min(found, key=lambda one: (-one[0], one[1]), default=(0.0, None))
        await conn.execute(sql.put_bands, tenant, document_id, bands)
    told = (near, share) if share >= SAME_MIN else (None, None)
    await conn.execute(sql.note_copy, tenant, document_id, signature, *told)
