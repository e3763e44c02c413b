"""The prefix guard: says of every call whether a provider's cache can continue the one before, and if not, why."""

from __future__ import annotations

from collections.abc import Sequence

from wayline.contracts.events import CacheBreak, Segment
from wayline.executor.prompt import Prints
from wayline.journal import Job


def cache_break(job: Job, prefix: Sequence[Segment], prints: Prints) -> CacheBreak | None:
    """Why a job's next prompt, of which `prefix` are the `prints`, does not begin with its last; None where it does.

    Of several causes the one that a provider meets first. Only `tools_changed`, `system_changed` and `history_edited`
    are ours to avoid, and mean a mistake in the assembly; the others follow from a decision or from a wait.
    """
    before = job.asked
    if before is None or not before.prefix:
        return None
    if (before.provider, before.model) != (job.card.provider, job.card.model):
        return "model_changed"
    if _part(before.prefix, "tools").hash != _part(prefix, "tools").hash:
        return "tools_changed"
    if _part(before.prefix, "system").hash != _part(prefix, "system").hash:
        return "system_changed"
    said = _part(before.prefix, "messages")
    if prints.first(said.count).hash != said.hash:
        return "compaction" if job.compacted else "history_edited"
    return "expired" if _expired(job) else None


def _part(prefix: Sequence[Segment], part: str) -> Segment:
    return next(segment for segment in prefix if segment.part == part)


def _expired(job: Job) -> bool:
    """Whether nobody has read the cache for so long that the provider has dropped it; the newest event is the clock."""
    ttl_s = job.card.cache.ttl_s
    if ttl_s is None or job.asked is None or job.at is None:
        return False
    return (job.at - job.asked.at).total_seconds() > ttl_s
