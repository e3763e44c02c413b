"""Delete facts with all that is kept of them; what words of theirs stand in goes with them."""

from __future__ import annotations

from collections.abc import Sequence

from wayline.contracts.memory import MemoriesForgotten
from wayline.store import Connection
from wayline.store.queries import Queries


async def forget_facts(
    conn: Connection, sql: Queries, tenant: str, ids: list[str], owners: Sequence[str], *, bring_back: bool = False
) -> MemoriesForgotten:
    """Delete facts with their versions, uses, conflicts and changes, and the keys of whole owners.

    A summary goes with each fact that it stands for, and the others of these count again. The facts of a summary that
    is deleted itself go with it, unless they are to be brought back.
    """
    if not bring_back:
        ids = [row["fact_id"] for row in await conn.fetch(sql.with_summarized, tenant, ids)]
    ids = [row["fact_id"] for row in await conn.fetch(sql.with_summaries, tenant, ids)]
    await conn.execute(sql.bring_back_summarized, tenant, ids)
    uses = await conn.execute(sql.forget_uses, tenant, ids)
    conflicts = await conn.execute(sql.forget_conflicts, tenant, ids)
    changes = await conn.execute(sql.forget_changes, tenant, ids)
    await conn.execute(sql.forget_mentions, tenant, ids)
    await conn.execute(sql.forget_conversations, tenant, ids)
    versions = await conn.execute(sql.forget_facts, tenant, ids)
    writes = await conn.execute(sql.forget_writes, tenant, list(owners))
    return MemoriesForgotten(
        facts=len(ids),
        versions=_count(versions),
        uses=_count(uses),
        conflicts=_count(conflicts),
        changes=_count(changes),
        writes=_count(writes),
    )


def _count(answer: str) -> int:
    return int(answer.rsplit(" ", 1)[-1])
