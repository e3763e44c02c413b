"""Find a document by what people call it."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from wayline.standalone.client import Api, ApiError

PAGE_MAX = 500
NAMED_MAX = 10
"""Ids that a refusal lists where several documents have the name."""


def document_path(document_id: str) -> str:
    """Return where the gateway has a document."""
    return f"/v1/documents/{quote(document_id, safe='')}"


async def find_document(api: Api, said: str) -> dict[str, Any]:
    """Return the document with this id or, where there is none, this name. Raises ApiError for none or several."""
    try:
        return await api.get(document_path(said))
    except ApiError as error:
        if error.status not in (404, 422):
            raise
    found = await _named(api, said)
    if not found:
        raise ApiError(f"no document has the name or id {said!r}: see `wayline documents list`", status=404)
    if len(found) > 1:
        several = ", ".join(document["document_id"] for document in found[:NAMED_MAX])
        raise ApiError(f"{len(found)} documents have the name {said!r}; say the id of one: {several}", status=409)
    return found[0]


async def _named(api: Api, name: str) -> list[dict[str, Any]]:
    """Find all documents of exactly this name: the gateway lists more where the name holds a `*`."""
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        page = await api.get("/v1/documents", limit=PAGE_MAX, cursor=cursor, name=name)
        found += [document for document in page["documents"] if document["name"] == name]
        cursor = page["next_cursor"]
        if cursor is None:
            return found
