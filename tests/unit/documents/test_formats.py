"""Each format becomes text that can be searched and quoted; what is damaged or too large is refused with advice."""

from __future__ import annotations

import io
import json
import zipfile
from email.message import EmailMessage

import pytest

from wayline.documents import ReadableDocument, ReadLimits, Unreadable
from wayline.documents.decode_file import FileToRead, decode_file

LIMITS = ReadLimits()
ZIPPED = ("docx", "pptx", "opendocument", "spreadsheet", "epub")
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
P = f'{A} xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
RELATED = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
ODF = "urn:oasis:names:tc:opendocument:xmlns"
OPEN = " ".join(f'xmlns:{name}="{ODF}:{name}:1.0"' for name in ("office", "text", "table"))


def zipped(parts: dict[str, str]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return file.getvalue()


def read(content: bytes, kind: str, limits: ReadLimits = LIMITS) -> ReadableDocument:
    return decode_file(FileToRead(content), kind, limits)


def relations(kind: str = "", **targets: str) -> str:
    typed = f'Type="{RELATED}/{kind}"'
    rows = "".join(f'<Relationship Id="{name}" {typed} Target="{target}"/>' for name, target in targets.items())
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{rows}</Relationships>'


def word(text: str, style: str = "") -> str:
    styled = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{styled}<w:r><w:t>{text}</w:t></w:r></w:p>"


def test_headings_of_a_document_go_by_what_its_styles_mean():
    styles = (
        f'<w:styles {W}><w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>'
        '<w:style w:styleId="Abschnitt"><w:basedOn w:val="berschrift2"/></w:style>'
        '<w:style w:styleId="berschrift2"><w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style>'
        '<w:style w:styleId="Liste"><w:pPr><w:numPr/></w:pPr></w:style></w:styles>'
    )
    body = word("Gezeiten", "berschrift1") + word("Der Mond", "Abschnitt") + word("Ebbe", "Liste")
    document = f"<w:document {W}><w:body>{body}</w:body></w:document>"

    found = read(zipped({"word/document.xml": document, "word/styles.xml": styles}), "docx")

    assert found.text == "# Gezeiten\n\n## Der Mond\n\n- Ebbe"


def test_notes_comments_margins_and_text_boxes_come_once():
    mc = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    box = f"<w:txbxContent>{word('In a box')}</w:txbxContent>"
    choice = f"<mc:AlternateContent><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback></mc:AlternateContent>"
    noted = '<w:r><w:footnoteReference w:id="2"/></w:r><w:r><w:commentReference w:id="0"/></w:r>'
    gone = "<w:del><w:r><w:t>gone</w:t></w:r></w:del>"
    body = f"<w:p><w:r><w:t>High water</w:t></w:r>{noted}<w:r>{choice}</w:r>{gone}</w:p>"
    footnote = f'<w:footnote w:id="2">{word("At Brest.")}</w:footnote>'
    found = read(
        zipped(
            {
                "word/document.xml": f"<w:document {W} {mc}><w:body>{body}</w:body></w:document>",
                "word/footnotes.xml": f"<w:footnotes {W}>{footnote}</w:footnotes>",
                "word/comments.xml": (
                    f'<w:comments {W}><w:comment w:id="0" w:author="Ada">{word("Check it")}</w:comment></w:comments>'
                ),
                "word/header1.xml": f"<w:hdr {W}>{word('Confidential')}</w:hdr>",
                "word/header2.xml": f"<w:hdr {W}>{word('Confidential')}</w:hdr>",
            }
        ),
        "docx",
    )

    assert found.text == ("High water[^1][^2]\n\nIn a box\n\n[^1]: At Brest.\n\n[^2]: Ada: Check it\n\nConfidential")


def test_slides_come_in_their_order_with_titles_tables_and_notes():
    def shape(text: str, place: str = "") -> str:
        kind = f'<p:nvSpPr><p:nvPr><p:ph type="{place}"/></p:nvPr></p:nvSpPr>' if place else ""
        return f"<p:sp>{kind}<p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"

    def cell(text: str) -> str:
        return f"<a:tc><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>"

    table = f"<a:tbl><a:tr>{cell('Place')}{cell('Metres')}</a:tr><a:tr>{cell('Brest')}{cell('5')}</a:tr></a:tbl>"
    shown = f'<p:sldIdLst><p:sldId xmlns:r="{RELATED}" r:id="r2"/><p:sldId xmlns:r="{RELATED}" r:id="r1"/></p:sldIdLst>'
    found = read(
        zipped(
            {
                "ppt/presentation.xml": f"<p:presentation {P}>{shown}</p:presentation>",
                "ppt/_rels/presentation.xml.rels": relations(r1="slides/slide1.xml", r2="slides/slide2.xml"),
                "ppt/slides/slide1.xml": f"<p:sld {P}>{shape('Second')}{shape('7', 'sldNum')}</p:sld>",
                "ppt/slides/slide2.xml": f"<p:sld {P}>{shape('Tides', 'title')}{table}</p:sld>",
                "ppt/slides/_rels/slide2.xml.rels": relations(n="../notesSlides/notesSlide1.xml"),
                "ppt/notesSlides/notesSlide1.xml": f"<p:notes {P}>{shape('Speak slowly', 'body')}</p:notes>",
            }
        ),
        "pptx",
    )

    assert [(page.number, page.text) for page in found.pages] == [
        (1, "# Tides\n\n| Place | Metres |\n|---|---|\n| Brest | 5 |\n\nNotes: Speak slowly"),
        (2, "Second"),
    ]


OFFICE = "http://schemas.openxmlformats.org"
CHARTED = f'{A} xmlns:c="{OFFICE}/drawingml/2006/chart" xmlns:d="{OFFICE}/drawingml/2006/diagram" xmlns:r="{RELATED}"'


def drawn(folder: str) -> dict[str, str]:
    """Return the parts of a chart and of a diagram, which a part of the file names `c` and `d`."""

    def cached(kind: str, *values: str) -> str:
        points = "".join(f'<c:pt idx="{at}"><c:v>{value}</c:v></c:pt>' for at, value in enumerate(values))
        return f"<c:{kind}Ref><c:{kind}Cache>{points}</c:{kind}Cache></c:{kind}Ref>"

    def series(name: str, *values: str, years: tuple[str, ...] = ("2023", "2024")) -> str:
        named, of_years = f"<c:tx>{cached('str', name)}</c:tx>", f"<c:cat>{cached('num', *years)}</c:cat>"
        return f"<c:ser>{named}{of_years}<c:val>{cached('num', *values)}</c:val></c:ser>"

    title = "<c:title><c:tx><c:rich><a:p><a:r><a:t>Tides</a:t></a:r></a:p></c:rich></c:tx></c:title>"
    other = series("Oslo", "1", years=("1999",))
    bars = f"<c:plotArea><c:barChart>{series('Brest', '5', '6')}{series('Hull', '4')}{other}</c:barChart></c:plotArea>"
    point = "<d:pt><d:t><a:p><a:r><a:t>Moon</a:t></a:r></a:p></d:t></d:pt>"
    return {
        f"{folder}/charts/chart1.xml": f"<c:chartSpace {CHARTED}><c:chart>{title}{bars}</c:chart></c:chartSpace>",
        f"{folder}/diagrams/data1.xml": f"<d:dataModel {CHARTED}><d:ptLst>{point}<d:pt/></d:ptLst></d:dataModel>",
    }


DRAWN = '<c:chart r:id="c"/><d:relIds r:dm="d"/><c:chart r:id="gone"/>'
SAID = (
    "Tides\n\n|  | Brest | Hull |\n|---|---|---|\n| 2023 | 5 | 4 |\n| 2024 | 6 |  |\n\n"
    "|  | Oslo |\n| 1999 | 1 |\n\n- Moon"
)


def test_charts_and_diagrams_of_slides_are_read_and_no_shape_twice():
    shape = "<p:sp><p:txBody><a:p><a:r><a:t>Once</a:t></a:r></a:p></p:txBody></p:sp>"
    both = f"<m:AlternateContent><m:Choice>{shape}</m:Choice><m:Fallback>{shape}</m:Fallback></m:AlternateContent>"
    names = f'{P} {CHARTED.replace(A, "")} xmlns:m="{OFFICE}/markup-compatibility/2006"'
    found = read(
        zipped(
            {
                "ppt/presentation.xml": f'<p:presentation {names}><p:sldId r:id="r1"/></p:presentation>',
                "ppt/_rels/presentation.xml.rels": relations(r1="slides/slide1.xml"),
                "ppt/slides/slide1.xml": f"<p:sld {names}>{both}{DRAWN}</p:sld>",
                "ppt/slides/_rels/slide1.xml.rels": relations(c="../charts/chart1.xml", d="../diagrams/data1.xml"),
                **drawn("ppt"),
            }
        ),
        "pptx",
    )

    assert found.text == f"Once\n\n{SAID}"


def test_charts_and_diagrams_of_a_document_follow_their_paragraph():
    shown = f"<w:p><w:r><w:t>See</w:t></w:r><w:r><w:drawing>{DRAWN}</w:drawing></w:r></w:p>"
    found = read(
        zipped(
            {
                "word/document.xml": f"<w:document {W} {CHARTED}><w:body>{shown}{word('After')}</w:body></w:document>",
                "word/_rels/document.xml.rels": relations(c="charts/chart1.xml", d="diagrams/data1.xml"),
                **drawn("word"),
            }
        ),
        "docx",
    )

    assert found.text == f"See\n\n{SAID}\n\nAfter"


def test_each_sheet_is_a_table_under_its_name():
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"

    def cell(at: str, text: str) -> str:
        return f'<c r="{at}" t="inlineStr"><is><t>{text}</t></is></c>'

    rows = (
        f'<row r="1">{cell("A1", "Lamp")}{cell("B1", "Price")}</row>'
        f'<row r="2">{cell("A2", "a|b")}<c r="B2"><v>3</v></c></row>'
        f'<row r="3">{cell("A3", "sum")}<c r="B3"><v>0.30000000000000004</v></c></row>'
    )
    sheets = '<sheets><sheet name="Stock" sheetId="1" r:id="r1"/></sheets>'
    found = read(
        zipped(
            {
                "_rels/.rels": relations("officeDocument", r="xl/workbook.xml"),
                "xl/workbook.xml": (f'<workbook xmlns="{main}" xmlns:r="{RELATED}">{sheets}</workbook>'),
                "xl/_rels/workbook.xml.rels": relations("worksheet", r1="worksheets/sheet1.xml"),
                "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>',
            }
        ),
        "spreadsheet",
    )

    assert [(page.title, page.text) for page in found.pages] == [
        ("Stock", "| Lamp | Price |\n|---|---|\n| a\\|b | 3 |\n| sum | 0.3 |")
    ]


def test_an_open_document_keeps_headings_lists_tables_and_notes():
    note = "<text:note><text:note-body><text:p>At Brest.</text:p></text:note-body></text:note>"
    table = (
        "<table:table><table:table-row><table:table-cell><text:p>Place</text:p></table:table-cell>"
        "<table:table-cell><text:p>Metres</text:p></table:table-cell></table:table-row><table:table-row>"
        "<table:table-cell><text:p>Brest</text:p></table:table-cell><table:table-cell><text:p>5</text:p></table:table-cell>"
        "</table:table-row></table:table>"
    )
    body = (
        '<text:h text:outline-level="2">Tides</text:h>'
        f'<text:p>They<text:s text:c="2"/>rise{note} <text:span>twice</text:span>.</text:p>'
        f"<text:list><text:list-item><text:p>spring</text:p></text:list-item></text:list>{table}"
    )
    text = f"<office:body><office:text>{body}</office:text></office:body>"
    content = f"<office:document-content {OPEN}>{text}</office:document-content>"

    found = read(zipped({"content.xml": content}), "opendocument")

    assert found.text == (
        "## Tides\n\nThey  rise[^1] twice.\n\n- spring\n\n| Place | Metres |\n|---|---|\n| Brest | 5 |"
        "\n\n[^1]: At Brest."
    )


def test_the_chapters_of_a_book_come_in_its_reading_order():
    package = (
        '<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>Tides</dc:title></metadata><manifest>'
        '<item id="b" href="b%20c.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest>'
        '<spine><itemref idref="b"/><itemref idref="a"/></spine></package>'
    )
    file = io.BytesIO(zipped({"META-INF/x": "", "OEBPS/content.opf": package, "OEBPS/a.xhtml": "<p>The end.</p>"}))
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("META-INF/container.xml", '<container><rootfile full-path="OEBPS/content.opf"/></container>')
        archive.writestr("OEBPS/b c.xhtml", "<html><body><h2>One</h2><ul><li>ebb</li></ul></body></html>")

    found = read(file.getvalue(), "epub")

    assert (found.title, found.text) == ("Tides", "## One\n\n- ebb\n\nThe end.")


def test_an_email_tells_who_wrote_what_and_what_is_attached():
    inner = EmailMessage()
    inner["From"], inner["Subject"] = "bob@example.org", "Before"
    inner.set_content("The older words.")
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "Ada <ada@example.org>", "bob@example.org", "Grüße"
    message.set_content("Plain words.")
    message.add_alternative("<p>HTML words.</p>", subtype="html")
    message.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="bill.pdf")
    message.add_attachment(inner)

    found = read(message.as_bytes(), "mail")

    assert found.title == "Grüße"
    assert found.text.split("\n\n") == [
        "From: Ada <ada@example.org>  \nTo: bob@example.org  \nSubject: Grüße",
        "Plain words.",
        "From: bob@example.org  \nSubject: Before",
        "The older words.",
        "Attachments:\n- bill.pdf (application/pdf)",
    ]


