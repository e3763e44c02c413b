"""Text out of documents that others wrote: HTML, PDF, DOCX."""

from wayline.documents.characters import BYTE_ORDER_MARKS, characters, is_binary, without_controls, without_nuls
from wayline.documents.errors import Unreadable
from wayline.documents.language import language_of
from wayline.documents.readable import ReadableDocument, ReadLimits, TextPage

__all__ = [
    "BYTE_ORDER_MARKS",
    "ReadLimits",
    "ReadableDocument",
    "TextPage",
    "Unreadable",
    "characters",
    "is_binary",
    "language_of",
    "without_controls",
    "without_nuls",
]
