"""The vectors of facts and of what is asked for: a provider that is away costs the meaning, never the memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from wayline.contracts.errors import Reject, Retry
from wayline.retrieval.embedding import Embedder
from wayline.retrieval.embedding_payments import Accounts

if TYPE_CHECKING:
    from wayline.retrieval.embedding import Vectors

log = structlog.get_logger()

MEANING_MIN = 0.1
"""What vectors have to be worth beside words where an embedder understands meaning."""
LEXICAL_WEIGHT = 0.5
"""Of a cosine that only compares words, beside the words themselves."""


@dataclass(frozen=True, slots=True)
class FactVectors:
    """Embeds facts with the installation's embedder."""

    embedder: Embedder
    payments: Accounts

    @property
    def model(self) -> str:
        return self.embedder.model

    @property
    def weight(self) -> float:
        """Return what a cosine is worth beside words."""
        return 1.0 if self.embedder.vector_weight >= MEANING_MIN else LEXICAL_WEIGHT

    async def of(self, tenant: str, texts: Sequence[str]) -> tuple[Vectors | None, str | None]:
        """Return the vectors of texts, or why there are none."""
        if not texts:
            return None, None
        account = self.payments.account(tenant, holds=True)
        try:
            return await self.embedder.embed(list(texts), payer=account), None
        except (Retry, Reject) as error:
            log.warning("facts are without vectors for now", tenant=tenant, error=str(error))
            return None, f"vectors: {error}"
