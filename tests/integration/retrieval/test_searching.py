"""Passages are ranked by words, by vector, or by both, and say why."""

from collections import Counter
from typing import Any

import pytest
import pytest_asyncio

from wayline.chassis import Service
from wayline.contracts.knowledge import Filter
from wayline.retrieval.search.ranking import K1, B, rarity
from wayline.testkit import Platform

from .conftest import Client, new_tenant

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

FABLES = {
    "f1": "tortoise race hare tortoise winner",
    "f2": "hare sleeps tree shade hare hare",
    "f3": "fox grapes vineyard tortoise",
    "f4": "crow pitcher water stones",
    "f5": "race horse winner medal gold medal",
    "f6": "tortoises racing harebell",
}


async def tell(client: Client) -> Client:
    """Ingest the fables."""
    for document_id, text in FABLES.items():
        await client.ingest(document_id, text, name="fable", metadata={"odd": int(document_id[1]) % 2 == 1})
    return client


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fables(shared_service: Service, module_platform: Platform) -> Client:
    """A tenant with the fables and nothing else: it is only searched."""
    return await tell(new_tenant(module_platform))


@pytest_asyncio.fixture(loop_scope="module")
async def more(tenant_client: Client) -> Client:
    """A tenant with the fables to which the test adds."""
    return await tell(tenant_client)


def bm25(query: str) -> list[tuple[str, float]]:
    """The oracle: BM25 over words that no stemmer changes, with each document's name counted twice."""
    bags = {key: Counter([*text.split(), "fable", "fable"]) for key, text in FABLES.items() if key != "f6"}
    # f6 as the stemmer leaves it.
    bags["f6"] = Counter(["tortois", "race", "harebel", "fable", "fable"])
    stem = {"tortoise": "tortois"}
    for bag in bags.values():
        bag["tortois"] += bag.pop("tortoise", 0)
    average = sum(sum(bag.values()) for bag in bags.values()) / len(bags)
    scores: dict[str, float] = {}
    for word in query.split():
        known = stem.get(word, word)
        holding = [key for key, bag in bags.items() if bag[known]]
        for key in holding:
            norm = K1 * (1 - B + B * sum(bags[key].values()) / average)
            tf = bags[key][known]
            scores[key] = scores.get(key, 0) + rarity(len(holding), of=len(bags)) * (K1 + 1) * tf / (tf + norm)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


async def test_the_words_leg_is_bm25(fables: Any):
    for query in ("tortoise race", "hare", "medal winner tree", "fable grapes"):
        hits = (await fables.search(query, mode="keyword")).hits
        found = [(hit.document_id, hit.why["keyword"]["score"]) for hit in hits]

        assert found == [(key, pytest.approx(score)) for key, score in bm25(query)]


def relative(scores: dict[str, float]) -> dict[str, float]:
    """Scores of one leg from 0 for its worst to 1 for its best."""
    low, high = min(scores.values()), max(scores.values())
    return {key: (score - low) / (high - low) for key, score in scores.items()}


@pytest.mark.parametrize("weight", [0.5, 0.2, 0.9])
async def test_hybrid_weighs_the_scores_of_both_legs(fables: Any, weight: float):
    query = "tortoise race winner"
    words = (await fables.search(query, mode="keyword")).hits
    vector = (await fables.search(query, mode="vector")).hits
    of_words = relative({hit.chunk_id: hit.score for hit in words})
    of_vector = relative({hit.chunk_id: hit.score for hit in vector})
    best = (1 - weight) * words[0].score + weight * vector[0].score
    expected = {
        key: best * ((1 - weight) * of_words.get(key, 0) + weight * of_vector.get(key, 0))
        for key in of_words | of_vector
    }

    hits = (await fables.search(query, mode="hybrid", vector_weight=weight)).hits

    assert {hit.chunk_id: hit.score for hit in hits} == {key: pytest.approx(score) for key, score in expected.items()}
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(0 <= hit.score <= 1 for hit in (*hits, *words, *vector))
    assert all(hit.why["vector_weight"] == weight for hit in hits)


