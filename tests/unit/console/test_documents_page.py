"""Documents: the list, one of them, and what its form changes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest

from wayline.client import ApiError
from wayline.client.client import Client, Tagged
from wayline.console.pages.form_values import WrongField
from wayline.console.pages.frame import Frame
from wayline.console.pages.knowledge import document as document_module
from wayline.console.pages.knowledge.document import DocumentPage, change_of, shown_fields
from wayline.console.pages.knowledge.documents import STATES, TEMPLATE, Documents
from wayline.console.render.environment import Templates
from wayline.contracts.document_changes import DocumentChunk
from wayline.contracts.knowledge import Document, DocumentStatus

ME = {"tenant": "acme", "name": "ann", "scopes": ["read"], "open": False, "version": "1", "user_id": None}
FRAME = Frame("Knowledge", "/knowledge", ME, "token", "system", "/knowledge", now=datetime(2026, 5, 1, tzinfo=UTC))
ZURICH = ZoneInfo("Europe/Zurich")
PAYLOAD = '"><script>alert(1)</script><svg onload=alert(2)>\u202e'


def document_of(**fields: Any) -> dict[str, Any]:
    return Document(**{"document_id": "d1", "name": "tides.md", **fields}).model_dump(mode="json")


def list_of(*documents: dict[str, Any], **wanted: str) -> str:
    page = Documents(list(documents), None, {"name": "", "collection": "", "language": "", "state": "", **wanted})
    return Templates().render(TEMPLATE, page=page, frame=FRAME, states=STATES).decode()


def page_of(document: dict[str, Any], *chunks: DocumentChunk, **more: Any) -> str:
    passages = [chunk.model_dump(mode="json") for chunk in chunks]
    page = DocumentPage(document, '"tag"', passages, None, **more)
    shown = {**shown_fields(document, ZURICH), **page.typed}
    return Templates().render(document_module.TEMPLATE, page=page, frame=FRAME, shown=shown).decode()


@pytest.mark.parametrize("status", list(DocumentStatus))
def test_a_document_of_each_status_shows_itself(status: DocumentStatus):
    html = list_of(document_of(status=status)) + page_of(document_of(status=status))

    assert html.count("tides.md") >= 2 and html.count(f"status-{status}") == 2


def test_an_empty_list_says_what_to_do():
    assert "No documents yet" in list_of()
    assert "Leave one out" in list_of(collection="wool")


def test_the_next_page_keeps_the_conditions():
    page = Documents([], "c2", {"name": "a&b", "collection": "", "language": "", "state": "ready"})

    assert page.next_address == "/knowledge?name=a%26b&state=ready&cursor=c2"


def test_a_document_says_all_that_describes_it():
    twin = {"near_duplicate_of": "d/2", "near_duplicate_share": 0.93}
    found = document_of(status="ready", chunks_done=3, chunks_embedded=1, sha256="f" * 64, trust="untrusted", **twin)
    chunk = DocumentChunk(
        chunk_id="c", position=4, text="The moon.", headings=("Sea", "Tides"), page=7, language="english"
    )
    html = page_of(found, chunk)

    assert "93 %" in html and 'href="/knowledge/document?id=d/2"' in html
    assert "page 7" in html and "Sea \u203a Tides" in html and "found by its words alone" in html
    assert "1 by meaning" in html and "of strangers" in html and 'href="/knowledge/file?id=d1"' in html


def test_a_key_that_only_reads_is_told_which_scope_it_lacks():
    html = page_of(document_of(status="ready"))

    assert html.count("Your key lacks the scope write.") == 3


def test_strangers_words_in_a_document_stay_words():
    found = document_of(name=PAYLOAD, metadata={PAYLOAD: PAYLOAD}, collection="c", error=PAYLOAD, audience=("ann",))
    html = page_of(found, DocumentChunk(chunk_id="c", position=0, text=PAYLOAD, headings=(PAYLOAD,)))
    html += list_of(found)

    assert "<script>alert" not in html and "<svg onload" not in html and "\u202e" not in html


def test_an_untouched_form_changes_nothing_of_a_document():
    found = document_of(
        name="a \u202e b", metadata={"x": "\u202e", "n": 1}, audience=("ann", "b"), valid_until="2027-01-31T11:00:30Z"
    )
    sent = {name: value.replace("\n", "\r\n") for name, value in shown_fields(found, ZURICH).items()}

    assert change_of(found, sent, zone=ZURICH) == {}


def test_only_what_was_touched_is_changed():
    found = document_of(audience=("ann",), collection="old", metadata={"a": 1})
    shown = shown_fields(found, ZURICH)

    assert change_of(found, {**shown, "collection": ""}, zone=ZURICH) == {"collection": None}
    assert change_of(found, {**shown, "everybody": "on"}, zone=ZURICH) == {"audience": None}
    assert change_of(found, {**shown, "audience": "ann\r\n\r\n group:law "}, zone=ZURICH) == {
        "audience": ["ann", "group:law"]
    }
    assert change_of(found, {**shown, "valid_until": "2027-01-31T12:00"}, zone=ZURICH) == {
        "valid_until": "2027-01-31T12:00:00+01:00"
    }


@pytest.mark.parametrize(("field", "typed"), [("metadata", "{"), ("metadata", "[1]"), ("valid_until", "soon")], ids=str)
def test_a_field_that_cannot_be_read_says_so(field: str, typed: str):
    found = document_of()

    with pytest.raises(WrongField, match=r"not JSON|not a JSON object|not a time"):
        change_of(found, {**shown_fields(found, ZURICH), field: typed}, zone=ZURICH)


def test_who_cites_a_document_is_said_with_the_passages():
    job = {
        "job_id": "j1",
        "agent": "helper",
        "user_id": "<b>",
        "session_id": None,
        "created_at": "2026-05-01T00:00:00Z",
    }
    html = page_of(document_of(), cited=[{**job, "passages": [{"quote": "<i>Ten days.</i>"}]}])

    assert "Cited by 1 job," in html and 'href="/jobs/j1"' in html
    assert "&lt;i&gt;Ten days." in html and "<i>Ten" not in html and "<b>" not in html
    assert "Cited by" not in page_of(document_of())


class Api:
    """Answers about a document, and not about who cites it."""

    async def tagged(self, path: str) -> Tagged:
        return Tagged(document_of(), '"1"')

    async def get(self, path: str, **_: Any) -> dict[str, Any]:
        if path.endswith("/citations"):
            raise ApiError("tracing <b>did not answer", code="unavailable", status=503)
        return {"chunks": [], "next_cursor": None}


async def test_a_document_is_shown_while_nobody_tells_who_cites_it():
    page = await document_module.read(cast(Client, Api()), "d1")
    shown = shown_fields(page.document, ZURICH)
    html = Templates().render(document_module.TEMPLATE, page=page, frame=FRAME, shown=shown).decode()

    assert "tides.md" in html and "Which jobs cite it is not known: tracing &lt;b&gt;did not answer" in html
