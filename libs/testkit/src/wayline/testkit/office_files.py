"""The smallest files of each kind that no model reads by itself, which say one sentence."""

from __future__ import annotations

import io
import json
import zipfile
from email.message import EmailMessage

_OFFICE = "http://schemas.openxmlformats.org"
_RELATED = f"{_OFFICE}/officeDocument/2006/relationships"
_ODF = "urn:oasis:names:tc:opendocument:xmlns"


def office_files(sentence: str) -> dict[str, bytes]:
    """Return a file of each kind by its name."""
    return {
        "report.docx": docx(sentence),
        "table.xlsx": xlsx(sentence),
        "slides.pptx": pptx(sentence),
        "letter.odt": odt(sentence),
        "book.epub": epub(sentence),
        "note.rtf": rb"{\rtf1\ansi " + sentence.encode("ascii") + b"}",
        "mail.eml": eml(sentence),
        "work.ipynb": json.dumps({"cells": [{"cell_type": "markdown", "source": sentence}]}).encode(),
    }


def docx(sentence: str) -> bytes:
    """Return a document of Word."""
    named = f'xmlns:w="{_OFFICE}/wordprocessingml/2006/main"'
    body = f"<w:p><w:r><w:t>{sentence}</w:t></w:r></w:p>"
    return _zipped({"word/document.xml": f"<w:document {named}><w:body>{body}</w:body></w:document>"})


def xlsx(sentence: str) -> bytes:
    """Return a workbook whose sheet `Stock` has one cell."""
    main = f"{_OFFICE}/spreadsheetml/2006/main"
    row = f'<row r="1"><c r="A1" t="inlineStr"><is><t>{sentence}</t></is></c></row>'
    sheets = '<sheets><sheet name="Stock" sheetId="1" r:id="r1"/></sheets>'
    return _zipped(
        {
            "_rels/.rels": _relation("officeDocument", "xl/workbook.xml"),
            "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{_RELATED}">{sheets}</workbook>',
            "xl/_rels/workbook.xml.rels": _relation("worksheet", "worksheets/sheet1.xml"),
            "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{row}</sheetData></worksheet>',
        }
    )


def pptx(sentence: str) -> bytes:
    """Return a presentation of one slide."""
    named = f'xmlns:a="{_OFFICE}/drawingml/2006/main" xmlns:p="{_OFFICE}/presentationml/2006/main"'
    shown = f'<p:sldIdLst><p:sldId xmlns:r="{_RELATED}" r:id="r1"/></p:sldIdLst>'
    shape = f"<p:sp><p:txBody><a:p><a:r><a:t>{sentence}</a:t></a:r></a:p></p:txBody></p:sp>"
    return _zipped(
        {
            "ppt/presentation.xml": f"<p:presentation {named}>{shown}</p:presentation>",
            "ppt/_rels/presentation.xml.rels": _relation("slide", "slides/slide1.xml"),
            "ppt/slides/slide1.xml": f"<p:sld {named}>{shape}</p:sld>",
        }
    )


def odt(sentence: str) -> bytes:
    """Return a text of OpenDocument."""
    named = " ".join(f'xmlns:{name}="{_ODF}:{name}:1.0"' for name in ("office", "text"))
    body = f"<office:body><office:text><text:p>{sentence}</text:p></office:text></office:body>"
    content = f"<office:document-content {named}>{body}</office:document-content>"
    return _zipped({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content})


def epub(sentence: str) -> bytes:
    """Return a book of one chapter."""
    manifest = '<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/>'
    package = f'<package><manifest>{manifest}</manifest><spine><itemref idref="a"/></spine></package>'
    return _zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfile full-path="content.opf"/></container>',
            "content.opf": package,
            "a.xhtml": f"<html><body><p>{sentence}</p></body></html>",
        }
    )


def eml(sentence: str) -> bytes:
    """Return a mail with an attachment of bytes that are no text."""
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "ada@example.org", "bob@example.org", "News"
    message.set_content(sentence)
    message.add_attachment(bytes(range(256)), maintype="application", subtype="pdf", filename="bill.pdf")
    return message.as_bytes()


def _relation(kind: str, target: str) -> str:
    row = f'<Relationship Id="r1" Type="{_RELATED}/{kind}" Target="{target}"/>'
    return f'<Relationships xmlns="{_OFFICE}/package/2006/relationships">{row}</Relationships>'


def _zipped(parts: dict[str, str]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return file.getvalue()
