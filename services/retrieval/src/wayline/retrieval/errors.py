"""What can go wrong between a document and a passage.

Unreadable                a document cannot become text: its row says why, nothing is retried
WaylineError
├── Reject
│   ├── EmbedderMismatch      the stored vectors are of another embedding model than the query's would be
│   └── ProviderRefused       the embedding provider refuses what we ask: a setting is wrong
└── Retry
    └── Unavailable           Postgres or the embedding provider is away (from the contracts)
"""

from __future__ import annotations

from wayline.contracts.errors import Reject


class Unreadable(Exception):
    """A document cannot become text; the sentence says what to do and is shown to whoever sent it."""


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


class ProviderRefused(Reject):
    """The embedding provider refuses what we ask: a setting is wrong, and asking again will not help."""

    code = "embedding_provider_refused"
    status = 502