async def test_the_whole_weight_on_one_leg_is_that_leg(fables: Any):
    for weight, mode in ((0.0, "keyword"), (1.0, "vector")):
        alone = await fables.search("tortoise race", mode=mode)
        hybrid = await fables.search("tortoise race", mode="hybrid", vector_weight=weight)

        assert hybrid.hits == alone.hits


async def test_by_default_the_lexical_vectors_do_not_overrule_the_words(fables: Any):
    words = [hit.chunk_id for hit in (await fables.search("hare tree", mode="keyword")).hits]
    hybrid = [hit.chunk_id for hit in (await fables.search("hare tree")).hits]

    assert hybrid[: len(words)] == words


async def test_a_word_with_one_wrong_letter_is_found(fables: Any, shared_counted: Any):
    await shared_counted()
    for query in ("vinyard", "vineyrad", "vineyards grapez"):
        found = await fables.search(query, mode="keyword")

        assert [hit.document_id for hit in found.hits] == ["f3"], query
    assert found.corrected == {"grapez": ("grape",)}
    assert (await fables.search("vnyrd", mode="keyword")).hits == ()


async def test_a_query_may_demand_phrases_and_exclude_words(fables: Any, shared_counted: Any):
    await shared_counted()

    async def found(query: str, mode: str = "keyword", **fields: Any) -> set[str]:
        return {hit.document_id for hit in (await fables.search(query, mode=mode, **fields)).hits}

    assert await found("tortoise race") == {"f1", "f3", "f5", "f6"}
    # As the words are stemmed.
    assert [await found('"tortoise race"', mode) for mode in ("keyword", "vector", "hybrid")] == [{"f1", "f6"}] * 3
    assert await found("tortoise -grapes -harebell") == {"f1"}
    assert await found("tortoise -grapes -harebell", syntax="plain") >= {"f3", "f6"}
    assert await found("har* -winner") == {"f2", "f6"}
    wrong = await fables.search('"race tortoise"', mode="keyword")
    assert {hit.document_id for hit in wrong.hits} >= {"f1", "f3"}
    assert "No passage holds the phrase" in wrong.note


async def test_nearly_equal_passages_fill_one_place(more: Any):
    await more.ingest("copy", FABLES["f3"] + ".", name="fable")

    [kept] = (await more.search("vineyard", mode="keyword")).hits
    apart = (await more.search("vineyard", mode="keyword", fold_duplicates=False)).hits

    assert {hit.document_id for hit in apart} == {"f3", "copy"}
    assert kept.why["duplicates"] == [hit.chunk_id for hit in apart if hit.chunk_id != kept.chunk_id]


async def test_neighbouring_passages_are_one_hit_where_that_is_asked(more: Any):
    text = "\n\n".join(f"The lighthouse keeper wrote page {n}. {'He counted the waves. ' * 40}" for n in range(4))
    await more.ingest("log", text, name="log")

    apart = (await more.search("lighthouse keeper", mode="keyword", fold_duplicates=False)).hits
    two = (await more.search("lighthouse", mode="keyword", top_k=2, fold_duplicates=False, join_neighbours=True)).hits
    [hit] = (await more.search("lighthouse", mode="keyword", fold_duplicates=False, join_neighbours=True)).hits

    assert len(apart) > 3
    assert len(hit.why["joined"]) == len(apart) and set(hit.why["joined"]) == {one.chunk_id for one in apart}
    assert hit.score == max(one.score for one in apart)
    assert hit.text == text.strip()[hit.start : hit.end]
    # Two passages were asked for, whether they stand side by side or not.
    assert sum(len(one.why.get("joined", (one,))) for one in two) == 2


@pytest.mark.parametrize("query", ["the of and", "?!", "\x00", "and & | ! <-> ' \\ :* ("])
async def test_a_query_without_a_word_to_search_for_is_no_error(fables: Any, query: str):
    by_words = await fables.search(query, mode="keyword")
    hybrid = await fables.search(query)

    assert by_words.hits == ()
    assert "No word of the query" in by_words.note
    assert "No word of the query" in hybrid.note
    assert all("keyword" not in hit.why for hit in hybrid.hits)


