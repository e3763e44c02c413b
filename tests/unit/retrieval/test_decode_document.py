"""What was sent becomes text that a database can hold, or a sentence that says what to do."""

import asyncio
import base64
import hashlib
import io
import zipfile
from dataclasses import replace
from typing import Any

import pytest

from wayline.contracts.knowledge import IndexDocument
from wayline.documents import ReadableDocument, ReadLimits, characters
from wayline.documents.decode_file import FileToRead, decode_file
from wayline.documents.file_kinds import DOCX, EPUB, XLSX
from wayline.llm.tokens import estimate_bytes
from wayline.retrieval.documents import decode_document
from wayline.retrieval.documents.decode_document import Decoded, Limits, Original, header_of, media_type_of
from wayline.retrieval.errors import Unreadable
from wayline.retrieval.storable import storable, storable_json
from wayline.testkit.media import pdf, png
from wayline.testkit.office_files import office_files, xlsx

LIMITS = Limits(bytes_max=1_000, pdf_pages_max=10, read_seconds_max=10, metadata_bytes_max=100)


class ReadsHere:
    """Reads in this process: the documents of these tests harm nobody."""

    async def read(
        self, content: bytes, *, kind: str, limits: ReadLimits, charset: str = "", links: bool = True
    ) -> ReadableDocument:
        return decode_file(FileToRead(content, charset, links=links), kind, limits)


def decode(sent: IndexDocument, limits: Limits) -> Decoded:
    return asyncio.run(decode_document.decode(sent, limits, ReadsHere()))


def zipped(name: str, content: bytes = b"<x/>") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, content)
    return file.getvalue()


def document(text: str | None = None, *, content: bytes | None = None, **fields: Any) -> IndexDocument:
    encoded = base64.b64encode(content).decode() if content is not None else None
    return IndexDocument(document_id="d", **{"name": "note", **fields}, text=text, content_base64=encoded)


@pytest.mark.parametrize(
    ("name", "media_type", "read_as"),
    [
        ("note", "text/plain; charset=utf-8", "text/plain"),
        ("README.md", "text/plain", "text/markdown"),
        ("README.md", "application/octet-stream", "text/markdown"),
        ("page.HTM", "", "text/html"),
        ("table", "text/csv", "text/csv"),
        ("paper.pdf", "application/octet-stream", "application/pdf"),
        ("notes.md", "text/html", "text/html"),
    ],
)
def test_the_name_decides_the_format_only_where_the_sender_did_not(name: str, media_type: str, read_as: str):
    assert media_type_of(document("x", name=name, media_type=media_type), b"x") == read_as


@pytest.mark.parametrize(
    ("name", "media_type", "content", "read_as"),
    [
        ("Booking.com", "application/x-msdos-program", b"a list", "text/plain"),
        ("main.rs", "application/rls-services+xml", b"fn main() {}", "text/plain"),
        ("schema.sql", "application/x-sql", "-- Käse".encode(), "text/plain"),
        ("notes.md", "application/x-unheard-of", b"# Notes", "text/markdown"),
        ("LICENSE", "application/octet-stream", b"Permission is granted", "text/plain"),
        ("wide.log", "", "text".encode("utf-16"), "text/plain"),
        ("paper", "application/octet-stream", b"%PDF-1.7 and so on", "application/pdf"),
        ("photo", "", png(2, 3), "image/png"),
        ("report", "application/zip", zipped("word/document.xml"), DOCX),
        ("book", "application/octet-stream", zipped("mimetype", b"application/epub+zip"), EPUB),
        ("table.csv", "text/csv", zipped("xl/workbook.xml"), XLSX),
        ("old", "", bytes.fromhex("d0cf11e0a1b11ae1") + "Workbook".encode("utf-16-le"), "application/vnd.ms-excel"),
        ("letter.doc", "application/msword", rb"{\rtf1 words}", "application/rtf"),
        ("letter.eml", "application/octet-stream", b"From: ada", "message/rfc822"),
        ("model.ipynb", "text/plain", b"{}", "application/x-ipynb+json"),
        ("talk.srt", "text/plain", b"1", "application/x-subrip"),
        ("a.log", "", "Привет, мир! ".encode("cp1251") * 9, "text/plain"),
        ("a.log", "application/x-unheard-of", "wide ".encode("utf-16-le") * 9, "text/plain"),
    ],
)
def test_a_generic_media_type_gives_way_to_the_bytes(name: str, media_type: str, content: bytes, read_as: str):
    assert media_type_of(document(content=content, name=name, media_type=media_type), content) == read_as


