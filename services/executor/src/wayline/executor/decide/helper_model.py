"""Which model answers a question beside the conversation, and how much of a job's money that may take. Pure."""

from __future__ import annotations

from decimal import Decimal

from wayline.contracts.models import ModelCard
from wayline.journal import Job
from wayline.llm.prices import LOCAL

COST_SHARE_MAX = Decimal("0.5")
"""Of what is left of the job's own budget: the answer comes first."""


def helper_model(job: Job) -> ModelCard | None:
    """Return the flash model among the job's own, else the job's model; None: no model that could."""
    able = (card for card in job.routing.candidates.cards if card.tier == "flash" and card.provider not in LOCAL)
    card = next(able, job.routing.card)
    return None if card.provider in LOCAL else card


def too_dear(worst_usd: Decimal | None, left_usd: Decimal | None) -> bool:
    """Return whether a call would take too much of what is left of the job's own budget; None: no bound is known."""
    return worst_usd is not None and left_usd is not None and worst_usd > COST_SHARE_MAX * left_usd
