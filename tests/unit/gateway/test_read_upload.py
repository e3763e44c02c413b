"""What is known of an uploaded document before anyone reads it."""

from __future__ import annotations

import tracemalloc
from base64 import b64encode
from collections.abc import AsyncIterator
from hashlib import sha256
from io import BytesIO
from tempfile import NamedTemporaryFile

import orjson
import pytest
from starlette.datastructures import FormData, UploadFile

from wayline.chassis.claim_check.claims import MovedField
from wayline.contracts.knowledge import IndexDocument, trust_by_origin
from wayline.gateway.problem_answers import InvalidBody
from wayline.gateway.read_upload import BLOCK_BYTES, Upload, _from_form, _from_json, look_through, same_id, type_of_file

MIB_OF_LARGE = 16
PEAK_MAX_BYTES = 4 * 1024 * 1024


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
    assert type_of_file(name, is_text=look_through(BytesIO(content), name).is_text) == kind


def test_same_name_and_content_make_the_same_document_id():
    ids = {same_id(*upload) for upload in (("a", b"bc"), ("a", b"bd"), ("ab", b"c"), ("a", b"bc"))}

    assert len(ids) == 3


@pytest.mark.parametrize("size", [0, 1, 2, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES])
@pytest.mark.parametrize("content", [b"a", "ä".encode(), b"\xff", b"\0"], ids=["ascii", "utf-8", "binary", "NUL"])
def test_a_look_through_a_file_tells_what_the_whole_does(content: bytes, size: int):
    whole = (content * (size // len(content) + 1))[:size]
    encoded = orjson.dumps(b64encode(whole).decode())

    known = look_through(BytesIO(whole), "n")

    assert (known.size_bytes, known.sha256, known.same_id) == (size, sha256(whole).hexdigest(), same_id("n", whole))
    assert (known.encoded_bytes, known.encoded_sha256) == (len(encoded), sha256(encoded).hexdigest())
    try:
        assert known.is_text == ("\0" not in whole.decode())
    except UnicodeDecodeError:
        assert not known.is_text


def test_the_queue_id_changes_with_tenant_document_and_content():
    document = IndexDocument(tenant="acme", document_id="d", name="n", text="x")
    changes = [{}, {"tenant": "globex"}, {"document_id": "e"}, {"text": "y"}, {"metadata": {"a": 1}}]
    field = MovedField("0" * 64, 9, pieces)

    ids = {Upload(document.model_copy(update=change), 1, "").index_id for change in changes}

    assert len(ids | {Upload(document, 1, "", field).index_id}) == len(changes) + 1


async def pieces() -> AsyncIterator[bytes]:
    yield b""


async def test_reading_a_large_file_never_holds_the_whole():
    file = UploadFile(NamedTemporaryFile(), filename="large.bin")  # type: ignore[arg-type]  # noqa: SIM115
    for number in range(MIB_OF_LARGE):
        await file.write(bytes([number % 256]) * 1024 * 1024)
    tracemalloc.start()
    try:
        upload = await _from_form(FormData([("file", file)]), "acme")
        assert upload.file is not None
        size = 0
        async for piece in upload.file.pieces():
            size += len(piece)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        await file.close()

    assert size == upload.file.size
    assert upload.size_bytes == MIB_OF_LARGE * 1024 * 1024
    assert peak < PEAK_MAX_BYTES


def test_an_address_is_given_on_for_fetching():
    url = "https://sea.example/tides?page=1"

    upload = _from_json(orjson.dumps({"url": url, "metadata": {"shelf": 1}}), "acme")

    assert upload.document == IndexDocument(
        tenant="acme",
        document_id=same_id(url, url.encode()),
        name=url,
        media_type="",
        url=url,
        metadata={"url": url, "shelf": 1},
    )
    assert trust_by_origin(url, upload.document.metadata, media_type="") == "untrusted"


@pytest.mark.parametrize(
    ("name", "media_type", "trust"),
    [
        ("a/News.EML", "", "untrusted"),
        ("An offer", "Message/RFC822; charset=utf-8", "untrusted"),
        ("eml.txt", "text/plain", "trusted"),
    ],
)
def test_a_mail_is_the_word_of_a_stranger(name: str, media_type: str, trust: str):
    assert trust_by_origin(name, {}, media_type=media_type) == trust


@pytest.mark.parametrize(
    "body",
    [
        {"name": "a"},
        {"text": "words"},
        {"url": "https://sea.example", "text": "words"},
        {"url": "file:///etc/passwd"},
        {"url": "https://sea.example/a b"},
    ],
)
def test_a_document_is_either_a_named_text_or_an_address(body: dict[str, str]):
    with pytest.raises(InvalidBody):
        _from_json(orjson.dumps(body), "acme")
