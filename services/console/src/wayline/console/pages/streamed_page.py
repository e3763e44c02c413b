"""Sends what stands around a page at once, and each part of it as soon as the API has answered for it."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from fastapi import Request
from fastapi.responses import StreamingResponse

from wayline.client import ApiError
from wayline.console.pages.compressed_page import may_compress, packer
from wayline.console.pages.frame import Frame
from wayline.console.pages.refusal import FAULT, page_told_of
from wayline.console.render.environment import Templates

PROBLEM: Final = "problem.html"
PART: Final = "main"
"""The block of a template that is a page's own."""


@dataclass(frozen=True, slots=True)
class Part:
    """A block of a page's template, and what it shows."""

    read: Callable[[], Awaitable[Any]]
    """Asks the API for it, once the answer is being sent: a browser may have left before."""
    block: str = PART


def stream(request: Request, template: str, frame: Frame, *parts: Part, **values: Any) -> StreamingResponse:
    """Answer with a page whose parts are read side by side and sent in their order.

    Its status is sent before it is known whether they can be read: where one cannot, the page says so in its place.
    """
    pieces = _pieces(request.app.state.templates, template, parts, {"frame": frame, **values})
    if not may_compress(request):
        return StreamingResponse(pieces, media_type="text/html")
    return StreamingResponse(_packed(pieces), media_type="text/html", headers={"Content-Encoding": "gzip"})


async def _pieces(
    templates: Templates, template: str, parts: tuple[Part, ...], values: dict[str, Any]
) -> AsyncGenerator[bytes]:
    before, after = await asyncio.to_thread(templates.around, template, PART, **values)
    yield before
    # Only now: what answers the API would work beside the browser that makes its first frame of that.
    reading = [asyncio.ensure_future(part.read()) for part in parts]
    try:
        for part, page in zip(parts, reading, strict=True):
            try:
                found = await page
                yield await asyncio.to_thread(templates.region, template, part.block, page=found, **values)
            except ApiError as error:
                yield _problem(templates, *page_told_of(error))
                break
            except Exception:
                yield _problem(templates, *FAULT)
                yield after
                raise
        yield after
    finally:
        for one in reading:
            one.cancel()
        await asyncio.gather(*reading, return_exceptions=True)


def _problem(templates: Templates, status: int, title: str, detail: str) -> bytes:
    return templates.region(PROBLEM, PART, status=status, title=title, detail=detail)


async def _packed(pieces: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
    """Yield the pieces as gzip, each so that a browser can show it before the next one comes."""
    packing = packer()
    async with aclosing(pieces):
        async for piece in pieces:
            pack = partial(packing.compress, piece)
            yield await asyncio.to_thread(pack) + packing.flush(zlib.Z_SYNC_FLUSH)
    yield packing.flush()
