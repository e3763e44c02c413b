"""What is known of an uploaded document before anyone reads it."""

from __future__ import annotations

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wayline.contracts.knowledge import IndexDocument
from wayline.gateway.read_upload import index_id, same_id, size_bytes, type_of_file


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("tides.md", b"x", "text/markdown"),
        ("tides.HTML", b"x", "text/html"),
        ("a.b.pdf", b"x", "application/pdf"),
        ("README", b"x", "text/plain"),
        ("notes.unheard-of", b"x", "text/plain"),
        ("Booking.com", b"x", "text/plain"),
        ("main.rs", b"x", "text/plain"),
        ("schema.sql", "ä".encode(), "text/plain"),
        ("film.ts", b"\xff\x00", "application/octet-stream"),
        ("film.ts", b"x\x00", "application/octet-stream"),
    ],
)
def test_a_files_type_comes_from_its_name_else_its_bytes(name: str, content: bytes, kind: str):
    assert type_of_file(name, content) == kind


def test_same_name_and_content_make_the_same_document_id():
    ids = {same_id(*upload) for upload in (("a", b"bc"), ("a", b"bd"), ("ab", b"c"), ("a", b"bc"))}

    assert len(ids) == 3


@given(st.binary(max_size=100))
def test_the_size_of_a_file_is_that_of_its_bytes(content: bytes):
    document = IndexDocument(tenant="t", document_id="d", name="n", content_base64=b64encode(content).decode())

    assert size_bytes(document) == len(content)


def test_the_queue_id_changes_with_tenant_document_and_content():
    document = IndexDocument(tenant="acme", document_id="d", name="n", text="x")
    changes = [{}, {"tenant": "globex"}, {"document_id": "e"}, {"text": "y"}, {"metadata": {"a": 1}}]

    assert len({index_id(document.model_copy(update=change)) for change in changes}) == len(changes)
    assert index_id(document) == index_id(document.model_copy())
