"""What a job has in its model's cache: what leaving the model costs, and what its session's next job may find. Pure."""

from __future__ import annotations

from datetime import timedelta

from wayline.contracts.budgets import LeftWarm
from wayline.contracts.models import CacheRules
from wayline.journal import Job
from wayline.llm import media

TTL_MAX_S = 86_400.0
"""A card may say any number."""


def warm_tokens(job: Job) -> int:
    """Count the tokens of the job's prompt that its model's provider still keeps, as far as can be told."""
    # A summary has taken the place of messages: what stands before them is still there.
    tokens = _sent(job, "tools", "system", *(() if job.conversation.compacted else ("messages",)))
    return tokens if _kept(job, tokens) else 0


def left_warm(job: Job) -> LeftWarm | None:
    """Return what the next job of the session finds warm: what all jobs of an agent's version have in common."""
    submitted, asked, routing = job.life.submitted, job.model.asked, job.routing
    if submitted is None or submitted.session_id is None or asked is None or routing.config is None:
        return None
    tokens = _sent(job, "tools", "system")
    # What is pinned follows the system prompt in all of them: the router knows how much it is.
    pinned_tokens = media.parts_tokens(routing.card, routing.config.pinned, job.conversation.attachments)
    if not _kept(job, tokens + pinned_tokens):
        return None
    return LeftWarm(
        session_id=submitted.session_id,
        agent=submitted.agent,
        agent_version=routing.agent_version or 0,
        model=routing.card.name,
        prefix_tokens=tokens,
        until=asked.at + timedelta(seconds=min(routing.card.cache.ttl_s or 0, TTL_MAX_S)),
    )


def _sent(job: Job, *parts: str) -> int:
    """Count the tokens of these parts of the last call's prompt."""
    return sum(part.tokens for part in job.model.asked.prefix if part.part in parts) if job.model.asked else 0


def _kept(job: Job, tokens: int) -> bool:
    """Return whether the provider keeps them: it has answered the job since, and nothing has dropped them."""
    asked, route = job.model.asked, job.routing.route
    if asked is None or route is None or job.at is None or route.name not in job.money.costs.model:
        return False
    card = job.routing.card
    if (asked.provider, asked.model) != (card.provider, card.model) or not _keeps(card.cache, job.at - asked.at):
        return False
    return tokens >= max(1, card.cache.min_tokens)


def _keeps(cache: CacheRules, age: timedelta) -> bool:
    """Return whether what was read so long ago is there for sure; a provider that tells no time may have dropped it."""
    return cache.kind != "none" and cache.ttl_s is not None and age.total_seconds() <= cache.ttl_s
