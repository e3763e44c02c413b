"""Labels that jobs are given after their submission."""

from __future__ import annotations

from wayline.contracts.job_tags import TaggedJobs, TagJobs
from wayline.contracts.jobs import TAGS_MAX
from wayline.store import Store


class Tagger:
    """Labels rows of jobs; any replica takes any request."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def on_tag(self, asked: TagJobs) -> TaggedJobs:
        """Label jobs, and return those that have their labels now."""
        # In one order everywhere, so that two requests never wait for each other.
        jobs, add, remove = sorted(set(asked.job_ids)), list(asked.add), list(asked.remove)
        async with self._store.tenant(asked.tenant) as conn:
            await conn.fetch(self._store.sql.lock_jobs, asked.tenant, jobs)
            rows = await conn.fetch(self._store.sql.tag_jobs, asked.tenant, jobs, add, remove, TAGS_MAX)
        return TaggedJobs(job_ids=tuple(row["job_id"] for row in rows))
