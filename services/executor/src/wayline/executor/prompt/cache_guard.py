"""The prefix guard: says of every call whether a provider's cache can continue the one before, and if not, why."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from wayline.contracts.events import CacheBreak, Segment
from wayline.contracts.models import CacheRules
from wayline.executor.prompt.assemble import PromptHashes
from wayline.journal import Job


def cache_break(job: Job, prefix: Sequence[Segment], hashes: PromptHashes) -> CacheBreak | None:
    """Return why a job's next prompt does not begin with its last; None where it does.

    Of several causes the one that a provider meets first. Only `tools_changed`, `system_changed` and `history_edited`
    are ours to avoid, and mean a mistake in the assembly; the others follow from a decision or from a wait.
    """
    continued = None if job.model.asked else job.session.continued
    if continued is not None and continued.lost is not None:
        return "history_lost"
    before = job.model.asked or (continued and continued.call)
    if before is None or not before.prefix:
        return None
    card = job.routing.card
    if (before.provider, before.model) != (card.provider, card.model):
        return "model_changed"
    was, now = _parts(before.prefix), _parts(prefix)
    if continued is not None and continued.agent_changed and _heads(was) != _heads(now):
        return "agent_changed"
    if was["tools"].hash != now["tools"].hash:
        return "tools_changed"
    if was["system"].hash != now["system"].hash:
        return "system_changed"
    sent = was["messages"]
    if hashes.hash_of(sent.count) != sent.hash:
        if job.conversation.compacted:
            return "compaction"
        return "agent_changed" if continued is not None and continued.unbound else "history_edited"
    return "expired" if _expired(card.cache, before.at, job.at) else None


def _parts(prefix: Sequence[Segment]) -> dict[str, Segment]:
    return {segment.part: segment for segment in prefix}


def _heads(parts: dict[str, Segment]) -> tuple[str, str]:
    return parts["tools"].hash, parts["system"].hash


def _expired(cache: CacheRules, asked_at: datetime, at: datetime | None) -> bool:
    """Return whether the cache was unread for so long that its provider dropped it; the newest event is the clock."""
    return cache.ttl_s is not None and at is not None and (at - asked_at).total_seconds() > cache.ttl_s
