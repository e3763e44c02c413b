"""Find a document by what people call it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, BinaryIO
from urllib.parse import quote

from wayline.client.client import Client
from wayline.client.errors import ApiError

PAGE_MAX = 500
NAMED_MAX = 10
"""Ids that a refusal lists where several documents have the name."""


def document_path(document_id: str) -> str:
    """Return where the gateway has a document."""
    return f"/v1/documents/{quote(document_id, safe='')}"


async def find_document(client: Client, name_or_id: str) -> dict[str, Any]:
    """Return the document with this id or, where there is none, this name. Raises ApiError for none or several."""
    try:
        return await client.get(document_path(name_or_id))
    except ApiError as error:
        if error.status not in (404, 422):
            raise
    found = await _named(client, name_or_id)
    if not found:
        raise ApiError(f"no document has the name or id {name_or_id!r}: see `wayline documents list`", status=404)
    if len(found) > 1:
        several = ", ".join(document["document_id"] for document in found[:NAMED_MAX])
        raise ApiError(f"{len(found)} documents have the name {name_or_id!r}; say the id of one: {several}", status=409)
    return found[0]


async def add_document(
    client: Client, document: Mapping[str, Any], *, file: tuple[str, BinaryIO, str] | None = None
) -> dict[str, Any]:
    """Add a document: `text` or `url` in its fields, or a file by its name, its open bytes and its media type.

    The file is read in blocks. It is stored when this returns, and indexed afterwards. Raises ApiError.
    """
    if file is None:
        return await client.post("/v1/documents", document)
    fields = {name: value if isinstance(value, str) else json.dumps(value) for name, value in document.items()}
    return await client.post("/v1/documents", fields, file=file)


async def change_document(client: Client, name_or_id: str, change: Mapping[str, Any]) -> dict[str, Any]:
    """Change what describes a document: `name`, `metadata`, `collection`, `audience`, `valid_until`, `trust`.

    What is left out stays; nothing is indexed again. Raises ApiError for no document, or several of this name.
    """
    found = await find_document(client, name_or_id)
    return await client.patch(document_path(found["document_id"]), change)


async def reindex_document(client: Client, name_or_id: str) -> dict[str, Any]:
    """Index a document once more from the bytes that are kept of it. Raises ApiError."""
    found = await find_document(client, name_or_id)
    return await client.post(f"{document_path(found['document_id'])}/reindex")


async def _named(client: Client, name: str) -> list[dict[str, Any]]:
    """Find all documents of exactly this name: the gateway lists more where the name holds a `*`."""
    return [
        document
        async for page in client.pages("/v1/documents", limit=PAGE_MAX, name=name)
        for document in page["documents"]
        if document["name"] == name
    ]
