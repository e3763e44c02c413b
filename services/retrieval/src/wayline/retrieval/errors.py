"""What can go wrong between a document and a passage.

Unreadable                a document cannot become text: its row says why, nothing is retried (of wayline.documents)
WaylineError
├── Reject
│   ├── EmbedderMismatch      the stored vectors are of another embedding model than the query's would be
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

__all__ = ["EmbedderMismatch", "NoBudget", "ProviderRefused", "Unreadable"]


class EmbedderMismatch(Reject):
    """The stored vectors are of another embedding model than the query's would be."""

    code = "embedding_model_mismatch"
    status = 409

    def __init__(self, *, stored: str, configured: str, chunks: int) -> None:
        super().__init__(
            f"{chunks} passages were embedded with {stored}, but this service embeds with {configured}, and the two "
            f"cannot be compared. Ingest the documents again, or set WAYLINE_RETRIEVAL_EMBEDDING_MODEL back to "
            f"{stored}; until then mode=keyword works."
        )


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
