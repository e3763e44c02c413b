"""The model on board finds what means the same, with no key and no network."""

from __future__ import annotations

from typing import Any

from wayline.contracts.knowledge import SearchResult
from wayline.testkit import until

NOTES = {
    "views": "Client loves sea views",
    "terms": "Invoices are paid within thirty days",
    "call": "He asked for a call on Monday morning",
    "end": "The contract ends in December",
}


async def test_a_passage_is_found_that_shares_no_word_with_the_query(start: Any, client: Any):
    await start(embedding_model="all-MiniLM-L6-v2-int8")
    for name, text in NOTES.items():
        await client.ingest(name, text, name=f"{name}.txt")

    async def whole() -> SearchResult | None:
        # The model may be too slow for a query while it embeds the passages.
        found = await client.search("Which scenery does the customer prefer?", mode="vector", top_k=2)
        return None if found.degraded else found

    found = await until(whole, within=60, why="every passage has its vector")

    assert found.hits[0].document_id == "views"
    assert found.embedding_model == "all-MiniLM-L6-v2-int8"