@pytest.mark.parametrize("content", [b"PK\x03\x04\x14\x00\x06\x00", b"\xff\xfe\xfd", b"\x7fELF\x02\x01\x01\x00\x00"])
def test_binary_bytes_of_no_known_type_are_refused(content: bytes):
    with pytest.raises(Unreadable, match="cannot be read"):
        decode(document(content=content, name="report.docx", media_type="application/zip"), LIMITS)


def test_an_old_word_file_is_refused_with_advice():
    with pytest.raises(Unreadable, match="save it as DOCX"):
        decode(document(content=bytes.fromhex("d0cf11e0a1b11ae1") + b"\0" * 99, name="a.doc"), LIMITS)


def test_a_text_in_an_old_encoding_is_read():
    text = "Договор может быть расторгнут с уведомлением за три месяца. " * 3  # noqa: RUF001

    found = decode(document(content=text.encode("cp1251"), name="a.log", media_type=""), LIMITS)

    assert ([page.text for page in found.pages], found.language) == ([text], "ru")


def test_code_is_told_by_its_name():
    found = decode(document(content=b"def rise():\n    pass", name="tides.py", media_type="text/x-python"), LIMITS)

    assert [page.code for page in found.pages] == [True]


@pytest.mark.parametrize(
    ("table", "header"),
    [
        ("name,price,stock\nlamp,3.50,2\n", "name,price,stock"),
        ('"First name";"Year"\nAda;1815', '"First name";"Year"'),
        ("lamp,3.50,2\nbulb,1,9", None),
        ("one column\nof text", None),
        ("", None),
    ],
)
def test_the_header_of_a_table_names_its_columns(table: str, header: str | None):
    assert header_of(table) == header


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_text_is_read_in_the_encodings_that_editors_write(encoding: str):
    assert characters("Grüße aus Köln".encode(encoding)) == "Grüße aus Köln"


@pytest.mark.parametrize(
    ("head", "encoding", "read_as"),
    [
        ('<meta charset="windows-1251">', "cp1251", "Привет"),
        ("<META http-equiv=Content-Type content='text/html; charset=KOI8-R'>", "koi8-r", "Привет"),
        ('<meta charset="windows-1251">', "utf-8", "Привет"),
        ('<meta charset="windows-9999">', "cp1252", "Grüße"),
        ('<meta charset="hex">', "cp1252", "Grüße"),
    ],
)
def test_a_page_is_read_in_the_encoding_that_it_names(head: str, encoding: str, read_as: str):
    page = f"<html><head>{head}</head><body><p>{read_as}</p></body></html>".encode(encoding)

    reading = decode(document(content=page, media_type="text/html"), LIMITS)

    assert [page.text for page in reading.pages] == [read_as]


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        (document(""), "empty"),
        (document(None), "empty"),
        (document(" \n\t "), "empty"),
        (document(content=b""), "empty"),
        (document(content=bytes(range(256)) * 3), "binary data"),
        (document("x" * 1_001), "WAYLINE_RETRIEVAL_DOCUMENT_BYTES_MAX"),
        (document(content=b"II*\x00\x08\x00", media_type="image/tiff"), "send text, Markdown, HTML, PDF, DOCX"),
        (document("x", media_type="image/png"), "no image in PNG, JPEG, GIF or WebP"),
        (document(content=png(2, 2)[:20], media_type="image/png"), "no image in PNG, JPEG, GIF or WebP"),
        (document("x", media_type="application/pdf"), "must be sent as a file"),
        (document(content=b"hello", media_type="application/pdf"), "not a PDF"),
        (document(content=b"%PDF-1.7 and then nothing", media_type="application/pdf"), "damaged"),
        (document("<html><script>let x</script></html>", media_type="text/html"), "empty"),
    ],
)
def test_an_unreadable_document_gets_advice(sent: IndexDocument, says: str):
    with pytest.raises(Unreadable, match=says):
        decode(sent, LIMITS)


