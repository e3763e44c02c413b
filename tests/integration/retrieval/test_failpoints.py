"""A retrieval process that is killed around storing and acking leaves every document whole and stored once."""

import signal
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from wayline.chassis import Bus, Failpoint
from wayline.chassis.topology import INDEX_RETRIEVAL
from wayline.contracts.errors import Retry
from wayline.contracts.memory import FactsSaved, SaveMemories
from wayline.contracts.memory_consolidation import (
    Consolidated,
    ConsolidateMemories,
    ConsolidationUndone,
    UndoConsolidation,
)
from wayline.contracts.memory_summaries import MemoriesSummarized, SummarizeMemories
from wayline.retrieval.documents.wiring import INDEX_ATTEMPTS_MAX
from wayline.simulator import Asked, Fault, Simulator
from wayline.simulator.models import Facts, Rates
from wayline.testkit import Platform
from wayline.testkit.processes import Fleet
from wayline.testkit.walks import cases

ACK_WAIT_S = 1
FACTS = [point for point in Failpoint if point.startswith("retrieval.facts.")]
SETS = {point for point in Failpoint if point.startswith(("retrieval.vectors.", "retrieval.switch."))}
"""They have tests of their own."""
CONSOLIDATION = [point for point in Failpoint if point.startswith("retrieval.consolidate.")]
UNDO = [point for point in Failpoint if point.startswith("retrieval.undo.")]
RETRIEVAL = [
    point
    for point in Failpoint
    if point.startswith("retrieval.") and point not in {*FACTS, *SETS, *CONSOLIDATION, *UNDO}
]


@pytest.fixture
async def embedded() -> AsyncIterator[tuple[Simulator, Counter[str]]]:
    """A provider of embeddings, and how often it has embedded each text."""
    texts: Counter[str] = Counter()

    def count(asked: Asked) -> Fault:
        texts.update(turn.text for turn in asked.turns)
        return Fault()

    models = {"local-embedding": Facts(name="local-embedding", provider="local", rates=Rates(), dimensions=8)}
    async with Simulator(faults=count, models=models) as simulator:
        yield simulator, texts


@pytest.fixture
async def fleet(platform: Platform, tmp_path: Path, embedded: tuple[Simulator, Counter[str]]) -> Fleet:
    fleet = await platform.make_fleet(tmp_path, "retrieval")
    fleet.set(
        "retrieval",
        WAYLINE_RETRIEVAL_EMBEDDING_MODEL="local-embedding",
        WAYLINE_RETRIEVAL_EMBEDDING_BASE_URL=embedded[0].openai_url,
        WAYLINE_RETRIEVAL_EMBEDDING_BATCH="1",
    )
    return fleet


async def die(bus: Bus, times: int) -> None:
    """Take the queue's one message so often, and let nothing be heard of it."""
    pulled = await bus.js.pull_subscribe_bind(consumer=INDEX_RETRIEVAL.name, stream=INDEX_RETRIEVAL.stream)
    for _ in range(times):
        [message] = await pulled.fetch(1, timeout=10)
        await message.nak()


@pytest.fixture
async def impatient(client: Any) -> None:
    """What a killed process had in hand comes again soon."""
    await client.bus.js.add_consumer(INDEX_RETRIEVAL.stream, replace(INDEX_RETRIEVAL, ack_wait_s=ACK_WAIT_S).config())


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("point", cases(RETRIEVAL))
async def test_a_document_is_stored_and_embedded_once_after_a_kill(
    point: Failpoint, fleet: Fleet, *, client: Any, owner: Any, counted: Any, embedded: tuple[Simulator, Counter[str]]
):
    await client.send("d1", "The tortoise wins.\n\n" + "".join(f"filler{n} " for n in range(280)))

    killed = await fleet.start("retrieval", point)
    assert await killed.ended() == -signal.SIGKILL
    await fleet.start("retrieval")
    await client.idle()

    await counted()

    assert (await client.get("d1")).status == "ready"
    [(chunks, known)] = await owner("SELECT count(*), max(c.chunks) FROM retrieval.chunks, retrieval.corpora AS c")
    assert chunks == known == 3
    # A batch, here of one passage, that was answered and not yet kept is asked for again.
    lost = 1 if point == Failpoint.RETRIEVAL_KEEP_BEFORE else 0
    assert sorted(embedded[1].values()) == [1, 1, 1 + lost]


