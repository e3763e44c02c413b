"""A retrieval service on a real bus and a real Postgres, and a client that talks to it."""

from __future__ import annotations

import io
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from wayline.chassis import Bus, Service
from wayline.contracts.base import Request
from wayline.contracts.errors import Refused
from wayline.contracts.knowledge import (
    DeleteDocument,
    Document,
    DocumentDeleted,
    DocumentStatus,
    GetDocument,
    IndexDocument,
    SearchKnowledge,
    SearchResult,
)
from wayline.retrieval.settings import Settings
from wayline.testkit import Database, Platform, until

ENDED = {DocumentStatus.READY, DocumentStatus.FAILED}


@dataclass
class Client:
    """Speaks to the service as the gateway does, for one tenant where a call names no other."""

    bus: Bus
    tenant: str = "acme"
    sent: int = 0

    async def send(self, document_id: str, text: str | None = None, *, tenant: str | None = None, **fields: Any) -> int:
        """Queue a document; the answer is its sequence in the stream."""
        self.sent += 1
        fields.setdefault("name", document_id)
        message = IndexDocument(tenant=tenant or self.tenant, document_id=document_id, text=text, **fields)
        return (await self.bus.publish(message, msg_id=f"{self.tenant}-{self.sent}")).seq

    async def ingest(
        self, document_id: str, text: str | None = None, *, tenant: str | None = None, **fields: Any
    ) -> Document:
        """Queue a document and wait until it is ready or failed, whatever version was there before."""
        waiting = (await self.bus.js.stream_info("INDEX")).state.messages
        await self.send(document_id, text, tenant=tenant, **fields)
        if waiting == 0:
            await self.idle()
        found = await until(lambda: self.ended(document_id, tenant=tenant), why=f"{document_id} is indexed")
        assert found is not None
        return found

    async def idle(self) -> None:
        async def done() -> bool:
            return (await self.bus.js.stream_info("INDEX")).state.messages == 0

        await until(done, why="every index message is handled")

    async def get(self, document_id: str, *, tenant: str | None = None) -> Document | None:
        try:
            return await self.bus.ask(GetDocument(tenant=tenant or self.tenant, document_id=document_id), Document)
        except Refused:
            return None

    async def ended(self, document_id: str, *, tenant: str | None = None) -> Document | None:
        found = await self.get(document_id, tenant=tenant)
        return found if found and found.status in ENDED else None

    async def delete(self, document_id: str, *, tenant: str | None = None) -> None:
        await self.bus.ask(DeleteDocument(tenant=tenant or self.tenant, document_id=document_id), DocumentDeleted)

    async def refused(self, asked: Request) -> str:
        """Ask what is refused; the answer is the code of the refusal."""
        with pytest.raises(Refused) as refused:
            await self.bus.ask(asked, asked.replies)
        return refused.value.code

    async def search(self, query: str, *, tenant: str | None = None, **fields: Any) -> SearchResult:
        return await self.bus.ask(SearchKnowledge(tenant=tenant or self.tenant, query=query, **fields), SearchResult)


Owner = Callable[[str], Awaitable[list[tuple[Any, ...]]]]
Start = Callable[..., Awaitable[Service]]


@pytest.fixture
def start(platform: Platform) -> Start:
    """Start retrieval, as often as a test likes."""

    async def begin(**settings: Any) -> Service:
        return await platform.start("retrieval", retrieval=Settings(**settings))

    return begin


@pytest.fixture
async def service(start: Start) -> Service:
    return await start()


@pytest.fixture
async def client(platform: Platform) -> Client:
    """A client, and the tables of retrieval."""
    await platform.migrate("retrieval")
    return Client(platform.bus)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_service(module_platform: Platform) -> Service:
    """Start retrieval for all tests of a file that need no other settings, outage or count of everything."""
    return await module_platform.start("retrieval", retrieval=Settings())


@pytest.fixture
def tenant_client(shared_service: Service, module_platform: Platform) -> Client:
    """Speak to the shared service for a tenant of the test's own, which has no documents yet."""
    return new_tenant(module_platform)


@pytest.fixture
def shared_owner(shared_service: Service, module_platform: Platform) -> Owner:
    """Run one statement as the superuser in the database that the tests of a file share."""

    async def rows(sql: str) -> list[tuple[Any, ...]]:
        async with module_platform.superuser() as conn:
            return [tuple(row) for row in await conn.fetch(sql)]

    return rows


@pytest.fixture
def shared_counted(shared_owner: Owner) -> Callable[[], Awaitable[None]]:
    """Wait until the counts of words hold what documents changed in the shared database."""
    return partial(until_counted, shared_owner)


def new_tenant(platform: Platform) -> Client:
    """Return a client for a tenant that no other test has."""
    return Client(platform.bus, tenant=f"t-{secrets.token_hex(4)}")


def make_pdf(*pages: str, password: str | None = None) -> bytes:
    """A small real PDF with one line of text a page."""
    from pypdf import PdfWriter
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = PdfWriter()
    font = DictionaryObject(
        {NameObject("/Type"): NameObject("/Font"), NameObject("/Subtype"): NameObject("/Type1")}
        | {NameObject("/BaseFont"): NameObject("/Helvetica")}
    )
    for text in pages:
        page = writer.add_blank_page(width=600, height=800)
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 50 700 Td ({text}) Tj ET".encode())
        page[NameObject("/Contents")] = writer._add_object(stream)
        fonts = DictionaryObject({NameObject("/F1"): writer._add_object(font)})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    if password is not None:
        writer.encrypt(password, algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


@pytest.fixture
def pdf() -> Callable[..., bytes]:
    return make_pdf


@pytest.fixture
async def owner(database: Database) -> AsyncIterator[Owner]:
    """Run one statement as the superuser, whom no policy binds."""
    conn = await asyncpg.connect(database.dsn)

    async def rows(sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await conn.fetch(sql)]

    yield rows
    await conn.close()


@pytest.fixture
def counted(owner: Owner) -> Callable[[], Awaitable[None]]:
    """Wait until the counts of words hold what documents changed."""
    return partial(until_counted, owner)


async def until_counted(owner: Owner) -> None:
    async def done() -> bool:
        return await owner("SELECT count(*) FROM retrieval.count_changes") == [(0,)]

    await until(done, why="every change is in the counts")
