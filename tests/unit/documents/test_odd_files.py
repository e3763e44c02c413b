"""Files as other programs are known to write them, beside what their formats say: no word of them is lost."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from wayline.documents import ReadLimits
from wayline.documents.decode_file import FileToRead, decode_file, storable
from wayline.documents.file_kinds import DOCX, type_by_content

WORDS = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
STRICT = "http://purl.oclc.org/ooxml"
RELATED = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
HELLO = "<w:p><w:r><w:t>Hello</w:t></w:r></w:p>"


def read(content: bytes | str, kind: str) -> str:
    return decode_file(FileToRead(content if isinstance(content, bytes) else content.encode()), kind, ReadLimits()).text


def docx(body: str = HELLO, *, main: str = "word/document.xml", names: str = WORDS) -> bytes:
    file = io.BytesIO()
    relation = f'<Relationship Id="r1" Type="{RELATED}/officeDocument" Target="{main}"/>'
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(main, f'<w:document xmlns:w="{names}"><w:body>{body}</w:body></w:document>')
        archive.writestr("_rels/.rels", f"<Relationships>{relation}</Relationships>")
    return file.getvalue()


@pytest.mark.parametrize("encoding", ["utf-32", "utf-16"])
def test_a_text_is_read_by_the_mark_it_begins_with(encoding: str):
    assert read("Grüße".encode(encoding), "text") == "Grüße"


@pytest.mark.parametrize("end", ["\r", "\r\n", "\r\r\n"])
def test_lines_end_alike_however_they_were_written(end: str):
    assert read(f"one{end}two", "text") == "one\ntwo"


def test_carriage_returns_without_end_are_each_looked_at_once():
    text = "\r" * 2_000_000

    assert storable(f"{text}a{text}\nb") == "\n" * 2_000_000 + "a\nb"


def test_json_that_is_nested_deep_does_not_grow_with_its_depth():
    flat = f"{'[' * 500}{'1,' * 5_000}1{']' * 500}"

    assert len(read(flat, "json")) < 50 * len(flat)


@pytest.mark.parametrize(
    "content",
    [
        docx(names=f"{STRICT}/wordprocessingml/main"),
        docx(main="word/document2.xml"),
        docx(main="word\\document.xml"),
        docx(main="/word/document.xml"),
    ],
    ids=["strict", "another name", "folders as in Windows", "from the root"],
)
def test_a_document_of_another_program_is_found_and_read(content: bytes):
    assert type_by_content(content) == DOCX
    assert read(content, "docx") == "Hello"


@pytest.mark.parametrize(
    "body",
    [
        f"<w:ins>{HELLO}</w:ins>",
        f"<w:customXml>{HELLO}</w:customXml>",
        f'<w:p><m:oMath xmlns:m="{MATH}"><m:r><m:t>Hello</m:t></m:r></m:oMath></w:p>',
    ],
    ids=["a paragraph that was added", "around a paragraph", "a formula"],
)
def test_words_in_odd_places_of_a_document_are_read(body: str):
    assert read(docx(body), "docx") == "Hello"


def mail(kind: str, *parts: str, boundary: str = "; boundary=x") -> str:
    joined = "".join(f"--x\nContent-Type: {part}\n" for part in parts)
    return f"From: a@b\nMIME-Version: 1.0\nContent-Type: multipart/{kind}{boundary}\n\n{joined}--x--\n"


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (mail("alternative", "text/plain\n\n \n", "text/html\n\n<p>Hello</p>\n"), ["Hello"]),
        (mail("alternative", "text/calendar\n\nSUMMARY:Hello\n"), ["SUMMARY:Hello"]),
        (mail("mixed", "text/plain\n\nHello\n", "text/plain\n\nagain\n"), ["Hello", "again"]),
        (mail("mixed", boundary="").partition("--x")[0] + "Hello", ["Hello"]),
        (
            mail("mixed", "message/rfc822\nContent-Transfer-Encoding: base64\n\nRnJvbTogYkBiCgpIZWxsbw==\n"),
            ["From: b@b", "Hello"],
        ),
    ],
    ids=["a blank plain text", "neither plain nor a page", "in parts", "no boundary", "a message within, encoded"],
)
def test_what_an_email_says_is_found_wherever_it_stands(message: str, words: list[str]):
    assert read(message, "mail").split() == ["From:", "a@b", *" ".join(words).split()]


def test_an_old_notebook_and_errors_of_cells_are_read():
    error = {"output_type": "pyerr", "ename": "ValueError", "evalue": "no tide"}
    cells = [
        {"cell_type": "heading", "level": 2.0, "source": "Tides"},
        {"cell_type": "code", "input": ["1 / 0"], "outputs": [error]},
        {"cell_type": "code", "input": "2", "outputs": 7},
    ]
    found = read(json.dumps({"nbformat": 3, "worksheets": [{"cells": cells}]}), "notebook")

    assert found == "## Tides\n\n```\n1 / 0\n```\n\n```\nValueError: no tide\n```\n\n```\n2\n```"


ROLLING = "00:01.000 --> 00:02.000\nHello<00:01.300><c> you</c>\n\n00:02.000 --> 00:03.000\nHello you\nthere\n"


@pytest.mark.parametrize(
    "subtitles",
    [
        f"WEBVTT\n\n{ROLLING}",
        "WEBVTT\n\n00:01.000 --> 00:02.000\nHello&nbsp;you there",
        "1\n00:00:01,000 --> 00:00:02,000\nHello you\n2\n00:00:03,000 --> 00:00:04,000\nthere\n",
        "1\n00:00:01 --> 00:00:02\n{\\an8}Hello you there\n",
    ],
    ids=["rolling, each word with its time", "entities", "no blank lines", "no milliseconds"],
)
def test_subtitles_of_any_program_say_each_word_once(subtitles: str):
    assert " ".join(read(subtitles, "subtitles").split()) == "[00:00:01] Hello you there"


def test_json_that_is_laid_out_keeps_what_it_says():
    long = "x" * 1_000
    text = f'{{"v": 1.10, "v": 1e400, "id": 123456789012345678901234, "a": [], "n": "\\u00fc \\"", "pad": "{long}"}}'

    assert read(text, "json").splitlines()[:6] == [
        "{",
        '  "v": 1.10,',
        '  "v": 1e400,',
        '  "id": 123456789012345678901234,',
        '  "a": [],',
        '  "n": "ü \\"",',
    ]


def test_white_space_before_rtf_does_no_harm():
    assert read("\n {\\rtf1 Hello}", "rtf") == "Hello"
