"""Documents at every door: to whom each is there, how it is described anew, shown in passages and indexed once more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx2
import orjson
import pytest
import pytest_asyncio
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from wayline.contracts.task_graphs import GraphEdge, GraphTask, SaveTaskGraph, TaskGraphSaved
from wayline.contracts.tenants import CreateTenant, Tenant
from wayline.gateway.adapters.keys import create_key
from wayline.gateway.settings import Settings
from wayline.testkit import Platform, until
from wayline.testkit.walks import cases

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

PRIVATE = "# Plan\n\n1. Paint the tortoise\n2. Sell the tortoise\n\nThe tortoise is sold once it is painted."
DOCUMENTS: dict[str, Any] = {
    "private": {"text": PRIVATE, "audience": ["ann"]},
    "law": {"text": "The tortoise before the court.", "audience": ["group:law"]},
    "open": {"text": "The tortoise for everybody."},
}
NOTHING = "n0thing"
SCOPES = ("read", "write", "tools")


@dataclass
class Doors:
    """What each caller has: a client over HTTP that shows its key."""

    platform: Platform
    app: httpx2.AsyncClient
    ann: httpx2.AsyncClient
    bob: httpx2.AsyncClient
    foreign_app: httpx2.AsyncClient
    foreign_ann: httpx2.AsyncClient

    async def index(self, document_id: str, **fields: Any) -> None:
        body = {"name": f"{document_id}.md", "document_id": document_id, **fields}
        answer = await self.app.post("/v1/documents", params={"wait": 30}, json=body)
        assert answer.json()["status"] == "ready", answer.text


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def doors(module_platform: Platform) -> AsyncIterator[Doors]:
    await module_platform.start("router", "tool_registry", "retrieval", "gateway", gateway=Settings(http_port=0))
    store = await module_platform.store("gateway")
    whose = {"app": ("acme", None), "ann": ("acme", "ann"), "bob": ("acme", "bob")}
    whose |= {"foreign_app": ("globex", None), "foreign_ann": ("globex", "ann")}
    for tenant in ("acme", "globex"):
        await module_platform.bus.ask(CreateTenant(tenant=tenant), Tenant)
    clients: dict[str, httpx2.AsyncClient] = {}
    for name, (tenant, user) in whose.items():
        key = await create_key(store, tenant, name, scopes=SCOPES, user_id=user)
        clients[name] = await module_platform.http()
        clients[name].headers["Authorization"] = f"Bearer {key}"
    found = Doors(module_platform, **clients)
    await asyncio.gather(*(found.index(one, **fields) for one, fields in DOCUMENTS.items()))
    yield found


async def every_answer(http: httpx2.AsyncClient, document_id: str) -> dict[str, tuple[int, str]]:
    """Ask everything about one document; the answers, with its id written as of any other."""
    about = f"/v1/documents/{document_id}"
    asked: dict[str, tuple[str, str, dict[str, Any]]] = {
        "get": ("GET", about, {}),
        "chunks": ("GET", f"{about}/chunks", {}),
        "citations": ("GET", f"{about}/citations", {}),
        "file": ("GET", f"/v1/files/{document_id}", {}),
        "change": ("PATCH", about, {"json": {"audience": ["bob"]}}),
        "change what was read": ("PATCH", about, {"json": {"name": "mine"}, "headers": {"If-Match": "*"}}),
        "reindex": ("POST", f"{about}/reindex", {}),
        "delete": ("DELETE", about, {}),
        "search": ("POST", "/v1/search", {"json": {"query": "tortoise", "filter": {"document_ids": [document_id]}}}),
        "list": ("GET", "/v1/documents", {"params": {"name": f"{document_id}*"}}),
    }
    found = {name: await http.request(method, path, **more) for name, (method, path, more) in asked.items()}
    return {name: (one.status_code, _without(one, "trace_id", document_id)) for name, one in found.items()}


def _without(answer: httpx2.Response, field: str, document_id: str) -> str:
    shown = {name: value for name, value in answer.json().items() if name != field}
    return json.dumps(shown).replace(document_id, "X")


async def of_a_job(http: httpx2.AsyncClient, document_id: str, **fields: Any) -> tuple[int, str]:
    """Submit a job that is given a document."""
    parts = [{"type": "text", "text": "What is it?"}, {"type": "file", "document_id": document_id}]
    answer = await http.post("/v1/jobs", json={"agent": "assistant", "input": parts, **fields})
    return answer.status_code, answer.json().get("detail", "").replace(document_id, "X")


def _text(content: Any) -> str:
    return content[0].text


async def over_mcp(doors: Doors, http: httpx2.AsyncClient, document_id: str) -> dict[str, Any]:
    """Ask everything of an MCP client's about one document."""
    url = f"http://127.0.0.1:{doors.platform.http_port}/mcp"
    async with (
        httpx2.AsyncClient(headers={"Authorization": http.headers["Authorization"]}, timeout=60) as own,
        Client(streamable_http_client(url, http_client=own)) as client,
    ):
        try:
            read = (await client.read_resource(f"document://{document_id}")).contents[0].text  # type: ignore[union-attr]
        except MCPError as error:
            read = error.message
        calls: dict[str, Any] = {
            "search_knowledge": {"query": "tortoise", "document_ids": [document_id]},
            "semantic_search": {"query": "tortoise", "document_ids": [document_id]},
            "get_document_context": {"document_id": document_id},
            "detect_dependencies": {"document_ids": [document_id]},
        }
        answers = {name: (await client.call_tool(name, arguments)).content for name, arguments in calls.items()}
        listed = [one.name for one in (await client.list_resources()).resources]
    found = {name: _text(content).replace(document_id, "X") for name, content in answers.items()}
    return {"read": read.replace(document_id, "X"), "listed": listed, **found}