def test_a_notebook_is_its_cells_with_what_they_printed():
    cells = [
        {"cell_type": "markdown", "source": ["# Tides\n", "of the sea"]},
        {"cell_type": "code", "source": "1 + 1", "outputs": [{"data": {"text/plain": ["2"], "image/png": "…"}}]},
    ]
    book = {"cells": cells, "metadata": {"language_info": {"name": "python"}}}

    found = read(json.dumps(book).encode(), "notebook")

    assert found.text == "# Tides\nof the sea\n\n```python\n1 + 1\n```\n\n```\n2\n```"


@pytest.mark.parametrize(
    "subtitles",
    [
        "1\n00:00:01,000 --> 00:00:02,000\n<i>Hello</i>\nthere.\n\n2\n00:01:05,500 --> 00:01:06,000\nBob: Goodbye.\n",
        "WEBVTT\n\n00:01.000 --> 00:02.000 align:start\nHello\nthere.\n\nz\n01:05.500 --> 01:06.000\n<v Bob>Goodbye.\n",
    ],
    ids=["srt", "vtt"],
)
def test_subtitles_become_what_is_said_and_when(subtitles: str):
    assert read(subtitles.encode(), "subtitles").text == "[00:00:01] Hello there.\n\n[00:01:05] Bob: Goodbye."


