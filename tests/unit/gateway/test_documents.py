"""What is known of an uploaded document before anyone reads it."""

from __future__ import annotations

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wayline.contracts.knowledge import IndexDocument
from wayline.gateway.documents import guess_type, index_id, size_bytes


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("tides.md", "text/markdown"),
        ("tides.HTML", "text/html"),
        ("a.b.pdf", "application/pdf"),
        ("README", "text/plain"),
        ("notes.unheard-of", "text/plain"),
    ],
)
def test_a_name_says_what_a_document_is(name: str, kind: str):
    assert guess_type(name, otherwise="text/plain") == kind


@given(st.binary(max_size=100))
def test_the_size_of_a_file_is_that_of_its_bytes(content: bytes):
    document = IndexDocument(tenant="t", document_id="d", name="n", content_base64=b64encode(content).decode())

    assert size_bytes(document) == len(content)


def test_the_queue_id_changes_with_tenant_document_and_content():
    document = IndexDocument(tenant="acme", document_id="d", name="n", text="x")
    changes = [{}, {"tenant": "globex"}, {"document_id": "e"}, {"text": "y"}, {"metadata": {"a": 1}}]

    assert len({index_id(document.model_copy(update=change)) for change in changes}) == len(changes)
    assert index_id(document) == index_id(document.model_copy())
