"""A greedy tenant beside a modest one: large documents are refused at a tenant's share of the object store."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
import pytest_asyncio

from wayline.chassis import upload_quota
from wayline.chassis.topology import UPLOADS
from wayline.retrieval.settings import Settings as RetrievalSettings
from wayline.testkit import Platform

from .conftest import http_with_key

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

SHARE_BYTES = 1_000_000
SETTING = "WAYLINE_RETRIEVAL_UPLOADS_PER_TENANT_MAX_BYTES"


def large(word: str) -> str:
    """Return a text of 300 KB without passages worth the time: three of them fit the share."""
    return word + " " * 300_000


async def upload(http: httpx2.AsyncClient, document_id: str, text: str, **more: Any) -> httpx2.Response:
    body = {"document_id": document_id, "name": f"{document_id}.txt", "text": text}
    return await http.post("/v1/documents?wait=30", json=body, **more)


async def stored_bytes(platform: Platform) -> int:
    return (await platform.bus.js.stream_info(f"OBJ_{UPLOADS}")).state.bytes


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def services(module_platform: Platform) -> Platform:
    retrieval = RetrievalSettings(uploads_per_tenant_max_bytes=SHARE_BYTES)
    await module_platform.start("router", "retrieval", "gateway", retrieval=retrieval)
    return module_platform


@pytest_asyncio.fixture(loop_scope="module")
async def http(services: Platform) -> httpx2.AsyncClient:
    """A client of a tenant of the test's own, which has uploaded nothing."""
    return await http_with_key(await services.new_tenant())


async def test_a_tenant_at_its_upload_share_is_refused_until_deletion(services: Platform, http: httpx2.AsyncClient):
    before = await stored_bytes(services)

    fitting = [await upload(http, f"d{n}", large(f"word{n}")) for n in range(3)]
    refused = await upload(http, "d3", large("word3"))
    small = await upload(http, "small", "A small one is not in this store.")
    deleted = await http.delete("/v1/documents/d0")
    again = await upload(http, "d3", large("word3"))

    assert [answer.status_code for answer in fitting] == [200, 200, 200]
    assert (refused.status_code, refused.json()["code"], "retry-after" in refused.headers) == (429, "tenant_full", True)
    assert SETTING in refused.json()["detail"] and "delete documents" in refused.json()["detail"]
    assert (small.status_code, deleted.status_code, again.status_code) == (200, 200, 200)
    assert await stored_bytes(services) - before <= SHARE_BYTES


async def test_another_tenant_uploads_while_one_is_at_its_share(services: Platform, http: httpx2.AsyncClient):
    modest = await http_with_key(await services.new_tenant())

    answers = [await upload(http, f"d{n}", large(f"word{n}")) for n in range(4)]
    other = await upload(modest, "d0", large("word0"))

    assert ([answer.status_code for answer in answers], other.status_code) == ([200, 200, 200, 429], 200)


async def test_every_document_version_counts_until_the_document_is_deleted(http: httpx2.AsyncClient):
    versions = [await upload(http, "d1", large(f"version{n}")) for n in range(4)]
    same = await upload(http, "d1", large("version2"))
    await http.delete("/v1/documents/d1")
    after = await upload(http, "d1", large("version3"))

    assert [answer.status_code for answer in versions] == [200, 200, 200, 429]
    assert (same.status_code, after.status_code) == (200, 200)


@pytest.mark.asyncio(loop_scope="function")
async def test_without_retrieval_large_uploads_are_bounded_and_counted_later(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(upload_quota, "UNCOUNTED_MAX_BYTES", SHARE_BYTES)
    await platform.start("router", "gateway")
    http = await platform.http()
    away = [await upload(http, f"d{n}", large(f"word{n}"), params={"wait": 0}) for n in range(4)]

    await platform.start("retrieval", retrieval=RetrievalSettings(uploads_per_tenant_max_bytes=SHARE_BYTES))
    await platform.wait_until_empty("INDEX")
    back = await upload(http, "d4", large("word4"))

    assert [answer.status_code for answer in away] == [202, 202, 202, 503]
    assert (back.status_code, back.json()["code"]) == (429, "tenant_full")
