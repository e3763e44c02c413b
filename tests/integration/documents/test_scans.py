"""Scanned pages are read by a program of the operator's, within the bounds of the process that reads documents."""

from __future__ import annotations

import io
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from wayline.documents import ReadLimits, Unreadable
from wayline.documents.reader_pool import ReaderPool

PROGRAM = """#!/bin/sh
[ "$*" = "stdin stdout -l eng+deu" ] || exit 1
head -c 2 | tr 'PG' 'pg'
echo ' tortoise' $(wc -c) $(env | cut -d= -f1 | sort | tr '\\n' ' ')
"""


def scan(*pictures: bytes, width: int, height: int, colours: str = "/DeviceGray") -> bytes:
    """A PDF of pages that hold a picture each and no text."""
    from pypdf import PdfWriter
    from pypdf.generic import DictionaryObject, NameObject, NumberObject, StreamObject

    writer = PdfWriter()
    for dots in pictures:
        page = writer.add_blank_page(width=600, height=800)
        picture = StreamObject()
        picture._data = dots
        picture[NameObject("/Subtype")] = NameObject("/Image")
        picture[NameObject("/Width")] = NumberObject(width)
        picture[NameObject("/Height")] = NumberObject(height)
        picture[NameObject("/BitsPerComponent")] = NumberObject(8)
        picture[NameObject("/ColorSpace")] = NameObject(colours)
        named = DictionaryObject({NameObject("/P"): writer._add_object(picture.flate_encode())})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/XObject"): named})
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


@pytest.fixture
async def pool() -> AsyncIterator[ReaderPool]:
    pool = ReaderPool()
    yield pool
    await pool.close()


@pytest.fixture
def program(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A program in the place of tesseract: the text of a shell script, where the test gives one."""
    path = tmp_path / "tesseract"
    path.write_text(getattr(request, "param", PROGRAM))
    path.chmod(0o755)
    return path


async def test_each_page_without_text_is_read_by_the_program(pool: ReaderPool, program: Path):
    content = scan(bytes(64 * 40), bytes(64 * 40), width=64, height=40)
    limits = ReadLimits(ocr_program=str(program), ocr_languages="eng+deu")

    read = await pool.read(content, kind="pdf", limits=limits)
    without = await pool.read(content, kind="pdf", limits=ReadLimits())

    assert [page.number for page in read.pages if page.text] == [1, 2]
    assert all(page.text.startswith("p5 tortoise 2571") and "WAYLINE" not in page.text for page in read.pages)
    assert not any(page.text for page in without.pages)


@pytest.mark.parametrize("program", ["#!/bin/sh\nexec sleep 600\n"], indirect=True)
async def test_a_program_that_hangs_is_ended_with_its_page(pool: ReaderPool, program: Path):
    limits = ReadLimits(page_s=0.5, ocr_program=str(program), ocr_languages="eng")

    with pytest.raises(Unreadable, match="page 1 of the PDF took longer than 0.5 s"):
        await pool.read(scan(bytes(64 * 40), width=64, height=40), kind="pdf", limits=limits)


@pytest.mark.parametrize("program", ["#!/bin/sh\necho tortoise\nexit 1\n"], indirect=True)
async def test_a_program_that_fails_leaves_the_page_without_text(pool: ReaderPool, program: Path):
    limits = ReadLimits(ocr_program=str(program), ocr_languages="eng")

    read = await pool.read(scan(bytes(64 * 40), width=64, height=40), kind="pdf", limits=limits)

    assert not any(page.text for page in read.pages) and read.page_count == 1


@pytest.mark.skipif(shutil.which("tesseract") is None, reason="tesseract is not installed")
async def test_tesseract_reads_a_scanned_word(pool: ReaderPool):
    rows = [[int(dot) for dot in row] for row in LETTERS.split()]
    scale, margin = 12, 60
    width, height = len(rows[0]) * scale + 2 * margin, len(rows) * scale + 2 * margin
    dots = bytearray(b"\xff" * (width * height))
    for y, row in enumerate(rows):
        for x, ink in enumerate(row):
            for line in range(scale if ink else 0):
                start = (margin + y * scale + line) * width + margin + x * scale
                dots[start : start + scale] = bytes(scale)
    limits = ReadLimits(ocr_program=str(shutil.which("tesseract")), ocr_languages="eng")

    read = await pool.read(scan(bytes(dots), width=width, height=height), kind="pdf", limits=limits)

    assert "HELLO" in read.text


LETTERS = """
1000100111110010000001000000011100
1000100100000010000001000000100010
1000100100000010000001000000100010
1111100111100010000001000000100010
1000100100000010000001000000100010
1000100100000010000001000000100010
1000100111110011111001111100011100
"""
