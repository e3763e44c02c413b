"""Files of the API, passed on to a browser as they come."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing

from fastapi.responses import StreamingResponse


async def file_of(
    pieces: AsyncGenerator[bytes], *, disposition: str, media_type: str, headers: Mapping[str, str] | None = None
) -> StreamingResponse:
    """Answer with a file. Raises ApiError before it begins, as with the first piece it is known that there is one."""
    first = await anext(pieces, b"")

    async def content() -> AsyncIterator[bytes]:
        # A browser that goes away leaves no transfer behind.
        async with aclosing(pieces):
            yield first
            async for piece in pieces:
                yield piece

    named = {**(headers or {}), "Content-Disposition": disposition}
    return StreamingResponse(content(), media_type=media_type, headers=named)
