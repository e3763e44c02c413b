"""Vectors from any endpoint that speaks OpenAI's embeddings API: OpenAI, Ollama, vLLM, TEI and others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opentelemetry import trace

from wayline.contracts.errors import Retry, Unavailable
from wayline.contracts.models import TOKENS_MAX
from wayline.llm.tokens import estimate
from wayline.retrieval.embeddings.embedding_payments import PaidCall
from wayline.retrieval.errors import ProviderRefused
from wayline.telemetry import names

if TYPE_CHECKING:
    import httpx2

    from wayline.retrieval.embeddings.embedding import Vectors
    from wayline.retrieval.embeddings.embedding_payments import Payer

PLACEHOLDER_KEY = "none"
ATTEMPT_HEADER = "X-Wayline-Attempt"
BEGUN = frozenset({504})
"""Statuses of a proxy in front of the provider, which may have been at work for a while."""
RETRY_AFTER_MAX_S = 60.0
_TOO_LARGE = frozenset({400, 413, 422})
"""Statuses of a request with too many texts or tokens; other faults have them, too."""
CUT_FROM_TOKENS = 500
"""A single text that is refused is cut in half down to about so many: then it was not its length."""
_TRY_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


class _PerhapsTooLarge(ProviderRefused):
    """The provider refuses a request, and less of it may do."""


class OpenAICompatible:
    """POST {base}/embeddings, in batches within the provider's limits, floats on the wire."""

    provider = "openai_compatible"
    vector_weight = 0.5
    vector_weight_unknown = 0.5
    similarity_min = -1.0
    background = False

    def __init__(
        self,
        *,
        model: str,
        base_url: str,
        api_key: str | None,
        batch: int,
        timeout_s: float,
        dimensions: int | None = None,
        batch_max_tokens: int = 100_000,
        input_max_tokens: int = 8_000,
    ) -> None:
        self.model = model
        self.kept = model if dimensions is None else f"{model} {dimensions}"
        self._url = f"{base_url.rstrip('/')}/embeddings"
        self._headers = {"Authorization": f"Bearer {api_key or PLACEHOLDER_KEY}"}
        self._batch = batch
        self._batch_max_tokens = batch_max_tokens
        self._input_max_tokens = input_max_tokens
        self._timeout_s = timeout_s
        self.asked_dimensions = dimensions
        self._client: httpx2.AsyncClient | None = None

    async def embed(self, texts: Sequence[str], *, payer: Payer | None = None) -> Vectors:
        import numpy as np

        rows: list[list[float]] = []
        for batch in self.batches(texts):
            rows.extend(await self._divided([self._cut(text) for text in batch], payer))
        try:
            vectors = np.asarray(rows, np.float32)
        except (ValueError, TypeError):
            vectors = np.empty(0, np.float32)
        if vectors.ndim != 2 or not np.isfinite(vectors).all():
            raise ProviderRefused(f"{self._url} answered with vectors of different lengths or no numbers")
        lengths: Vectors = np.linalg.norm(vectors, axis=1, keepdims=True).astype(np.float32)
        lengths[lengths == 0] = 1
        return vectors / lengths

    def batches(self, texts: Sequence[str]) -> list[Sequence[str]]:
        """Divide texts so that no call has more of them, or of their tokens, than the provider takes."""
        batches: list[Sequence[str]] = []
        start, tokens = 0, 0
        for at, text in enumerate(texts):
            of_text = min(estimate(text), self._input_max_tokens)
            if at > start and (at - start == self._batch or tokens + of_text > self._batch_max_tokens):
                batches.append(texts[start:at])
                start, tokens = at, 0
            tokens += of_text
        if start < len(texts):
            batches.append(texts[start:])
        return batches

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    def _cut(self, text: str) -> str:
        """Return as much of a text as the model reads."""
        while (tokens := estimate(text)) > self._input_max_tokens:
            text = text[: min(len(text) - 1, len(text) * self._input_max_tokens // tokens)]
        return text

    async def _divided(self, texts: list[str], payer: Payer | None) -> list[list[float]]:
        """Ask for a batch, and for its halves where it may be too large for the provider."""
        try:
            return await self._paid(texts, payer)
        except _PerhapsTooLarge:
            middle = len(texts) // 2
            if middle == 0:
                if estimate(texts[0]) <= CUT_FROM_TOKENS:
                    raise
                return await self._divided([texts[0][: len(texts[0]) // 2]], payer)
        return await self._divided(texts[:middle], payer) + await self._divided(texts[middle:], payer)

    async def _paid(self, texts: list[str], payer: Payer | None) -> list[list[float]]:
        if payer is None:
            return await self._ask(texts, PaidCall("", ""))
        async with payer.paying(texts) as call:
            return await self._ask(texts, call)

    async def _ask(self, texts: list[str], call: PaidCall) -> list[list[float]]:
        import httpx2

        if self._client is None:
            self._client = httpx2.AsyncClient(timeout=self._timeout_s, headers=self._headers)
        body: dict[str, Any] = {"model": self.model, "input": texts, "encoding_format": "float"}
        if self.asked_dimensions is not None:
            body["dimensions"] = self.asked_dimensions
        try:
            reply = await self._client.post(self._url, json=body, headers={ATTEMPT_HEADER: call.attempt_id})
        except httpx2.TransportError as error:
            if isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout)):
                call.refused()
            raise Unavailable(f"the embedding provider at {self._url}", detail=type(error).__name__) from error
        if reply.status_code != 200 and reply.status_code not in BEGUN:
            call.refused()
        if reply.status_code in _TRY_AGAIN:
            raise Retry(
                f"the embedding provider at {self._url} answered {reply.status_code}; try again",
                after_s=_retry_after_s(reply.headers.get("retry-after")),
            )
        if reply.status_code != 200:
            refused = _PerhapsTooLarge if reply.status_code in _TOO_LARGE else ProviderRefused
            raise refused(
                f"the embedding provider at {self._url} answered {reply.status_code} for model {self.model!r}: check "
                f"WAYLINE_RETRIEVAL_EMBEDDING_MODEL, _BASE_URL and _API_KEY ({reply.text[:300]})"
            )
        return self._rows(reply, len(texts), call)

    def _rows(self, reply: httpx2.Response, wanted: int, call: PaidCall) -> list[list[float]]:
        try:
            body = reply.json()
            call.answered(_tokens(body))
            rows = [item["embedding"] for item in sorted(body["data"], key=lambda item: item["index"])]
        except (ValueError, KeyError, TypeError) as error:
            raise ProviderRefused(f"{self._url} does not speak the embeddings API ({type(error).__name__})") from error
        if len(rows) != wanted:
            raise ProviderRefused(f"{self._url} answered {len(rows)} vectors for {wanted} texts")
        if (tokens := _tokens(body)) is not None:
            span = trace.get_current_span()
            before = (getattr(span, "attributes", None) or {}).get(names.GEN_AI_INPUT_TOKENS, 0)
            span.set_attribute(names.GEN_AI_INPUT_TOKENS, before + tokens)
        return rows


def _tokens(body: Any) -> int | None:
    """Read the tokens that the endpoint counts; None: it gives no count, or one that cannot be billed."""
    usage = body.get("usage") if isinstance(body, dict) else None
    tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return tokens if isinstance(tokens, int) and 0 <= tokens <= TOKENS_MAX else None


def _retry_after_s(header: str | None) -> float:
    try:
        return min(RETRY_AFTER_MAX_S, max(0.1, float(header or 1)))
    except ValueError:
        return 1.0