@pytest.mark.parametrize("caller", cases(["bob", "foreign_app", "foreign_ann"]))
async def test_a_document_for_others_is_answered_as_if_absent(doors: Doors, caller: str):
    http = getattr(doors, caller)

    private, law = await every_answer(http, "private"), await every_answer(http, "law")
    nothing = await every_answer(http, NOTHING)

    assert private == law == nothing
    assert {name: status for name, (status, _) in nothing.items()} == {
        **dict.fromkeys(("get", "chunks", "citations", "file", "change", "reindex", "delete"), 404),
        "change what was read": 412,
        **dict.fromkeys(("search", "list"), 200),
    }
    refused = await of_a_job(http, "private")
    assert refused == await of_a_job(http, NOTHING) and refused[0] == 404
    told = await over_mcp(doors, http, "private")
    assert told == await over_mcp(doors, http, NOTHING)
    assert told["listed"] == (["open.md"] if caller == "bob" else [])
    # Everything is as it was.
    assert (await doors.ann.get("/v1/documents/private")).json()["audience"] == ["ann"]


async def test_who_is_in_the_audience_has_every_door(doors: Doors):
    http = doors.ann
    one = (await http.get("/v1/documents/private")).json()
    chunks = (await http.get("/v1/documents/private/chunks")).json()
    file = await http.get("/v1/files/private")
    told = await over_mcp(doors, http, "private")

    assert (one["status"], file.content) == ("ready", PRIVATE.encode())
    assert "paint" in "".join(chunk["text"] for chunk in chunks["chunks"]) and chunks["next_cursor"] is None
    assert all("painted" in told[name] for name in ("read", "search_knowledge", "semantic_search"))
    assert "painted" in told["get_document_context"] and "Paint" in told["detect_dependencies"]
    assert set(told["listed"]) == {"open.md", "private.md"}
    assert (await of_a_job(http, "private"))[0] == 202
    # An application says for whom a job runs.
    asked = [await of_a_job(doors.app, "private", user_id=user) for user in ("ann", "bob")]
    assert [status for status, _ in asked] == [202, 404]


