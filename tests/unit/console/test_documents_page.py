"""The list of documents, as its page shows what the API answered."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from wayline.console.pages.frame import Frame
from wayline.console.pages.knowledge.documents import STATES, TEMPLATE, Documents
from wayline.console.render.environment import Templates
from wayline.contracts.knowledge import Document, DocumentStatus

ME = {"tenant": "acme", "name": "ann", "scopes": ["read"], "open": False, "version": "1"}
FRAME = Frame("Knowledge", "/knowledge", ME, "token", "system", "/knowledge", now=datetime(2026, 5, 1, tzinfo=UTC))


def page_of(*documents: dict[str, Any]) -> str:
    page = Documents(list(documents), None)
    return Templates().render(TEMPLATE, page=page, frame=FRAME, states=STATES).decode()


@pytest.mark.parametrize("status", list(DocumentStatus))
def test_a_document_of_each_status_shows_itself(status: DocumentStatus):
    html = page_of(Document(document_id="d1", name="tides.md", status=status).model_dump(mode="json"))

    assert "tides.md" in html and f"status-{status}" in html


def test_an_empty_list_says_how_documents_come():
    assert "No documents" in page_of()
