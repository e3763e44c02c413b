"""Short texts are embedded at once, with the name of the model that did it."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from wayline.contracts.knowledge import EMBEDDED_MAX, EmbedTexts
from wayline.retrieval.embeddings.embed_texts import TextEmbedder
from wayline.retrieval.embeddings.embedding import LexicalHash
from wayline.telemetry import Telemetry


async def test_texts_come_back_as_vectors_with_their_model():
    embedded = await TextEmbedder(LexicalHash(), Telemetry("test")).embed("acme", ["sea views", "a sea view"])

    assert (embedded.model, embedded.vectors.shape, embedded.meaning) == ("lexical-hash-384", (2, 384), False)
    assert embedded.vectors[0] @ embedded.vectors[1] > 0.5


def test_hundreds_of_texts_may_be_embedded_at_once_but_not_more():
    assert len(EmbedTexts(tenant="acme", texts=("a",) * EMBEDDED_MAX).texts) == EMBEDDED_MAX >= 300
    with pytest.raises(ValidationError):
        EmbedTexts(tenant="acme", texts=("a",) * (EMBEDDED_MAX + 1))
