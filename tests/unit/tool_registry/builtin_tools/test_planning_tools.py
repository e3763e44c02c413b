"""The tools for planning answer as JSON, each by itself and without a model; retrieval is played by functions."""

import json
from base64 import b64encode
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from wayline.contracts.errors import NotFound, Unavailable
from wayline.contracts.knowledge import EMBEDDED_AT_ONCE_MAX, EmbeddedTexts, Hit, SearchResult
from wayline.contracts.task_graphs import ContextPassage, DocumentContext, GraphEdge, GraphTask, TaskGraph
from wayline.contracts.tools import TASK_TOOLS, may_use, tool_named
from wayline.tool_registry.builtin_tools import PlanningTools, call_meta, make_builtin_server

VENUE = [{"name": "Book the venue"}, {"name": "Send the invitations", "text": "Once the venue is booked."}]


async def away(_: Any) -> Any:
    raise Unavailable("retrieval")


async def words_only(_: Any) -> Any:
    return EmbeddedTexts()


class Registry:
    """The built-in server, with whom its tools ask played by functions."""

    def __init__(self, **asked: Any) -> None:
        named = {"search": away, "context": away, "graph": away, "embed": words_only} | asked
        memory: Any = None
        web: Any = SimpleNamespace(pages=None, search=None)
        memory: Any = SimpleNamespace(save=away, recall=away, store=away, retrieve=away)
        self._server = make_builtin_server(PlanningTools(**named), memory, web, None)

    async def raw(self, tool: str, **arguments: Any) -> Any:
        from mcp.server.mcpserver import Context

        with call_meta({"wayline/tenant": "acme"}):
            return await self._server.call_tool(tool, arguments, Context(mcp_server=self._server))

    async def call(self, tool: str, **arguments: Any) -> Any:
        result = await self.raw(tool, **arguments)
        assert not result.is_error, result.content
        return json.loads(result.content[0].text)


def answering(reply: Any, asked: list[Any] | None = None) -> Any:
    async def answer(request: Any) -> Any:
        if asked is not None:
            asked.append(request)
        return reply

    return answer


def document(*texts: str, untrusted: bool = False) -> DocumentContext:
    passages = tuple(ContextPassage(chunk_id=f"d#{n}", position=n, text=text) for n, text in enumerate(texts))
    return DocumentContext(document_id="d", document="Plan", passages=passages, passages_total=9, untrusted=untrusted)


async def test_dependencies_of_given_tasks_need_no_retrieval():
    found = await Registry().call("detect_dependencies", tasks=VENUE)

    assert found["tasks"] == [{"id": "1", "name": "Book the venue"}, {"id": "2", "name": "Send the invitations"}]
    assert [(one["task"], one["needs"], one["quote"]) for one in found["dependencies"]] == [
        ("2", "1", "Once the venue is booked.")
    ]


async def test_documents_bring_tasks_and_sentences_and_their_taint():
    asked: list[Any] = []
    plan = document("1. Dig a hole\n2. Plant the tree", "The tree is planted after the hole is dug.", untrusted=True)
    registry = Registry(context=answering(plan, asked))

    found = await registry.call("detect_dependencies", document_ids=["d"])
    raw = await registry.raw("detect_dependencies", document_ids=["d"])

    assert [(one["task"], one["needs"], one["document_id"]) for one in found["dependencies"]] == [("2", "1", "d")]
    assert raw.meta == {"wayline/strangers": True} and asked[0].tenant == "acme"


async def test_nothing_to_plan_is_said():
    found = await Registry().call("detect_dependencies", text="A sunny day.")

    assert found["tasks"] == [] and "list none" in found["note"]


async def test_a_search_gives_ids_and_says_whose_words_it_found():
    hit = Hit(chunk_id="d#1", document_id="d", document="Plan", text="Book it.", score=0.5, untrusted=True)
    asked: list[Any] = []
    registry = Registry(search=answering(SearchResult(hits=(hit,), mode="hybrid"), asked))

    raw = await registry.raw("semantic_search", query="venue", document_ids=[])

    [passage] = json.loads(raw.content[0].text)["passages"]
    assert (passage["document_id"], passage["chunk_id"]) == ("d", "d#1")
    assert raw.meta["wayline/strangers"] and raw.meta["wayline/citations"][0]["quote"] == "Book it."
    assert asked[0].filter.document_ids == () and asked[0].tenant == "acme"


async def test_the_text_around_a_passage_comes_with_its_documents_taint():
    raw = await Registry(context=answering(document("a", untrusted=True))).raw("get_document_context", document_id="d")

    assert json.loads(raw.content[0].text)["passages"] == [{"chunk_id": "d#0", "text": "a"}]
    assert raw.meta == {"wayline/strangers": True}


@pytest.mark.parametrize("untrusted", [False, True])
async def test_known_tasks_come_with_evidence_and_taint_where_strangers_wrote(untrusted: bool):
    edge = GraphEdge(task="b", needs="a", weight=0.9, quote="after a", source_job="j1", untrusted=untrusted)
    graph = TaskGraph(tasks=(GraphTask(name="a"), GraphTask(name="b")), edges=(edge,), known_tasks=7)

    raw = await Registry(graph=answering(graph)).raw("query_task_graph", names=["a", " "])

    found = json.loads(raw.content[0].text)
    assert found["tasks"] == ["a", "b"] and found["known_tasks"] == 7
    assert (found["dependencies"][0]["quote"], found["dependencies"][0]["source_job"]) == ("after a", "j1")
    assert bool(raw.meta) is untrusted


async def test_clusters_are_by_meaning_where_texts_are_embedded_in_batches():
    sizes: list[int] = []

    async def embed(asked: Any) -> EmbeddedTexts:
        sizes.append(len(asked.texts))
        rows = [[1.0, 0.0] if "sea" in text else [0.0, 1.0] for text in asked.texts]
        vectors = tuple(b64encode(np.array(row, dtype="<f4").tobytes()).decode() for row in rows)
        return EmbeddedTexts(model="m", vectors=vectors)

    tasks = [{"name": f"sea {n}" if n % 2 else f"hill {n}"} for n in range(20)]
    found = await Registry(embed=embed).call("cluster_by_similarity", tasks=tasks)

    assert sizes == [EMBEDDED_AT_ONCE_MAX, 20 - EMBEDDED_AT_ONCE_MAX]
    assert [len(one["tasks"]) for one in found["clusters"]] == [10, 10] and found["model"] == "m"


@pytest.mark.parametrize("embed", [words_only, away])
async def test_clusters_are_by_words_where_there_are_no_vectors(embed: Any):
    tasks = [{"id": "a", "name": "Book the venue"}, {"id": "b", "name": "Pay the venue"}, {"id": "c", "name": "Bake"}]

    found = await Registry(embed=embed).call("cluster_by_similarity", tasks=tasks)

    assert [one["tasks"] for one in found["clusters"]] == [["a", "b"], ["c"]] and found["by"] == "words"


async def test_what_retrieval_refuses_is_the_tools_error():
    async def refuse(_: Any) -> Any:
        raise NotFound("document", "d")

    raw = await Registry(context=refuse).raw("get_document_context", document_id="d")

    assert raw.is_error and "d" in raw.content[0].text


def test_names_with_hyphens_are_the_same_tools():
    for name in TASK_TOOLS:
        hyphened = name.replace("_", "-")
        assert tool_named(hyphened) == name
        assert may_use(name, patterns=(hyphened,)) and not may_use(name, patterns=("*",))
        assert not may_use(name, patterns=(name,), off=(hyphened,))
    assert tool_named("bank__pay-now") == "bank__pay-now"
