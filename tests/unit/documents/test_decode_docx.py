"""DOCX files become Markdown; damaged and hostile ones an error."""

from __future__ import annotations

import io
import zipfile

import pytest

from wayline.documents import Unreadable
from wayline.documents.formats.docx import PART_MAX_BYTES, docx_text
from wayline.documents.formats.html import html_page

NAMESPACE = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
BODY = """
<w:p><w:pPr><w:pStyle w:val="Heading2"/></w:pPr><w:r><w:t>Tides</w:t></w:r></w:p>
<w:p><w:r><w:t xml:space="preserve">They rise </w:t></w:r><w:r><w:t>twice</w:t><w:br/><w:t>a day.</w:t></w:r></w:p>
<w:p/>
<w:p><w:pPr><w:numPr/></w:pPr><w:r><w:t>spring</w:t></w:r></w:p>
<w:tbl><w:tr><w:tc><w:p><w:r><w:t>Place</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>Metres</w:t></w:r></w:p></w:tc></w:tr>
<w:tr><w:tc><w:p><w:r><w:t>Brest</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>5</w:t></w:r></w:p></w:tc></w:tr></w:tbl>
<w:sdt><w:sdtContent><w:p><w:r><w:t>The end.</w:t></w:r></w:p></w:sdtContent></w:sdt>
"""


def docx(xml: str | bytes, *, name: str = "word/document.xml") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, xml)
    return file.getvalue()


def document(body: str) -> str:
    return f'<?xml version="1.0"?><w:document {NAMESPACE}><w:body>{body}</w:body></w:document>'


def test_headings_lists_and_tables_are_kept():
    assert docx_text(docx(document(BODY))) == (
        "## Tides\n\nThey rise twice\na day.\n\n- spring\n\n| Place | Metres |\n|---|---|\n| Brest | 5 |\n\nThe end."
    )


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04nonsense",
        docx("<not xml"),
        docx(document(""), name="xl/workbook.xml"),
        docx(b"\0" * (PART_MAX_BYTES + 1)),
    ],
    ids=["empty", "no zip", "no xml", "a spreadsheet", "a bomb"],
)
def test_what_is_no_docx_is_unreadable(content: bytes):
    with pytest.raises(Unreadable):
        docx_text(content)


def test_an_entity_is_not_expanded_nor_a_file_read():
    bomb = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(9))
    declared = f'<!DOCTYPE x [<!ENTITY e0 "ha"><!ENTITY file SYSTEM "file:///etc/passwd">{bomb}]>'
    text = document("<w:p><w:r><w:t>a&e9;b&file;c</w:t></w:r></w:p>").replace(
        "<w:document", f"{declared}<w:document", 1
    )

    try:
        found = docx_text(docx(text))
    except Unreadable:
        found = ""

    assert "root:" not in found
    assert len(found) < 100


def test_a_table_inside_a_cell_is_text_of_that_cell():
    inner = "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>low</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
    wrapped = f"<w:sdt><w:sdtContent><w:tc><w:p><w:r><w:t>Tide</w:t></w:r></w:p>{inner}</w:tc></w:sdtContent></w:sdt>"
    rows = f"<w:sdt><w:sdtContent><w:tr>{wrapped}<w:tc><w:p/></w:tc></w:tr></w:sdtContent></w:sdt>"

    assert docx_text(docx(document(f"<w:tbl>{rows}</w:tbl>"))) == "| Tide low |  |"


def test_text_in_deeply_nested_tables_is_returned_once():
    depth = 40
    nested = (
        "<w:tbl><w:tr><w:tc><w:p/>" * depth + "<w:p><w:r><w:t>x</w:t></w:r></w:p>" + "</w:tc></w:tr></w:tbl>" * depth
    )

    assert docx_text(docx(document(nested))) == "| x |"


def test_a_large_document_is_cut_where_it_may_be():
    content = docx(document("<w:p><w:r><w:t>word</w:t></w:r></w:p>" * 1_000))

    with pytest.raises(Unreadable, match="larger than 1000 bytes"):
        docx_text(content, unpacked_max_bytes=1_000)
    text = docx_text(content, unpacked_max_bytes=1_000, cut=True)

    assert set(text.split()) == {"word"}
    assert 10 < len(text.split()) < 1_000


def test_a_page_is_its_article_with_links_and_title():
    menu = "<nav><a href='/home'>Home</a><a href='/about'>About</a></nav>"
    sentences = 'The <a href="/moon">moon</a> pulls the sea. ' * 10
    article = f"<article><h1>Tides</h1><p>{sentences}</p></article>"
    html = f"<html><head><title>Tides &amp; more</title></head><body>{menu}{article}</body></html>"

    page = html_page(html.encode(), url="https://sea.example/tides")

    assert page.title == "Tides & more"
    assert page.markdown.startswith("# Tides")
    assert "[moon](https://sea.example/moon)" in page.markdown
    assert "About" not in page.markdown


def test_the_encoding_that_the_server_names_is_used():
    html = "<html><body><p>Grüße aus Köln, wo der Rhein fließt.</p></body></html>".encode("latin-1")

    assert "Grüße" in html_page(html, charset="iso-8859-1").markdown
    assert "Grüße" in html_page(html, charset="no-such-thing").markdown