def test_json_on_one_long_line_is_laid_out():
    found = read(json.dumps({"tides": [{"place": "Brest", "note": "x" * 1_000}]}).encode(), "json")

    assert (found.pages[0].code, found.text.splitlines()[3]) == (True, '      "place": "Brest",')
    assert read(b'{"a": 1}', "json").text == '{"a": 1}'


def test_rtf_is_its_text():
    assert read(rb"{\rtf1\ansi Gr\'fc\'dfe {\b and} words.\par Next}", "rtf").text == "Grüße and words.\nNext"


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        *(
            (kind, b"no such thing")
            for kind in ("docx", "pptx", "opendocument", "spreadsheet", "epub", "rtf", "notebook")
        ),
        *((kind, zipped({"other": ""})) for kind in ("docx", "pptx", "opendocument", "spreadsheet", "epub")),
        ("mail", b"\nwithout a header"),
        ("notebook", b"[" * 100_000),
        ("pptx", zipped({"ppt/presentation.xml": "<not xml"})),
    ],
)
def test_what_is_damaged_is_refused_with_advice(kind: str, content: bytes):
    with pytest.raises(Unreadable, match=r"save it anew|Check the file|check the file"):
        read(content, kind)


def test_parts_of_a_file_may_hold_only_so_much_together():
    chapter = f"<p>{'word ' * 1_000}</p>"
    content = f"<office:document-content {OPEN}>{chapter}</office:document-content>"

    with pytest.raises(Unreadable, match="larger than 1000 bytes unpacked"):
        read(zipped({"content.xml": content}), "opendocument", ReadLimits(unpacked_max_bytes=1_000))
