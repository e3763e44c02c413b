"""What a deleted document had on the bus is gone within a minute, whatever else waits in the queue."""

from __future__ import annotations

from typing import Any

import pytest

from wayline.chassis import Service
from wayline.contracts.errors import Retry
from wayline.contracts.knowledge import DeleteDocument, DocumentDeleted
from wayline.retrieval.embeddings.embedding import LexicalHash
from wayline.testkit import until

from .test_payloads import kept, large


async def delete(client: Any, document_id: str) -> None:
    await client.bus.ask(DeleteDocument(tenant="acme", document_id=document_id), DocumentDeleted)


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents with the word `stuck` wait for their provider again and again."""
    embed = LexicalHash.embed

    async def limited(self: LexicalHash, texts: Any, **more: Any) -> Any:
        if any("stuck" in text for text in texts):
            raise Retry("the provider answers 429", after_s=600)
        return await embed(self, texts, **more)

    monkeypatch.setattr(LexicalHash, "embed", limited)


@pytest.mark.usefixtures("stuck")
@pytest.mark.parametrize("tenant", ["acme", "globex"])
async def test_a_deletion_takes_the_upload_while_another_document_waits(service: Service, client: Any, tenant: str):
    await client.ingest("d1", large("first"))
    await client.send("slow", "stuck", tenant=tenant)
    await until(lambda: client.get("slow", tenant=tenant), why="the slow one is in hand")

    await delete(client, "d1")

    assert (await kept(client), await client.get("d1")) == (0, None)


async def test_a_sweep_takes_what_a_deletion_could_not(
    service: Service, client: Any, owner: Any, monkeypatch: pytest.MonkeyPatch
):
    await client.ingest("d1", large("first"))
    sweep = service.work[0].handle.__self__.deleted  # type: ignore[attr-defined]
    drop, away = sweep._drop, [True]

    async def drops(names: Any) -> None:
        if away[0]:
            raise TimeoutError
        await drop(names)

    monkeypatch.setattr(sweep, "_drop", drops)
    await delete(client, "d1")
    left = await kept(client)
    away[0] = False

    await sweep.sweep()

    assert (left, await kept(client)) == (1, 0)
    assert await owner("SELECT count(*) FROM retrieval.documents") == [(0,)]
    assert await owner("SELECT count(*) FROM retrieval.uploads") == [(0,)]