def test_bad_base64_is_refused_as_such():
    with pytest.raises(Unreadable, match="base64"):
        decode(IndexDocument(document_id="d", name="n", content_base64="***"), LIMITS)


def test_a_page_without_an_article_still_gives_its_words():
    found = decode(document("<html><body><p>Only</p><p>this.</p></body></html>", media_type="text/html"), LIMITS)

    assert " ".join(page.text for page in found.pages).split() == ["Only", "this."]


def test_the_original_is_kept_byte_for_byte_beside_its_text():
    content = "Grüße".encode("cp1252")

    found = decode(document(content=content, media_type="text/plain"), LIMITS)

    assert ([page.text for page in found.pages], found.original) == (
        ["Grüße"],
        Original(content, "text/plain", text_bytes=7, text_tokens=3, text="Grüße".encode()),
    )


@pytest.mark.parametrize(("name", "content"), office_files("The tide is high.").items())
def test_of_a_file_that_no_model_reads_its_text_is_given(name: str, content: bytes):
    limits = replace(LIMITS, bytes_max=10_000)
    sent = document(content=content, name=name, media_type="application/octet-stream")

    original = decode(sent, limits).original

    assert original.content == content and original.text is not None
    assert b"The tide is high." in original.text
    assert (original.text_bytes, original.text_tokens) == (len(original.text), estimate_bytes(original.text))


def test_a_sheets_name_stands_above_its_text():
    original = decode(document(content=xlsx("Lamp"), name="x.xlsx"), replace(LIMITS, bytes_max=10_000)).original

    assert original.text is not None and original.text.startswith(b"[Stock]\n| Lamp |")


@pytest.mark.parametrize(
    ("name", "content"), [("a.txt", b"Words."), ("a.json", b'{"a": 1}'), ("a.html", b"<p>Words.</p>")]
)
def test_what_a_model_reads_is_given_as_it_is(name: str, content: bytes):
    assert decode(document(content=content, name=name, media_type=""), LIMITS).original.text is None


def test_the_originals_hash_is_taken_when_it_is_read():
    content: Any = bytearray(b"words")
    kept = Original(content, "text/plain")
    content[:] = b"other"

    assert kept.sha256 == hashlib.sha256(b"words").hexdigest()


def test_an_image_is_typed_by_its_bytes_and_has_no_text():
    image = png(40, 30)

    found = decode(document(content=image, name="photo.jpg", media_type="image/jpeg"), LIMITS)

    assert (found.original, found.pages, found.problem) == (Original(image, "image/png", 40, 30), [], None)


def test_a_pdf_without_text_is_kept_with_a_reason():
    scanned = pdf("", "")

    found = decode(document(content=scanned, media_type="application/pdf"), LIMITS)

    assert (found.original, found.pages) == (Original(scanned, "application/pdf", pages=2), [])
    assert found.problem and "OCR" in found.problem


def test_what_postgres_cannot_hold_is_taken_out():
    assert storable("a\x00b\ud800c\r\n") == "ab\ufffdc\n"
    assert storable_json({"a\x00": ["\udfff", float("nan"), {"b": "\x00"}], "n": 1.5}) == {
        "a": ["\ufffd", None, {"b": ""}],
        "n": 1.5,
    }