async def test_a_filter_by_document_finds_in_these_documents_only(fables: Any):
    for mode in ("keyword", "vector", "hybrid"):
        hits = (await fables.search("tortoise", mode=mode, filter=Filter(document_ids=("f3", "f4")))).hits

        assert {hit.document_id for hit in hits} <= {"f3", "f4"}
        assert hits[0].document_id == "f3"


@pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])
async def test_an_empty_list_of_documents_finds_nothing(fables: Any, mode: str):
    found = await fables.search("tortoise", mode=mode, filter=Filter(document_ids=()))

    assert found.hits == ()
    assert "names no document" in found.note
    assert (await fables.search("tortoise", mode=mode, filter=Filter(document_ids=None))).hits


async def test_a_query_of_any_length_is_answered(fables: Any):
    letter = "Good morning to all of you, and many thanks. " * 3_000 + "The grapes of the vineyard."

    found = await fables.search("Vineyard grapes! " + letter, mode="hybrid")

    assert found.hits[0].document_id == "f3"


async def test_a_filter_by_metadata_wants_every_pair_equal(more: Any):
    await more.ingest("nested", "tortoise nested", metadata={"odd": True, "where": {"a": 1, "b": 2}})
    for mode in ("keyword", "vector", "hybrid"):

        async def found(mode: str = mode, **metadata: Any) -> set[str]:
            hits = (await more.search("tortoise", mode=mode, filter=Filter(metadata=metadata))).hits
            return {hit.document_id for hit in hits if mode == "vector" or "keyword" in hit.why}

        assert await found(odd=True) >= {"f1", "f3", "nested"}
        assert not await found(odd=True) & {"f2", "f4", "f6"}
        assert await found(where={"a": 1, "b": 2}) == {"nested"}
        assert await found(where={"a": 1}) == set()
        assert await found(absent=None) == set()


async def test_a_least_score_and_a_count_bound_the_answer(fables: Any):
    hits = (await fables.search("tortoise race", mode="keyword")).hits

    assert (await fables.search("tortoise race", mode="keyword", top_k=2)).hits == hits[:2]
    above = (await fables.search("tortoise race", mode="keyword", min_score=hits[1].score)).hits
    assert above == hits[:2]


async def test_before_anything_is_ingested_the_answer_says_so(tenant_client: Client):
    found = await tenant_client.search("anything")

    assert (found.hits, found.note) == ((), "Nothing has been ingested yet.")


@pytest.mark.asyncio(loop_scope="function")
async def test_of_common_words_passages_with_all_come_first(start: Any, client: Any):
    await start(keyword_candidates=100)
    # Each word alone is in more passages than one query may rank.
    await client.ingest("both", "\n\n".join("alpha beta " + f"x{n} " * 60 for n in range(3)))
    await client.ingest("alpha", "\n\n".join("alpha " + f"x{n} " * 280 for n in range(120)))
    await client.ingest("beta", "\n\n".join("beta " + f"x{n} " * 280 for n in range(120)))

    few = (await client.search("alpha beta", mode="keyword", top_k=1)).hits
    many = (await client.search("alpha beta", mode="keyword", top_k=50)).hits

    assert [hit.document_id for hit in few] == ["both"]
    assert many[0].document_id == "both"
    assert len(many) == 50


@pytest.mark.asyncio(loop_scope="function")
async def test_passages_of_other_dimensions_are_found_by_words(start: Any, client: Any, owner: Any):
    await start()
    await client.ingest("f1", FABLES["f1"])
    await owner("UPDATE retrieval.vector_sets SET dimensions = 12")

    for mode in ("hybrid", "vector"):
        found = await client.search("tortoise", mode=mode)
        assert [hit.document_id for hit in found.hits] == ["f1"]
        [missing] = found.degraded
        assert (missing.leg, missing.reason) == ("vectors", "model")
        assert "passages have 12 dimensions, queries 384" in missing.detail
    assert (await client.search("tortoise", mode="keyword")).degraded == ()


async def test_a_hit_says_how_much_of_the_query_it_covers(fables: Any):
    hits = (await fables.search("tell me of the tortoise in Mongolia")).hits
    both = (await fables.search("tortoise race")).hits

    assert all(0 < hit.why["covered"] < 0.5 for hit in hits if "keyword" in hit.why)
    assert both[0].why["covered"] == 1
