"""What was filled into a PDF's form is read, and what its notes show."""

from __future__ import annotations

import pytest

from wayline.documents.formats.pdf import pdf_pages
from wayline.documents.readable import ReadLimits
from wayline.testkit.media import written_pdf


def form(*annotations: str, further: str = "<< >>") -> bytes:
    """Make a page with a line of text and these annotations; `further` is object 6."""
    shown = b"BT /F1 12 Tf 50 700 Td (Order form) Tj ET"
    annots = " ".join(annotations)
    page = "/Parent 2 0 R /MediaBox [0 0 600 800] /Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R"
    return written_pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            f"<< /Type /Page {page} /Annots [{annots}] >>".encode(),
            b"<< /Length %d >>\nstream\n%b\nendstream" % (len(shown), shown),
            further.encode(),
        ]
    )


def read(*annotations: str, further: str = "<< >>") -> list[str]:
    [page] = pdf_pages(form(*annotations, further=further), ReadLimits())
    first, *lines = page.split("\n")
    assert first == "Order form"
    return lines


@pytest.mark.parametrize(
    ("annotation", "line"),
    [
        ("/Widget /FT /Tx /T (name) /V (Ada Lovelace)", "name: Ada Lovelace"),
        ("/Widget /FT /Tx /T (a1) /TU (Your name) /V (Ada)", "Your name: Ada"),
        ("/Widget /FT /Ch /T (country) /V [(Norway) (Chad)]", "country: Norway, Chad"),
        ("/Widget /FT /Btn /T (agree) /V /Yes /AS /Yes", "agree: Yes"),
        ("/Widget /T (street) /Parent 6 0 R /V (Main 1)", "address.street: Main 1"),
        ("/FreeText /Contents (Paid on Monday)", "Paid on Monday"),
    ],
)
def test_what_was_filled_in_is_read_with_its_label(annotation: str, line: str):
    assert read(f"<< /Subtype {annotation} >>", further="<< /T (address) /FT /Tx >>") == [line]


@pytest.mark.parametrize(
    "annotation",
    [
        "/Widget /FT /Tx /T (empty) /V ( )",
        "/Widget /FT /Tx /T (secret) /Ff 8192 /V (hunter2)",
        "/Widget /FT /Btn /T (agree) /V /Off /AS /Off",
        "/Widget /FT /Btn /T (send) /Ff 65536 /V /Pressed",
        "/Text /Contents (A note that is folded)",
        "/Link",
    ],
)
def test_what_says_nothing_adds_no_line(annotation: str):
    assert read(f"<< /Subtype {annotation} >>") == []


@pytest.mark.parametrize("broken", ["7", "99 0 R", "<< /Subtype /Widget /FT /Tx /V 6 0 R /Parent 6 0 R >>"])
def test_a_broken_form_leaves_the_page_readable(broken: str):
    assert "Order form" in pdf_pages(form(broken, further="<< /Parent 6 0 R /T (circle) >>"), ReadLimits())[0]
