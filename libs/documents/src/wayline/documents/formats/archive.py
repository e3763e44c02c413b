"""Read the parts of a zip file that others made, and the XML in them."""

from __future__ import annotations

import io
import posixpath
import zipfile
from typing import Any

from wayline.documents.errors import Unreadable

PARTS_MAX = 20_000
_STRICT, _USUAL = b"http://purl.oclc.org/ooxml/", b"http://schemas.openxmlformats.org/"
STRICT_NAMES = (
    *((_STRICT + name + b"/main", _USUAL + name + b"/2006/main") for name in (b"wordprocessingml", b"presentationml")),
    (_STRICT + b"drawingml/", _USUAL + b"drawingml/2006/"),
    (_STRICT + b"officeDocument/relationships", _USUAL + b"officeDocument/2006/relationships"),
    (_STRICT + b"officeDocument/math", _USUAL + b"officeDocument/2006/math"),
)
"""Of the strict form of Office files, and of the usual one."""
_BROKEN = (zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError, EOFError, OSError, ValueError)


class Archive:
    """A zip file whose parts may hold only so much together, whatever it claims of them."""

    def __init__(self, content: bytes, *, unpacked_max_bytes: int, cut: bool = False) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(content))
        except _BROKEN as error:
            raise _damaged(type(error).__name__) from error
        # Some programs part folders as Windows does, or begin names with a slash.
        self._names = {name.replace("\\", "/").lstrip("/"): name for name in self._zip.namelist()[:PARTS_MAX]}
        self._max = self._left = unpacked_max_bytes
        self._cut = cut
        self.is_cut = False

    def names(self, prefix: str = "") -> list[str]:
        """Return the names of its parts that begin so, in their order."""
        return sorted(name for name in self._names if name.startswith(prefix))

    def part(self, name: str) -> bytes:
        """Return a part. Raises Unreadable where there is none, or where the parts hold too much."""
        found = self.optional_part(name)
        if found is None:
            raise _damaged("a part of it is missing")
        return found

    def optional_part(self, name: str) -> bytes | None:
        """Return a part; None where there is none."""
        if name not in self._names:
            return None
        try:
            with self._zip.open(self._names[name]) as part:
                # Read with a limit: the size that a zip file states may be a lie.
                found = part.read(self._left + 1)
        except _BROKEN as error:
            raise _damaged(type(error).__name__) from error
        if len(found) > self._left:
            if not self._cut:
                raise Unreadable(f"The document is larger than {self._max} bytes unpacked: split it.")
            found, self.is_cut = found[: self._left], True
        self._left -= len(found)
        return found

    def xml(self, name: str) -> Any:
        """Return the root element of a part. Raises Unreadable."""
        return parse_xml(self.part(name), recover=self.is_cut)

    def optional_xml(self, name: str) -> Any | None:
        """Return the root element of a part; None where there is none."""
        found = self.optional_part(name)
        return None if found is None else parse_xml(found, recover=self.is_cut)

    def related(self, name: str) -> dict[str, str]:
        """Return the parts that a part of an Office file names, by the id that it gives them."""
        folder, base = posixpath.split(name)
        root = self.optional_xml(f"{folder}/_rels/{base}.rels")
        if root is None:
            return {}
        return {
            relation.get("Id", ""): posixpath.normpath(posixpath.join("/", folder, relation.get("Target", ""))).lstrip(
                "/"
            )
            for relation in root
            if relation.get("TargetMode") != "External"
        }

    def main(self, usual: str) -> str:
        """Return the name of an Office file's main part, where it has not the usual one."""
        if usual in self._names:
            return usual
        root = self.optional_xml("_rels/.rels")
        for relation in () if root is None else root:
            if relation.get("Type", "").endswith("/officeDocument"):
                return posixpath.normpath(relation.get("Target", "").replace("\\", "/")).lstrip("/")
        return usual


def parse_xml(content: bytes, *, recover: bool = False) -> Any:
    """Return the root element of XML, without what it would fetch or expand. Raises Unreadable."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - it has no types

    if _STRICT in content:
        for strict, usual in STRICT_NAMES:
            content = content.replace(strict, usual)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=recover)
    try:
        root = etree.fromstring(content, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise Unreadable("The document is damaged: save it anew.") from error
    if root is None:
        raise Unreadable("The document is damaged: save it anew.")
    return root


def _damaged(why: str) -> Unreadable:
    return Unreadable(f"The document is damaged or encrypted ({why}): save it anew.")
