"""Adding documents: what a form sends, and how far each is."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

import pytest
from starlette.datastructures import FormData, Headers, UploadFile

from wayline.client.uploads import document_id_of
from wayline.console.pages.form_values import WrongField
from wayline.console.pages.frame import Frame
from wayline.console.pages.knowledge.upload import TEMPLATE, Refused, Upload, described, new_documents
from wayline.console.render.environment import Templates
from wayline.contracts.knowledge import Document

ME = {"tenant": "acme", "name": "ann", "scopes": ["read"], "open": False, "version": "1", "user_id": None}
FRAME = Frame("Add", "/knowledge", ME, "token", "system", "/knowledge/upload", now=datetime(2026, 5, 1, tzinfo=UTC))
PAYLOAD = '"><script>alert(1)</script>\u202e'


def page_of(*documents: dict[str, Any], refused: list[Refused] | None = None) -> str:
    page = Upload(list(documents), refused or [])
    return Templates().render(TEMPLATE, page=page, frame=FRAME, document_max_bytes=64_000_000).decode()


def file_of(name: str, content: bytes = b"x", kind: str = "") -> UploadFile:
    return UploadFile(io.BytesIO(content), filename=name, headers=Headers({"content-type": kind}))


def test_files_addresses_and_text_of_a_form_are_documents():
    form = FormData(
        [
            ("file", file_of("notes/a.md")),
            ("file", file_of("")),
            ("urls", "https://a.example/x\r\n\r\nhttps://b.example"),
            ("name", "said.md"),
            ("text", "The sea."),
        ]
    )
    found = new_documents(form, {"collection": "wool"})

    assert [one.body for one in found] == [
        {"collection": "wool", "name": "notes/a.md", "document_id": document_id_of("notes/a.md")},
        {"collection": "wool", "url": "https://a.example/x"},
        {"collection": "wool", "url": "https://b.example"},
        {"collection": "wool", "name": "said.md", "document_id": document_id_of("said.md"), "text": "The sea."},
    ]
    assert [one.file is not None for one in found] == [True, False, False, False]


def test_a_key_of_one_user_replaces_no_hidden_document():
    [found] = new_documents(FormData([("file", file_of("a.md"))]), {}, of_user=True)

    assert found.body == {"name": "a.md"}


def test_what_is_said_of_all_leaves_out_what_is_empty():
    typed = {"collection": "", "audience": "ann\nbob", "valid_until": "", "trust": "", "metadata": '{"a": 1}'}

    assert described(typed, zone=UTC) == {"audience": ["ann", "bob"], "metadata": {"a": 1}}


def test_a_text_without_a_name_is_refused():
    with pytest.raises(WrongField, match="need one"):
        new_documents(FormData([("text", "The sea.")]), {})


def test_the_page_follows_documents_only_while_one_is_read():
    busy = Document(document_id="d/1", name="a", status="indexing", chunks_done=3, chunks_total=9)  # pyright: ignore[reportArgumentType]
    done = Document(document_id="d2", name="b", status="failed", error="no text")  # pyright: ignore[reportArgumentType]
    html = page_of(busy.model_dump(mode="json"), done.model_dump(mode="json"))

    assert 'hx-get="/knowledge/upload/region?id=d%2F1&amp;id=d2" hx-trigger="every 2s"' in html
    assert '<progress max="9" value="3"' in html and "no text" in html
    assert "hx-trigger" not in page_of(done.model_dump(mode="json"))


def test_each_refusal_is_told_by_its_file():
    html = page_of(refused=[Refused(PAYLOAD, "it is empty")])

    assert "it is empty" in html and "<script>alert" not in html and "\u202e" not in html
    assert html.count("the scope write") == 3
