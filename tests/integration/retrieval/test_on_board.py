"""The model on board finds what means the same, with no key and no network."""

from __future__ import annotations

from typing import Any

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

    async def embedded() -> bool:
        return not (await client.search("scenery")).degraded

    await until(embedded, within=60, why="every passage has its vector")
    found = await client.search("Which scenery does the customer prefer?", mode="vector", top_k=2)

    assert (found.hits[0].document_id, found.degraded) == ("views", ())
    assert found.embedding_model == "all-MiniLM-L6-v2-int8"