async def test_lists_are_of_what_the_caller_may_find(doors: Doors):
    async def names(http: httpx2.AsyncClient, **params: Any) -> list[str]:
        """Page through the list, one document at a time."""
        found, cursor = list[str](), None
        while True:
            answer = (await http.get("/v1/documents", params={"limit": 1, "cursor": cursor, **params})).json()
            found += [one["document_id"] for one in answer["documents"]]
            cursor = answer["next_cursor"]
            if cursor is None:
                return sorted(found)
            assert len(answer["documents"]) == 1

    assert await names(doors.bob) == ["open"]
    # A key of one user cannot ask on behalf of others.
    assert await names(doors.bob, audience="ann") == ["open"]
    assert await names(doors.ann) == ["open", "private"]
    assert await names(doors.app) == ["law", "open", "private"]
    assert await names(doors.app, audience=["bob", "group:law"]) == ["law", "open"]
    assert await names(doors.foreign_app) == []


async def test_a_key_of_one_user_replaces_no_document_of_others(doors: Doors):
    body = {"name": "private.md", "text": PRIVATE, "audience": ["bob"]}

    taken = await doors.bob.post("/v1/documents", json={**body, "document_id": "private"})
    anns = await doors.ann.post("/v1/documents", params={"wait": 30}, json={**body, "audience": ["ann"]})
    bobs = await doors.bob.post("/v1/documents", params={"wait": 30}, json=body)

    assert taken.status_code == 403 and (await doors.bob.get("/v1/documents/private")).status_code == 404
    assert anns.json()["document_id"] != bobs.json()["document_id"]
    for http, own, other in ((doors.ann, anns, bobs), (doors.bob, bobs, anns)):
        assert (await http.get(f"/v1/documents/{other.json()['document_id']}")).status_code == 404
        assert (await http.delete(f"/v1/documents/{own.json()['document_id']}")).status_code == 200


async def test_dependencies_are_told_with_the_documents_that_state_them(doors: Doors):
    tasks = tuple(GraphTask(name=name) for name in ("Sell the tortoise", "Paint the tortoise"))
    edge = GraphEdge(
        task="Sell the tortoise", needs="Paint the tortoise", weight=0.9, quote="after", document_id="private"
    )
    await doors.platform.bus.ask(
        SaveTaskGraph(tenant="acme", job_id="j1", tasks=tasks, edges=(edge,), document_ids=("private",)),
        TaskGraphSaved,
    )

    async def known(http: httpx2.AsyncClient) -> Any:
        url = f"http://127.0.0.1:{doors.platform.http_port}/mcp"
        async with (
            httpx2.AsyncClient(headers={"Authorization": http.headers["Authorization"]}, timeout=60) as own,
            Client(streamable_http_client(url, http_client=own)) as client,
        ):
            found = await client.call_tool("query_task_graph", {"text": "tortoise"})
        return orjson.loads(found.content[0].text)  # type: ignore[union-attr]

    assert [one["quote"] for one in (await known(doors.ann))["dependencies"]] == ["after"]
    assert (await known(doors.bob)) == {"tasks": [], "dependencies": [], "known_tasks": 0}


async def test_a_document_is_described_anew_by_who_has_read_it(doors: Doors):
    await doors.index("leaflet", text="A leaflet about tortoises.", metadata={"year": 2020}, collection="old")
    path, http = "/v1/documents/leaflet", doors.app
    read = await http.get(path)
    tag = {"If-Match": read.headers["etag"]}
    change = {"metadata": {"year": 2024}, "collection": None, "audience": ["ann"], "trust": "untrusted"}

    changed = await http.patch(path, json=change, headers=tag)
    late = [await http.patch(path, json={"name": "x"}, headers=tag), await http.delete(path, headers=tag)]
    now = await http.get(path)
    wrong = [
        await http.patch(path, json=body)
        for body in ({"trust": None}, {"name": ""}, {"size_bytes": 1}, {"metadata": {"a": "x" * 20_000}})
    ]

    assert changed.status_code == 200 and changed.headers["etag"] == now.headers["etag"] != read.headers["etag"]
    described = {name: now.json()[name] for name in ("metadata", "collection", "audience", "trust", "name")}
    assert described == {**change, "name": "leaflet.md"} and now.json()["status"] == "ready"
    assert [one.status_code for one in late] == [412, 412] and [one.status_code for one in wrong] == [422] * 4
    assert (await doors.bob.get(path)).status_code == 404
    [hit] = (await http.post("/v1/search", json={"query": "leaflet", "audience": ["ann"]})).json()["hits"][:1]
    assert (hit["metadata"], hit["untrusted"]) == ({"year": 2024}, True)
    # Who loses sight of it by an own change is told what it is now.
    gone = await doors.ann.patch(path, json={"audience": ["bob"]})
    assert gone.json()["audience"] == ["bob"] and (await doors.ann.get(path)).status_code == 404
    assert (await http.delete(path)).status_code == 200


