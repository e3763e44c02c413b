"""What strangers wrote is read in processes that end in bounded time, and harm nothing else."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from wayline.documents import ReadLimits, Unreadable
from wayline.documents.reader_pool import ReaderPool
from wayline.testkit import until
from wayline.testkit.hostile_files import MEGABYTE, deep_html, dense_pdf, inflating_pdf, zip_bomb
from wayline.testkit.media import pdf
from wayline.testkit.walks import cases

LIMITS = ReadLimits(page_s=60, document_s=60)
BRIEF = replace(LIMITS, document_s=1)
SLOW = b"<p>word</p>" * 2_000_000
"""Takes far longer than a test."""


@pytest.fixture
async def pool() -> AsyncIterator[ReaderPool]:
    pool = ReaderPool()
    yield pool
    await pool.close()


def pid(pool: ReaderPool) -> int:
    """Return the process that waits for a document."""
    [idle] = pool._idle
    return idle.process.pid


async def test_a_pdf_is_read_page_by_page(pool: ReaderPool):
    found = await pool.read(pdf("one", "", "three"), kind="pdf", limits=LIMITS)

    assert [(page.number, page.text) for page in found.pages] == [(1, "one"), (3, "three")]
    assert found.page_count == 3


async def test_a_page_that_takes_too_long_is_named_in_the_refusal(pool: ReaderPool):
    with pytest.raises(Unreadable, match=r"page 2 of the PDF took longer than 0\.5 s"):
        await pool.read(dense_pdf(4 * MEGABYTE, before="Intro"), kind="pdf", limits=replace(LIMITS, page_s=0.5))
    before = pid(pool)
    found = await pool.read(b"words", kind="text", limits=LIMITS)

    assert (found.text, pid(pool)) == ("words", before)


async def test_limits_that_cut_keep_the_pages_before_a_slow_one(pool: ReaderPool):
    limits = replace(LIMITS, page_s=0.5, cut=True)

    found = await pool.read(dense_pdf(4 * MEGABYTE, before="Intro"), kind="pdf", limits=limits)

    assert found.text == "Intro"


@pytest.mark.parametrize(
    ("kind", "content", "limits", "says"),
    cases(
        [
            ("html", lambda: deep_html(2_000_000), BRIEF, "took longer than 1 s|damaged"),
            ("pdf", lambda: dense_pdf(4 * MEGABYTE), BRIEF, "took longer than 1 s"),
            ("pdf", lambda: inflating_pdf(256 * MEGABYTE), LIMITS, "damaged|no text|memory"),
            ("pdf", lambda: pdf(*["page"] * 201), replace(LIMITS, pages_max=200), "201 pages and at most 200 are read"),
            ("docx", lambda: zip_bomb(200 * MEGABYTE), LIMITS, "larger than 52428800 bytes unpacked"),
            ("text", lambda: b"a" * 11_000, replace(LIMITS, text_max_chars=10_000), "more than 10000 characters"),
            ("text", lambda: bytes(range(256)) * 40, LIMITS, "binary data"),
        ]
    ),
)
async def test_a_hostile_document_is_refused_and_the_next_one_is_read(
    pool: ReaderPool, kind: str, content: Callable[[], bytes], limits: ReadLimits, says: str
):
    try:
        found = await pool.read(content(), kind=kind, limits=limits)
    except Unreadable as error:
        refused = str(error)
    else:
        refused = "no text" if not found.text.strip() else found.text
    after = await pool.read(b"words", kind="text", limits=LIMITS)

    assert any(part in refused for part in says.split("|")), refused
    assert after.text == "words"


@pytest.mark.parametrize(
    "kind", ["docx", "pptx", "spreadsheet", "opendocument", "epub", "rtf", "mail", "notebook", "html"]
)
async def test_every_format_can_be_read_within_the_limits(pool: ReaderPool, kind: str):
    try:
        found = await pool.read(b"nothing of that kind", kind=kind, limits=LIMITS)
    except Unreadable as error:
        assert "save it anew" in str(error) or "heck the file" in str(error)
    else:
        assert (kind, found.text) == ("html", "nothing of that kind")


async def test_a_document_beyond_the_memory_of_its_reader_is_refused():
    pool = ReaderPool(memory_max_bytes=96 * MEGABYTE)
    with pytest.raises(Unreadable, match="more memory than it may|ended over it"):
        await pool.read(b"a" * (30 * MEGABYTE), kind="text", limits=LIMITS)
    after = await pool.read(b"words", kind="text", limits=LIMITS)
    await pool.close()

    assert after.text == "words"


async def test_nul_bytes_and_broken_characters_leave_text_that_can_be_stored(pool: ReaderPool):
    found = await pool.read(b"caf\xc3\xa9\x00bar \xff\r\nnext", kind="text", limits=LIMITS)

    assert "\0" not in found.text and found.text.endswith("\nnext")
    found.text.encode()


async def test_a_line_of_ten_million_characters_is_read(pool: ReaderPool):
    found = await pool.read(b"x " * 5_000_000, kind="text", limits=LIMITS)

    assert len(found.text) == 10_000_000


async def test_a_cancelled_reading_ends_its_process(pool: ReaderPool):
    await pool.read(b"words", kind="text", limits=LIMITS)
    [idle] = pool._idle
    reading = asyncio.create_task(pool.read(SLOW, kind="html", limits=LIMITS))
    await until(lambda: pool._idle == [], why="the reader is busy")
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading

    assert idle.process.returncode is not None


async def test_a_reader_that_is_killed_harms_one_document(pool: ReaderPool):
    await pool.read(b"one", kind="text", limits=LIMITS)
    pool._idle[0].process.kill()
    with pytest.raises(Unreadable, match="ended over it"):
        await pool.read(b"two", kind="text", limits=LIMITS)
    third = await pool.read(b"three", kind="text", limits=LIMITS)

    assert third.text == "three"


async def test_a_reader_has_no_environment_and_writes_no_file(pool: ReaderPool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WAYLINE_POSTGRES_DSN", "postgresql://secret")
    await pool.read(b"one", kind="text", limits=LIMITS)
    process = Path(f"/proc/{pid(pool)}")
    seen = await asyncio.to_thread((process / "environ").read_bytes)
    limits = await asyncio.to_thread((process / "limits").read_text)

    assert b"WAYLINE" not in seen
    assert any(line.split()[:5] == ["Max", "file", "size", "0", "0"] for line in limits.splitlines())


async def test_a_large_document_is_handed_over_without_copies_of_it(pool: ReaderPool):
    """What the whole of it would take is not allocated once more."""
    content = b"%PDF-1.4 " + bytes(16 * MEGABYTE)
    with pytest.raises(Unreadable):
        await pool.read(content[:100], kind="pdf", limits=LIMITS)
    tracemalloc.start()
    try:
        with pytest.raises(Unreadable):
            await pool.read(content, kind="pdf", limits=LIMITS)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 4 * MEGABYTE