@pytest.mark.usefixtures("impatient")
async def test_a_document_that_kills_its_indexer_fails_with_a_reason(fleet: Fleet, client: Any, start: Any, owner: Any):
    await client.send("d1", "The tortoise wins.")
    killed = await fleet.start("retrieval", Failpoint.RETRIEVAL_STORE_BEFORE)
    assert await killed.ended() == -signal.SIGKILL
    assert await owner("SELECT status FROM retrieval.documents") == [("indexing",)]
    await die(client.bus, INDEX_ATTEMPTS_MAX - 1)

    await start()
    await client.idle()

    document = await client.get("d1")
    assert (document.status, document.chunks_total) == ("failed", 1)
    assert "its handlers died" in document.error
    letter = await client.bus.js.get_msg("DEAD", 1)
    assert letter.headers["Wayline-Dead-Code"] == "undeliverable"
    assert (await client.ingest("d1", "The hare wins.")).status == "ready"


@pytest.mark.usefixtures("impatient")
async def test_a_document_that_is_never_begun_is_failed_too(client: Any, start: Any, owner: Any):
    """Its message kills whoever reads it: the row says queued, as the gateway left it."""
    await client.send("d1", "The tortoise wins.")
    await die(client.bus, INDEX_ATTEMPTS_MAX)
    await owner(
        "INSERT INTO retrieval.documents (tenant, document_id, name, media_type, size_bytes, metadata, status) "
        "VALUES ('acme', 'd1', 'd1', 'text/plain', 1, '{}', 'queued')"
    )

    await start()
    await client.idle()

    assert (await client.get("d1")).status == "failed"


@pytest.mark.parametrize("point", cases(FACTS))
async def test_a_save_that_is_killed_is_whole_once_when_asked_again(
    point: Failpoint, fleet: Fleet, client: Any, owner: Any
):
    """The second save merges with the first one, and is killed while it does."""
    said = [{"text": "Lives in Bonn.", "category": "profile"}, {"text": "Keeps bees.", "category": "profile"}]

    def saving(key: str, quoted: int) -> SaveMemories:
        facts = [one | {"quote": one["text"], "quoted": {"job_id": "j", "seq": quoted}} for one in said]
        return SaveMemories.model_validate({"tenant": "acme", "key": key, "user_id": "ann", "facts": facts})

    killed = await fleet.start("retrieval", point, nth=2)
    await client.bus.ask(saving("k1", 1), FactsSaved)
    with pytest.raises(Retry):
        await client.bus.ask(saving("k2", 2), FactsSaved, timeout_s=2)
    assert await killed.ended() == -signal.SIGKILL
    await fleet.start("retrieval")
    again = await client.bus.ask(saving("k2", 2), FactsSaved)

    assert again.repeated is (point is Failpoint.RETRIEVAL_FACTS_SAVED)
    assert [one.outcome for one in again.outcomes] == ["merged", "merged"]
    stored = await owner("SELECT count(*), min(times), max(times) FROM retrieval.facts")
    assert [tuple(row) for row in stored] == [(2, 2, 2)]


@pytest.mark.parametrize("point", cases(FACTS))
async def test_a_summary_that_is_killed_is_whole_once_when_asked_again(
    point: Failpoint, fleet: Fleet, client: Any, owner: Any
):
    texts = ("Drinks dark coffee.", "Drinks coffee black.")
    facts = [{"text": text, "category": "preference"} for text in texts]
    saving = {"tenant": "acme", "key": "k", "user_id": "ann", "facts": facts, "written": {"source": "user_noted"}}
    killed = await fleet.start("retrieval", point, nth=2)
    saved = await client.bus.ask(SaveMemories.model_validate(saving), FactsSaved)
    of = [{"fact_id": one.fact_id, "version": 1} for one in saved.outcomes]
    summaries = [{"text": "Drinks dark coffee, black.", "of": of}]
    asked = SummarizeMemories.model_validate({"tenant": "acme", "key": "s", "user_id": "ann", "summaries": summaries})
    with pytest.raises(Retry):
        await client.bus.ask(asked, MemoriesSummarized, timeout_s=2)
    assert await killed.ended() == -signal.SIGKILL
    live = "SELECT count(*) FROM retrieval.facts WHERE retired_at IS NULL"
    assert [tuple(row) for row in await owner(live)] == [(1 if point is Failpoint.RETRIEVAL_FACTS_SAVED else 2,)]
    await fleet.start("retrieval")
    again = await client.bus.ask(asked, MemoriesSummarized)

    assert again.repeated is (point is Failpoint.RETRIEVAL_FACTS_SAVED)
    stored = await owner("SELECT text, state, summarized_in IS NULL FROM retrieval.facts ORDER BY 2, 1")
    assert [tuple(row) for row in stored] == [
        ("Drinks dark coffee, black.", "active", True),
        ("Drinks coffee black.", "superseded", False),
        ("Drinks dark coffee.", "superseded", False),
    ]


