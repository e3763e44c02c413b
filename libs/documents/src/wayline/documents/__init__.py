"""Text out of documents that others wrote."""

from wayline.documents.characters import characters, is_binary, looks_like_text, without_controls, without_nuls
from wayline.documents.errors import Unreadable
from wayline.documents.language import language_of
from wayline.documents.readable import ReadableDocument, ReadLimits, TextPage

__all__ = [
    "ReadLimits",
    "ReadableDocument",
    "TextPage",
    "Unreadable",
    "characters",
    "is_binary",
    "language_of",
    "looks_like_text",
    "without_controls",
    "without_nuls",
]
