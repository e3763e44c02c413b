"""What can go wrong between a document and a passage.

Unreadable                a document cannot become text: its row says why, nothing is retried (of wayline.documents)
WaylineError
├── Reject
│   ├── NoBudget              a hard budget has no room for the embedding
│   └── ProviderRefused       the embedding provider refuses what we ask: a setting is wrong
└── Retry
    └── Unavailable           Postgres or the embedding provider is away (from the contracts)
"""

from __future__ import annotations

from decimal import Decimal

from wayline.contracts.errors import Reject
from wayline.contracts.money import dollars
from wayline.documents import Unreadable

__all__ = ["NoBudget", "ProviderRefused", "Unreadable"]


class NoBudget(Reject):
    """A hard budget has no room for an embedding, or nobody knows what it costs."""

    code = "budget_exhausted"
    status = 402

    def __init__(self, *, budget: str, worst_usd: Decimal | None, model: str) -> None:
        wanted = (
            f"a call of {model} whose price nobody has said: set WAYLINE_RETRIEVAL_EMBEDDING_USD_PER_MTOK"
            if worst_usd is None
            else f"an embedding of up to {dollars(worst_usd)}: raise it, and send the document again"
        )
        super().__init__(f"The budget {budget!r} has no room for {wanted}.")


class ProviderRefused(Reject):
    """The embedding provider refuses what we ask: a setting is wrong, and asking again will not help."""

    code = "embedding_provider_refused"
    status = 502
