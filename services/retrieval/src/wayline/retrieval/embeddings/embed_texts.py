"""Embed a few short texts at once: queries, memories, insights, the names of tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wayline.retrieval.embeddings.embedding import MEANING_MIN, Embedder
from wayline.retrieval.embeddings.embedding_payments import Account, Accounts, NoAccounts
from wayline.telemetry import Telemetry, names

if TYPE_CHECKING:
    from wayline.retrieval.embeddings.embedding import Vectors


@dataclass(frozen=True, slots=True)
class Embedded:
    """The vectors of some texts, in their order, and the model that made them."""

    model: str
    vectors: Vectors
    """Rows of length 1; comparable with vectors of the same model alone."""
    meaning: bool
    """False: the lexical embedder made them, and near texts share words, not meaning."""


@dataclass(frozen=True, slots=True)
class TextEmbedder:
    """Embeds short texts with the installation's embedder, and pays for them."""

    embedder: Embedder
    telemetry: Telemetry
    payments: Accounts = NoAccounts()  # noqa: RUF009 - it holds nothing

    @property
    def model(self) -> str:
        """Return the name of the model that embeds."""
        return self.embedder.model

    @property
    def meaning(self) -> bool:
        """Return whether near vectors mean like texts, and not only like words."""
        return self.embedder.vector_weight >= MEANING_MIN

    async def embed(self, tenant: str, texts: Sequence[str], *, holds: bool = False) -> Embedded:
        """Embed the texts of a tenant; `holds`: only where every hard budget has room. Raises Retry, and NoBudget."""
        return await self.embed_for(self.payments.account(tenant, holds=holds), texts)

    async def embed_for(
        self, account: Account | None, texts: Sequence[str], *, embedder: Embedder | None = None
    ) -> Embedded:
        """Embed texts that an account pays for. Raises Retry, and NoBudget where the account holds."""
        embedder = embedder or self.embedder
        with embedding_span(self.telemetry, embedder) as span:
            vectors = await embedder.embed(texts, payer=account)
            span.set_attribute(names.GEN_AI_EMBEDDING_DIMENSIONS, vectors.shape[1])
        return Embedded(embedder.model, vectors, embedder.vector_weight >= MEANING_MIN)


def embedding_span(telemetry: Telemetry, embedder: Embedder) -> Any:
    """Open the span of a call of the embedder."""
    return telemetry.calling(
        f"embeddings {embedder.model}",
        {
            names.GEN_AI_OPERATION: "embeddings",
            names.GEN_AI_PROVIDER: embedder.provider,
            names.GEN_AI_REQUEST_MODEL: embedder.model,
        },
    )
