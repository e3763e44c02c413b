"""A search finds what its filter allows, for those on whose behalf it is made, and while it is valid."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from wayline.contracts.errors import Refused
from wayline.contracts.knowledge import DocumentText, Filter, ReadDocument

from .conftest import Client

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

MODES = ("keyword", "vector", "hybrid")
HOSTILE = "O'Brien') OR true --"
DATED = {
    "a": {"year": 2019, "tags": ["red", "blue"], "author": "Ann"},
    "b": {"year": 2021, "tags": ["blue"], "author": HOSTILE},
    "c": {"year": 2024.5, "author": "Zoe", "draft": True},
    "d": {"year": "2022"},
}
CONDITIONS: list[tuple[dict[str, Any], str]] = [
    ({"year": {"gte": 2021}}, "bc"),
    ({"year": {"gt": 2019, "lt": 2024.5}}, "b"),
    ({"year": {"lte": 2021}, "tags": {"equals": "red"}}, "a"),
    ({"year": {"gte": "2000"}}, "d"),
    ({"year": {"equals": 2021.0}}, "b"),
    ({"tags": {"in": ["red", "green"]}}, "a"),
    ({"tags": {"in": ["blue"]}}, "ab"),
    ({"tags": {"in": []}}, ""),
    ({"draft": {"exists": False}}, "abd"),
    ({"draft": {"exists": True}}, "c"),
    ({"author": {"equals": HOSTILE}}, "b"),
    ({"author": {"gte": "B"}}, "bc"),
    ({"'; DROP TABLE chunks; --": {"equals": "' | 'x"}}, ""),
    ({"absent": {"lt": 1}}, ""),
]
Search = Callable[..., Awaitable[set[str]]]


@pytest.fixture
def client(tenant_client: Any) -> Client:
    return tenant_client


@pytest.fixture
def found(client: Any) -> Search:
    """The documents that a search finds in any mode, which must agree."""

    async def search(query: str = "tortoise", **fields: Any) -> set[str]:
        by_mode = [(await client.search(query, mode=mode, **fields)).hits for mode in MODES]
        first, *others = [{hit.document_id for hit in hits} for hits in by_mode]
        assert others == [first, first], fields
        return first

    return search


async def test_a_filter_asks_for_ranges_lists_and_keys(client: Any, found: Search):
    for document_id, metadata in DATED.items():
        await client.send(document_id, f"tortoise {document_id}", name="page", metadata=metadata)
    await client.send("a", "tortoise of another tenant", tenant="globex", metadata=DATED["b"])
    await client.idle()

    got = [(where, await found(filter=Filter.model_validate({"where": where}))) for where, _ in CONDITIONS]

    assert got == [(where, set(documents)) for where, documents in CONDITIONS]
    narrowed = Filter.model_validate({"where": {"year": {"gte": 2021}}, "document_ids": ["c", "d"]})
    assert await found(filter=narrowed) == {"c"}


async def test_a_filter_names_collections(client: Any, found: Search):
    for document_id, collection in {"a": "fables", "b": "facts", "c": None}.items():
        await client.send(document_id, f"tortoise {document_id}", name="page", collection=collection)
    await client.idle()

    assert await found(filter=Filter(collections=("fables",))) == {"a"}
    assert await found(filter=Filter(collections=("fables", "facts", "none"))) == {"a", "b"}
    assert await found(filter=Filter(collections=())) == set()
    [hit] = (await client.search("tortoise", filter=Filter(collections=("facts",)))).hits
    assert (hit.collection, hit.document, hit.document_id) == ("facts", "page", "b")


async def test_a_document_with_an_audience_is_found_by_its_names_alone(client: Any, found: Search):
    now = datetime.now(UTC)
    whose: dict[str, dict[str, Any]] = {
        "all": {},
        "ann": {"audience": ("ann", "group:law")},
        "nobody": {"audience": ()},
        "over": {"valid_until": now - timedelta(seconds=1)},
        "valid": {"valid_until": now + timedelta(hours=1)},
    }
    for document_id, fields in whose.items():
        await client.send(document_id, f"tortoise secret {document_id}", name="page", **fields)
    await client.idle()

    assert await found() == {"all", "valid"}
    assert await found(audience=("bob",)) == {"all", "valid"}
    assert await found(audience=("ann",)) == await found(audience=("x", "group:law")) == {"all", "valid", "ann"}
    assert await found(audience=("bob",), filter=Filter(document_ids=("ann", "over"))) == set()
    # What must not be found is not counted among the best either.
    assert len((await client.search("secret", top_k=2, mode="keyword")).hits) == 2
    for audience, readable in (((), False), (("bob",), False), (("ann",), True)):
        asked = ReadDocument(tenant=client.tenant, document_id="ann", audience=audience)
        if readable:
            assert "secret" in (await client.bus.ask(asked, DocumentText)).text
        else:
            with pytest.raises(Refused):
                await client.bus.ask(asked, DocumentText)

    # A new version says anew who may find it.
    await client.ingest("ann", "tortoise open", name="page")
    assert await found() == {"all", "valid", "ann"}


async def test_words_of_hidden_passages_are_as_unknown_as_others(client: Any, shared_counted: Any):
    await client.send("hers", "zanzibar tortoise", name="page", audience=("ann",))
    await client.send("all", "The hare.", name="page")
    await client.idle()
    await shared_counted()

    async def told(query: str, **fields: Any) -> dict[str, Any]:
        return (await client.search(query, mode="keyword", audience=("bob",), **fields)).model_dump()

    for there, nowhere in (("zanzibar", "qwertzuiop"), ("zanzibr", "qwertzuip"), ("zanz*", "qwer*")):
        assert await told(there) == await told(nowhere), there
    named = [Filter(document_ids=(one,)) for one in ("hers", "none")]
    assert await told("hare", filter=named[0]) == await told("hare", filter=named[1])
    # Where they may be found, a near word is shown.
    found = await client.search("zanzibr", mode="keyword", audience=("ann",))
    assert found.corrected == {"zanzibr": ("zanzibar",)} and found.hits[0].document_id == "hers"
