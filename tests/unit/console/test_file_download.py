"""A file that is passed on: refused before it begins, and its transfer ends with the browser's."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from wayline.client import ApiError
from wayline.console.pages.file_download import file_of

TEXT = {"disposition": 'attachment; filename="a.csv"', "media_type": "text/csv"}


async def test_a_transfer_ends_where_the_browser_goes_away():
    ended = list[str]()

    async def pieces() -> AsyncGenerator[bytes]:
        try:
            yield b"a"
            yield b"b"
        finally:
            ended.append("closed")

    answer = await file_of(pieces(), **TEXT)
    body = answer.body_iterator
    first = await anext(aiter(body))
    await body.aclose()  # pyright: ignore[reportAttributeAccessIssue]

    assert (first, ended) == (b"a", ["closed"]) and answer.headers["content-disposition"] == TEXT["disposition"]


async def test_a_file_that_is_refused_does_not_begin():
    async def pieces() -> AsyncGenerator[bytes]:
        raise ApiError("there is none", status=404)
        yield b""

    with pytest.raises(ApiError):
        await file_of(pieces(), **TEXT)
