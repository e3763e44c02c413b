"""What the bus kept of a large upload goes with its document."""

import asyncio
from typing import Any

import pytest

from wayline.chassis import Service
from wayline.chassis.claim_check.claims import MESSAGE_MAX
from wayline.chassis.topology import PAYLOADS, UPLOADS
from wayline.contracts.knowledge import DeleteDocument, DocumentDeleted, IndexDocument
from wayline.testkit import until


def large(word: str) -> str:
    """Return a text of few words that is too large for a message."""
    return f"{word} zebra." + "\n" * MESSAGE_MAX


async def delete(client: Any, document_id: str) -> None:
    await client.bus.ask(DeleteDocument(tenant="acme", document_id=document_id), DocumentDeleted)


async def kept(client: Any, bucket: str = UPLOADS) -> int:
    """Objects whose content is in the object store."""
    info = await client.bus.js.stream_info(f"OBJ_{bucket}", subjects_filter=f"$O.{bucket}.C.>")
    return len(info.state.subjects or {})


async def test_deleting_a_document_drops_all_versions_of_its_upload_alone(service: Service, client: Any):
    await client.ingest("d1", large("first"))
    await client.ingest("d1", large("second"))
    await client.ingest("d2", large("first"))
    before = await kept(client)

    await delete(client, "d1")

    assert (before, await kept(client)) == (3, 1)
    await delete(client, "d2")
    assert (await client.bus.js.stream_info(f"OBJ_{UPLOADS}")).state.messages == 0
    assert (await client.bus.js.stream_info(f"OBJ_{PAYLOADS}")).state.messages == 0


async def test_an_older_builds_upload_in_payloads_is_read_and_left(
    service: Service, client: Any, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as older:
        older.setattr(IndexDocument, "is_upload", False)
        body, headers = await client.bus.wire(
            IndexDocument(tenant="acme", document_id="d1", name="d1", text=large("first"))
        )
    await client.bus.store("documents.index.acme", body, headers)
    document = await until(lambda: client.ended("d1"), why="d1 is indexed")

    await delete(client, "d1")

    assert (document.status, await kept(client), await kept(client, PAYLOADS)) == ("ready", 0, 1)
    assert await client.get("d1") is None


async def test_what_was_deleted_can_be_uploaded_again(service: Service, client: Any):
    await client.ingest("d1", large("first"))
    await delete(client, "d1")

    again = await client.ingest("d1", large("first"))

    assert (again.status, await kept(client)) == ("ready", 1)


async def test_an_object_is_kept_until_waiting_messages_are_handled(
    service: Service, client: Any, monkeypatch: pytest.MonkeyPatch
):
    """The same content may be on its way again, and would be named by the same object."""
    await client.ingest("d1", large("first"))
    gate, index = asyncio.Event(), service.work[0].handle.__self__.indexer  # type: ignore[attr-defined]

    async def held(*_: Any) -> bool:
        await gate.wait()
        return False

    with monkeypatch.context() as waiting:
        waiting.setattr(type(index), "_begin", held)
        await client.send("d1", large("first"))
        await delete(client, "d1")
        before = await kept(client)
        gate.set()
        await client.idle()
    await service.work[0].handle.__self__.deleted.sweep()  # type: ignore[attr-defined]

    assert (before, await kept(client)) == (1, 0)
