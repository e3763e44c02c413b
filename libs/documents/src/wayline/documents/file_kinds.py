"""Tell what kind of file bytes are: by what their sender says, by their name, by what they hold."""

from __future__ import annotations

import io
import re
import zipfile

_OFFICE = "application/vnd.openxmlformats-officedocument."
DOCX = f"{_OFFICE}wordprocessingml.document"
PPTX = f"{_OFFICE}presentationml.presentation"
XLSX = f"{_OFFICE}spreadsheetml.sheet"
_OPEN = "application/vnd.oasis.opendocument."
PDF = "application/pdf"
EPUB = "application/epub+zip"
RTF = "application/rtf"
MAIL = "message/rfc822"

KINDS = {
    PDF: "pdf",
    DOCX: "docx",
    "application/vnd.ms-word.document.macroenabled.12": "docx",
    PPTX: "pptx",
    "application/vnd.ms-powerpoint.presentation.macroenabled.12": "pptx",
    XLSX: "spreadsheet",
    "application/vnd.ms-excel.sheet.macroenabled.12": "spreadsheet",
    "application/vnd.ms-excel.sheet.binary.macroenabled.12": "spreadsheet",
    "application/vnd.ms-excel": "spreadsheet",
    f"{_OPEN}spreadsheet": "spreadsheet",
    f"{_OPEN}text": "opendocument",
    f"{_OPEN}presentation": "opendocument",
    EPUB: "epub",
    RTF: "rtf",
    "text/rtf": "rtf",
    MAIL: "mail",
    "application/x-ipynb+json": "notebook",
    "application/x-subrip": "subtitles",
    "text/srt": "subtitles",
    "text/vtt": "subtitles",
    "application/json": "json",
    "application/ld+json": "json",
    "application/geo+json": "json",
    "text/html": "html",
    "application/xhtml+xml": "html",
}
"""How the media types are read that have to be parsed."""
BY_SUFFIX = {
    ".pdf": PDF,
    ".docx": DOCX,
    ".docm": DOCX,
    ".pptx": PPTX,
    ".pptm": PPTX,
    ".xlsx": XLSX,
    ".xlsm": XLSX,
    ".xlsb": "application/vnd.ms-excel.sheet.binary.macroenabled.12",
    ".xls": "application/vnd.ms-excel",
    ".ods": f"{_OPEN}spreadsheet",
    ".odt": f"{_OPEN}text",
    ".odp": f"{_OPEN}presentation",
    ".epub": EPUB,
    ".rtf": RTF,
    ".eml": MAIL,
    ".ipynb": "application/x-ipynb+json",
    ".srt": "application/x-subrip",
    ".vtt": "text/vtt",
    ".json": "application/json",
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "application/xhtml+xml",
}
CODE_SUFFIXES = frozenset(
    ".bash .c .cc .clj .cpp .cs .cxx .dart .ex .exs .go .gradle .graphql .groovy .h .hpp .hs .java .jl .js .jsx .kt "
    ".lua .m .mjs .ml .php .pl .proto .ps1 .py .pyi .r .rb .rs .scala .sh .sql .swift .tf .toml .ts .tsx .vue .xml "
    ".yaml .yml .zig".split()
)
"""Of text that is indented by its structure, which is all that is used of it."""
OLD_OFFICE = "application/x-ole-storage"
"""Word, PowerPoint and Outlook before 2007: nothing here reads them."""

_OLE = bytes.fromhex("d0cf11e0a1b11ae1")
_WORKBOOK = "Workbook".encode("utf-16-le")
_MIMETYPE_MAX = 100
_PARTS = (("word/document", DOCX), ("ppt/presentation", PPTX), ("xl/workbook.", XLSX))
_RTF = re.compile(rb"\s{0,10}\{\\rtf")


def suffix(name: str) -> str:
    """Return the ending of a file's name, with its dot; empty where it has none."""
    _, dot, found = name.rpartition(".")
    return f"{dot}{found}".lower()


def type_by_content(content: bytes) -> str | None:
    """Return the media type of bytes that have a form of their own; None: they may be text, or anything else."""
    if content.startswith(b"%PDF-"):
        return PDF
    if content.startswith(b"PK\x03\x04"):
        return _zipped(content)
    if content.startswith(_OLE):
        return "application/vnd.ms-excel" if _WORKBOOK in content else OLD_OFFICE
    if content.startswith((b"WEBVTT", b"\xef\xbb\xbfWEBVTT")):
        return "text/vtt"
    return RTF if _RTF.match(content) else None


def _zipped(content: bytes) -> str | None:
    """Return what kind of document a zip file holds. Only its directory is read, and a part of a few bytes."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = [name.replace("\\", "/").lstrip("/") for name in archive.namelist()]
            if "mimetype" in names:
                with archive.open("mimetype") as part:
                    stated = part.read(_MIMETYPE_MAX).decode("ascii", "replace").strip()
                if stated in KINDS:
                    return stated
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError, KeyError):
        return None
    return next((media_type for start, media_type in _PARTS if any(name.startswith(start) for name in names)), None)
