"""Another embedding model takes the old one's place without a search that fails, and can be taken back."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from wayline.chassis import Failpoint
from wayline.contracts.errors import Refused
from wayline.contracts.vector_sets import BuildVectors, GetVectorSets, SwitchVectors, UndoVectors, VectorSetList
from wayline.simulator import Asked, Fault, Simulator
from wayline.simulator.models import Facts, Rates
from wayline.testkit import Platform, until
from wayline.testkit.walks import cases

MODEL = "local-embedding"
LEXICAL = "lexical-hash-384"
KILLS = [point for point in Failpoint if point.startswith(("retrieval.vectors.", "retrieval.switch."))]


@dataclass
class Provider:
    """A provider of embeddings: how often it has embedded each text, and how it fails."""

    url: str = ""
    fault: Fault = field(default_factory=Fault)
    texts: Counter[str] = field(default_factory=Counter)

    def __call__(self, asked: Asked) -> Fault:
        if self.fault == Fault():
            self.texts.update(turn.text for turn in asked.turns)
        return self.fault

    @property
    def settings(self) -> dict[str, Any]:
        return {"embedding_model": MODEL, "embedding_base_url": self.url}


@pytest.fixture(params=[8])
async def provider(request: Any) -> AsyncIterator[Provider]:
    provider = Provider()
    models = {MODEL: Facts(name=MODEL, provider="local", rates=Rates(), dimensions=request.param)}
    async with Simulator(faults=provider, models=models) as simulator:
        provider.url = simulator.openai_url
        yield provider


async def sets(client: Any) -> dict[str, str]:
    """The model of each set, and its state."""
    found = await client.bus.ask(GetVectorSets(tenant="acme"), VectorSetList)
    return {one.model: one.state for one in found.sets}


async def becomes(client: Any, **states: str) -> None:
    wanted = {name.replace("_", "-"): state for name, state in states.items()}

    async def so() -> bool:
        return wanted.items() <= (await sets(client)).items()

    await until(so, why=f"the sets are {wanted}")


async def ingest(client: Any, *names: str) -> None:
    for name in names:
        await client.ingest(name, f"The {name} crosses the river.\n\n" + f"{name} " * 200)


async def test_another_model_goes_live_when_its_set_is_whole(
    start: Any, client: Any, provider: Provider, platform: Any
):
    await start()
    await ingest(client, "zebra", "gnu")
    await client.search("zebra")
    await platform.stop("retrieval")
    provider.fault = Fault(error="rate_limited", retry_after_s=0.2)

    await start(**provider.settings)
    during = await client.search("zebra")
    await becomes(client, **{LEXICAL: "live", MODEL: "building"})
    provider.fault = Fault()
    await becomes(client, **{LEXICAL: "old", MODEL: "live"})

    after = await client.search("zebra")
    assert (during.embedding_model, after.embedding_model) == (LEXICAL, MODEL)
    assert during.degraded == after.degraded == ()
    assert {times for text, times in provider.texts.items() if "\n" in text} == {1}
    document = await client.get("gnu")
    assert document.chunks_embedded == document.chunks_total


async def test_a_set_is_compared_then_switched_to_and_taken_back(start: Any, client: Any, provider: Provider):
    await start(**provider.settings)
    await ingest(client, "zebra", "gnu")
    await client.search("zebra")
    await client.search("gnu")

    await client.bus.ask(BuildVectors(tenant="acme", model=LEXICAL), VectorSetList)
    await becomes(client, **{LEXICAL: "shadow", MODEL: "live"})
    [_, built] = (await client.bus.ask(GetVectorSets(tenant="acme"), VectorSetList)).sets
    assert (built.queries, built.passages, built.documents_waiting) == (2, built.passages_in_all, 0)
    assert 0 < (built.overlap or 0) <= 1

    await client.bus.ask(SwitchVectors(tenant="acme"), VectorSetList)
    assert (await client.search("zebra")).embedding_model == LEXICAL
    await ingest(client, "okapi")
    await client.bus.ask(UndoVectors(tenant="acme"), VectorSetList)
    await becomes(client, **{LEXICAL: "old", MODEL: "live"})

    async def whole() -> bool:
        return not (await client.search("okapi")).degraded

    await until(whole, why="what came while the set was not searched has its vectors")
    hits = (await client.search("okapi", mode="vector", top_k=50)).hits
    assert {hit.document_id for hit in hits} == {"zebra", "gnu", "okapi"}


async def test_only_a_model_that_the_installation_has_is_built(start: Any, client: Any):
    await start()
    with pytest.raises(Refused) as refused:
        await client.bus.ask(BuildVectors(tenant="acme", model="dear-model"), VectorSetList)
    assert refused.value.code == "unknown_embedding_model"
    with pytest.raises(Refused) as refused:
        await client.bus.ask(UndoVectors(tenant="acme"), VectorSetList)
    assert refused.value.code == "not_found"


async def test_a_document_is_found_by_words_before_the_provider_answers(start: Any, client: Any, provider: Provider):
    provider.fault = Fault(error="rate_limited", retry_after_s=0.2)
    await start(**provider.settings)

    await ingest(client, "zebra")
    waiting = await client.get("zebra")
    found = await client.search("zebra", mode="keyword")
    provider.fault = Fault()

    async def embedded() -> bool:
        document = await client.get("zebra")
        return document.chunks_embedded == document.chunks_total

    await until(embedded, why="every passage has its vector")
    assert (waiting.status, waiting.chunks_embedded, len(found.hits) > 0) == ("ready", 0, True)


@pytest.mark.parametrize("provider", [3072], indirect=True)
async def test_vectors_of_3072_dimensions_are_searched_by_their_index(
    start: Any, client: Any, provider: Provider, owner: Any
):
    await start(**provider.settings)
    await ingest(client, "zebra")

    assert (await client.search("zebra", mode="vector")).hits
    [(plan,)] = await owner(
        "SELECT indexdef FROM pg_indexes WHERE schemaname = 'retrieval' AND indexname = 'chunk_vectors_3072'"
    )
    assert "halfvec_cosine_ops" in plan


@pytest.mark.parametrize("point", cases(KILLS))
async def test_a_set_is_built_and_paid_once_after_a_kill(
    start: Any, client: Any, platform: Platform, provider: Provider, tmp_path: Path, *, point: Failpoint
):
    await start()
    await ingest(client, "zebra", "gnu")
    await platform.stop("retrieval")
    fleet = await platform.make_fleet(tmp_path, "retrieval")
    fleet.set(
        "retrieval",
        WAYLINE_RETRIEVAL_EMBEDDING_MODEL=MODEL,
        WAYLINE_RETRIEVAL_EMBEDDING_BASE_URL=provider.url,
    )
    killed = await fleet.start("retrieval", point)
    assert await killed.ended() == -signal.SIGKILL
    async with platform.superuser() as conn:
        await conn.execute("UPDATE retrieval.pending_vectors SET claimed_until = now()")

    await start(**provider.settings)
    await becomes(client, **{LEXICAL: "old", MODEL: "live"})

    async with platform.superuser() as conn:
        rows = await conn.fetch(
            "SELECT state, count(chunk_id) AS held FROM retrieval.vector_sets AS sets "
            "JOIN retrieval.chunk_vectors USING (tenant, set_id) GROUP BY sets.tenant, set_id, state"
        )
        chunks = await conn.fetchval("SELECT count(*) FROM retrieval.chunks")
        waiting = await conn.fetchval("SELECT count(*) FROM retrieval.pending_vectors")
    assert {row["state"]: row["held"] for row in rows} == {"live": chunks, "old": chunks}
    assert (set(provider.texts.values()), waiting) == ({1}, 0)