CONSOLIDATE = ConsolidateMemories(tenant="acme", by="ops")


async def make_consolidation_due(client: Any, platform: Platform) -> None:
    """Save facts of two users, of each of whom one is over, one unused, and two are the same."""
    texts = ("Keeps bees.", "Plays chess.", "Lives in Bonn.", "Owns a boat.")
    facts = [{"text": text, "category": "profile", "tier": "important"} for text in texts]
    for user in ("ann", "bob"):
        asked = {"tenant": "acme", "key": user, "user_id": user, "facts": facts, "written": {"source": "user_noted"}}
        await client.bus.ask(SaveMemories.model_validate(asked), FactsSaved)
    async with platform.superuser() as conn:
        await conn.execute(
            "UPDATE retrieval.facts SET "
            "expires_at = CASE WHEN text = 'Keeps bees.' THEN now() - interval '1 day' ELSE expires_at END, "
            "last_said_at = CASE WHEN text = 'Plays chess.' THEN now() - interval '80 days' ELSE last_said_at END, "
            "text = CASE WHEN text = 'Owns a boat.' THEN 'The user lives in Bonn' ELSE text END"
        )


# What counts of each user: the facts, how often they were said, and how many are of the lowest tier.
LIVE = """
SELECT user_id, count(*), sum(times)::int, count(*) FILTER (WHERE tier = 'context')
FROM retrieval.facts WHERE retired_at IS NULL GROUP BY user_id ORDER BY user_id
"""
AUDITED = "SELECT count(*), count(DISTINCT (fact_id, version)) FROM retrieval.fact_changes WHERE run_id IS NOT NULL"


@pytest.mark.parametrize("point", CONSOLIDATION)
async def test_a_consolidation_killed_anywhere_loses_and_doubles_nothing(
    point: Failpoint, fleet: Fleet, *, client: Any, owner: Any, platform: Platform
):
    killed = await fleet.start("retrieval", point, nth=2)
    await make_consolidation_due(client, platform)
    with pytest.raises(Retry):
        await client.bus.ask(CONSOLIDATE, Consolidated, timeout_s=2)
    assert await killed.ended() == -signal.SIGKILL
    await fleet.start("retrieval")
    await client.bus.ask(CONSOLIDATE, Consolidated)

    assert [tuple(row) for row in await owner(LIVE)] == [("ann", 2, 3, 1), ("bob", 2, 3, 1)]
    assert [tuple(row) for row in await owner(AUDITED)] == [(6, 6)]


@pytest.mark.parametrize("point", UNDO)
async def test_an_undo_killed_anywhere_is_whole_once_when_repeated(
    point: Failpoint, fleet: Fleet, *, client: Any, owner: Any, platform: Platform
):
    killed = await fleet.start("retrieval", point)
    await make_consolidation_due(client, platform)
    done = await client.bus.ask(CONSOLIDATE, Consolidated)
    undo = UndoConsolidation(tenant="acme", run_id=done.run_id, by="ops")
    with pytest.raises(Retry):
        await client.bus.ask(undo, ConsolidationUndone, timeout_s=2)
    assert await killed.ended() == -signal.SIGKILL
    await fleet.start("retrieval")
    again = await client.bus.ask(undo, ConsolidationUndone)

    assert again.undone == (6 if point is Failpoint.RETRIEVAL_UNDO_BEFORE else 0)
    assert [tuple(row) for row in await owner(LIVE)] == [("ann", 4, 4, 0), ("bob", 4, 4, 0)]
