"""What a tenant has in the object store of uploads is counted by object, up to its share."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from wayline.chassis import Service
from wayline.contracts.knowledge import ReserveUpload, UploadReserved
from wayline.retrieval.documents.document_table import DocumentTable
from wayline.retrieval.documents.uploads import UploadTable
from wayline.testkit import until

from .conftest import Start
from .test_payloads import kept

MIB = 1024 * 1024


async def reserve(client: Any, name: str, size: int = MIB, *, tenant: str = "acme") -> bool:
    asked = ReserveUpload(tenant=tenant, name=f"{tenant}/{name}", size_bytes=size)
    return (await client.bus.ask(asked, UploadReserved, timeout_s=30)).full is None


@pytest.fixture
async def service(start: Start) -> Service:
    """A service with room for two objects of a mebibyte for each tenant."""
    return await start(uploads_per_tenant_max_bytes=3 * MIB)


async def test_concurrent_upload_reservations_stay_within_the_share(service: Service, client: Any):
    passed = await asyncio.gather(*(reserve(client, f"d{n}/x") for n in range(12)))

    assert sum(passed) == 2
    assert await reserve(client, "d1/x", tenant="globex")


async def test_a_reservation_waits_for_the_one_before_it_to_be_counted(service: Service, client: Any, owner: Any):
    table: UploadTable = service.work[0].handle.__self__.uploads  # type: ignore[attr-defined]
    size = 2 * MIB
    async with table._store.tenant("acme") as conn:
        await conn.execute(table._sql.lock_uploads, "acme")
        await conn.execute(table._sql.reserve_upload, "acme", "acme/d1/x", size, table.per_tenant_max_bytes)
        second = asyncio.create_task(table.reserve("acme", "acme/d2/x", size))

        async def waits() -> bool:
            locks = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            return second.done() or bool(await owner(locks))

        await until(waits, why="the second one waits, or has not waited")

    assert await second is False


async def test_the_same_object_is_counted_once(service: Service, client: Any):
    assert [await reserve(client, "d1/x") for _ in range(4)] == [True] * 4
    assert [await reserve(client, "d2/x"), await reserve(client, "d3/x")] == [True, False]


async def test_what_the_object_store_has_let_go_by_age_makes_room(service: Service, client: Any, owner: Any):
    await reserve(client, "d1/x", 2 * MIB)
    before = await reserve(client, "d2/x", 2 * MIB)

    await owner("UPDATE retrieval.uploads SET stored_at = now() - interval '30 days 1 minute'")

    assert (before, await reserve(client, "d2/x", 2 * MIB)) == (False, True)


async def test_uploads_left_by_a_deletion_are_dropped_for_new_ones(service: Service, client: Any):
    await client.ingest("d1", "zebra. " + " " * (2 * MIB))
    documents: DocumentTable = service.work[0].handle.__self__.documents  # type: ignore[attr-defined]
    # As where the process ends before it has dropped the object.
    await documents.delete("acme", "d1", last=1)
    held = await kept(client)

    assert (held, await reserve(client, "d3/x", 2 * MIB), await kept(client)) == (1, True, 0)


async def test_an_unreserved_upload_is_counted_when_read(service: Service, client: Any):
    await client.ingest("d1", "zebra. " + " " * (2 * MIB))

    assert not await reserve(client, "d2/x", 2 * MIB)
