"""Compresses a page for a browser, where its length then tells no other site anything.

The length of a compressed page shows how much its parts are alike. A site that has a browser ask for pages with words
of its choice, and sees how long the answers are on their way, could so guess what else stands in them, the forms' token
too. Therefore a page is compressed only where a page of our own asked for it, or a person who typed its address or took
a bookmark: browsers say which, and no page can make them say otherwise.

The scripts of a page ask anew for its parts, with words of its address. Another site may have opened the page and so
chosen them, therefore no such answer is compressed.
"""

from __future__ import annotations

import zlib
from typing import Final

from starlette.requests import Request

LEAST_BYTES: Final = 1_024
"""A shorter page is one packet as it is."""
LEVEL: Final = 4
"""Higher ones take twice as long for a twentieth less."""
GZIP_WINDOW_BITS: Final = 31
OWN_SITES: Final = frozenset({"same-origin", "none"})
"""What a browser says of a request that none but we and the person before it chose."""
OF_FEW_VALUES: Final = frozenset({"view", "more"})
"""Of an address: any other value of them is refused."""


def may_compress(request: Request) -> bool:
    """Return whether the answer to a request may be compressed."""
    headers = request.headers
    if "gzip" not in headers.get("accept-encoding", "") or headers.get("sec-fetch-site") not in OWN_SITES:
        return False
    return headers.get("sec-fetch-mode") == "navigate" or OF_FEW_VALUES.issuperset(request.query_params)


def compressed(page: bytes) -> bytes | None:
    """Return a page as gzip; None where it is too short to gain by it."""
    if len(page) < LEAST_BYTES:
        return None
    packing = packer()
    return packing.compress(page) + packing.flush()


def packer() -> zlib._Compress:
    """Return what makes gzip of the pieces of a page."""
    return zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP_WINDOW_BITS)
