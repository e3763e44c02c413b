"""Text out of documents that others wrote: HTML, PDF, DOCX."""

from wayline.documents.characters import BYTE_ORDER_MARKS, characters, is_binary, without_controls, without_nuls
from wayline.documents.decode_docx import docx_text
from wayline.documents.decode_html import HtmlPage, html_page, html_text
from wayline.documents.decode_pdf import pdf_pages
from wayline.documents.errors import Unreadable

__all__ = [
    "BYTE_ORDER_MARKS",
    "HtmlPage",
    "Unreadable",
    "characters",
    "docx_text",
    "html_page",
    "html_text",
    "is_binary",
    "pdf_pages",
    "without_controls",
    "without_nuls",
]