async def test_passages_are_shown_in_pages_and_made_once_more(doors: Doors):
    text = "\n\n".join(f"# Part {n}\n\n{'tortoise ' * 60}{n}." for n in range(5))
    await doors.index("long", text=text)
    path, http = "/v1/documents/long", doors.app

    async def pages(**params: Any) -> list[dict[str, Any]]:
        found, cursor = list[dict[str, Any]](), None
        while True:
            answer = (await http.get(f"{path}/chunks", params={"cursor": cursor, **params})).json()
            found += answer["chunks"]
            cursor = answer["next_cursor"]
            if cursor is None:
                return found

    chunks = await pages()
    assert await pages(limit=2) == chunks and [one["position"] for one in chunks] == list(range(len(chunks)))
    assert [text[one["start"] : one["end"]] for one in chunks] == [one["text"] for one in chunks]
    assert {(one["embedded"], one["language"]) for one in chunks} == {(True, "english")}
    assert chunks[0]["headings"] == ["Part 0"]
    assert (await http.get(f"{path}/chunks", params={"cursor": "%"})).status_code == 400
    await http.patch(path, json={"audience": ["ann"], "name": "renamed.md"})

    again = await doors.ann.post(f"{path}/reindex")

    async def ready() -> dict[str, Any] | None:
        found = (await http.get(path)).json()
        return found if found["status"] == "ready" else None

    assert again.status_code == 202 and again.json()["status"] in ("queued", "indexing", "ready")
    found = await until(ready, why="it is indexed once more")
    assert found is not None
    assert (found["audience"], found["name"], found["unchanged"]) == (["ann"], "renamed.md", False)
    assert [one["chunk_id"] for one in await pages()] == [one["chunk_id"] for one in chunks]
    assert (await http.get("/v1/files/long")).text == text


async def test_the_tools_for_planning_take_a_documents_name(doors: Doors):
    for document_id, audience in (("twice1", None), ("twice2", None), ("twice3", ["ann"])):
        text = f"1. Pack the hare\n2. Ship the hare\n\n{document_id}: it is shipped once it is packed."
        await doors.index(document_id, text=text, name="twice.md", audience=audience)
    calls: dict[str, dict[str, Any]] = {
        "get_document_context": {"document_id": "twice.md"},
        "detect_dependencies": {"document_ids": ["twice.md"]},
        "semantic_search": {"query": "hare", "document_ids": ["twice.md"]},
    }

    async def answers(http: httpx2.AsyncClient) -> list[tuple[bool, str]]:
        url = f"http://127.0.0.1:{doors.platform.http_port}/mcp"
        async with (
            httpx2.AsyncClient(headers={"Authorization": http.headers["Authorization"]}, timeout=60) as own,
            Client(streamable_http_client(url, http_client=own)) as client,
        ):
            found = [await client.call_tool(name, arguments) for name, arguments in calls.items()]
        return [(bool(one.is_error), _text(one.content)) for one in found]

    of_bob = await answers(doors.bob)
    await doors.app.delete("/v1/documents/twice1")
    alone = await answers(doors.bob)

    assert all(failed and "twice1, twice2" in text and "twice3" not in text for failed, text in of_bob)
    assert not any(failed for failed, _ in alone) and all("twice2" in text for _, text in alone)
    for document_id in ("twice2", "twice3"):
        await doors.app.delete(f"/v1/documents/{document_id}")
