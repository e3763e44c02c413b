"""Join words that a line's end has cut in two: searched for, they are whole."""

from __future__ import annotations

import re
from collections.abc import Sequence

_CUT = re.compile(r"(?<![\w-])((?:[^\W\d_]+-)*)([^\W\d_]{2,})[-\u2010\u00ad][ \t]*\n[ \t]*([^\W\d_]{2,})(?![\w-])")
"""Letters, a hyphen, the end of a line, and letters; before it perhaps the beginning of a compound."""
_SUSPENDED = frozenset({"and", "or", "to", "und", "oder", "bis", "et", "ou", "en", "of"})
"""What follows the first half of a pair: "pre- and postwar"."""
_COMPOUND = re.compile(r"(?<![\w-])[^\W\d_]+(?:-[^\W\d_]+)+(?![\w-])")


def joined(pages: Sequence[str]) -> list[str]:
    """Return the pages of a document with the words whole that were cut at the end of a line.

    A hyphen stays where it may be a part of the word: before a capital letter, before an "and", within a longer
    compound, and in a word that has one elsewhere in the document.
    """
    compounds = {word.casefold() for page in pages for word in _COMPOUND.findall(page)}

    def join(cut: re.Match[str]) -> str:
        before, left, right = cut.groups()
        if cut[0][len(before) + len(left)] != "\u00ad":
            if not right[0].islower() or right in _SUSPENDED:
                return cut[0]
            if before or f"{left}-{right}".casefold() in compounds:
                return f"{before}{left}-{right}"
        return f"{before}{left}{right}"

    return [_CUT.sub(join, page) for page in pages]
