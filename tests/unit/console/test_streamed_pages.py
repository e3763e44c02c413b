"""A page whose surroundings are sent before the API has answered, and what it says where that fails."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fastapi.responses import StreamingResponse
from jinja2 import UndefinedError
from starlette.requests import Request
from structlog.testing import capture_logs

from wayline.client import ApiError
from wayline.console.pages.frame import Frame
from wayline.console.pages.front_page import TEMPLATE, Lately
from wayline.console.pages.streamed_page import Part, stream
from wayline.console.render.environment import HERE, Templates

ME = {"tenant": HERE, "name": "ann", "scopes": ["read"], "open": False, "version": "1"}
FRAME = Frame("Home", "/", ME, "token", "system", "/", now=datetime(2026, 5, 1, tzinfo=UTC))
OWN = {"sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate", "accept-encoding": "gzip"}


def answer_of(*pages: Callable[[], Awaitable[Any]], **headers: str) -> StreamingResponse:
    """Return Home's answer, each part of which shows one of these."""
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    app = SimpleNamespace(state=SimpleNamespace(templates=Templates()))
    request = Request({"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": raw, "app": app})
    return stream(request, TEMPLATE, FRAME, *(Part(page, "lately") for page in pages))


def pieces_of(answer: StreamingResponse) -> AsyncIterator[bytes]:
    return cast(AsyncIterator[bytes], answer.body_iterator)


async def whole(answer: StreamingResponse) -> str:
    return b"".join([piece async for piece in pieces_of(answer)]).decode()


def known(page: Any) -> Callable[[], Awaitable[Any]]:
    async def read() -> Any:
        return page

    return read


def refused(status: int | None) -> Callable[[], Awaitable[Any]]:
    async def read() -> Any:
        raise ApiError("<it> is away", code="away", status=status)

    return read


async def test_the_surroundings_are_sent_before_the_api_answers():
    api = asyncio.get_running_loop().create_future()
    pieces = pieces_of(answer_of(lambda: api))
    before = (await anext(pieces)).decode()
    api.set_result(Lately([], {"bus": "ok"}))
    rest = b"".join([piece async for piece in pieces]).decode()

    assert before.startswith("<!doctype html>") and "Dead letters" in before and before.count("<main") == 1
    assert "&lt;here&gt;" in before and "bus" not in before
    assert rest.index("bus") < rest.index("</main>") and rest.rstrip().endswith("</html>")


async def test_nothing_is_read_before_the_surroundings_are_sent():
    asked = list[str]()

    async def read() -> Lately:
        asked.append("read")
        return Lately([], {})

    pieces = pieces_of(answer_of(read))
    await anext(pieces)

    assert asked == []
    async for _ in pieces:
        pass
    assert asked == ["read"]


async def test_the_first_piece_names_no_file_but_the_stylesheet():
    pieces = pieces_of(answer_of(known(Lately([], {}))))
    before = (await anext(pieces)).decode()
    rest = b"".join([piece async for piece in pieces]).decode()

    assert [name.rpartition("/")[2] for name in re.findall(r'(?:src|href)="(/static/[^"]+)"', before)] == [
        "mark.svg",
        "console.css",
    ]
    assert "live.js" in rest and "charts.js" in rest and "later.js" in rest


async def test_parts_are_read_side_by_side_and_sent_in_order():
    first = asyncio.get_running_loop().create_future()

    async def second() -> Lately:
        first.set_result(Lately([], {"one": "ok"}))
        return Lately([], {"two": "ok"})

    page = await whole(answer_of(lambda: first, second))

    assert page.index("one ") < page.index("two ")


@pytest.mark.parametrize(("status", "told"), [(None, "does not answer"), (403, "may not do that"), (401, "signed out")])
async def test_a_part_that_cannot_be_read_says_so_in_its_place(status: int | None, told: str):
    with capture_logs() as logs:
        page = await whole(answer_of(refused(status), known(Lately([], {"two": "ok"}))))

    assert told in page and "&lt;it&gt; is away" in page and page.index(told) < page.index("</main>")
    assert "two " not in page and page.rstrip().endswith("</html>")
    assert [one["event"] for one in logs] == (["the gateway did not answer"] if status is None else [])


async def test_a_fault_is_told_in_the_page_and_raised():
    shown = list[bytes]()
    with pytest.raises(UndefinedError):
        async for piece in pieces_of(answer_of(known(None))):
            shown.append(piece)

    page = b"".join(shown).decode()
    assert "The console has a fault" in page and page.rstrip().endswith("</html>")


async def test_each_compressed_piece_can_be_shown_before_the_next():
    api = asyncio.get_running_loop().create_future()
    answer = answer_of(lambda: api, **{name.replace("-", "_"): value for name, value in OWN.items()})
    unpacking, pieces = zlib.decompressobj(31), pieces_of(answer)
    before = unpacking.decompress(await anext(pieces))
    api.set_result(Lately([], {}))
    rest = b"".join([unpacking.decompress(piece) async for piece in pieces])

    assert answer.headers["content-encoding"] == "gzip" and b"Dead letters" in before
    assert rest.rstrip().endswith(b"</html>") and unpacking.eof


async def test_what_nobody_waits_for_is_asked_no_longer():
    api = asyncio.get_running_loop().create_future()
    pieces = pieces_of(answer_of(known(Lately([], {})), lambda: api))
    for _ in range(2):
        await anext(pieces)
    await cast(Any, pieces).aclose()

    assert api.cancelled()


async def test_a_page_whose_browser_has_left_before_is_not_read():
    asked = list[str]()
    answer_of(lambda: asked.append("read") or known(None)())

    assert asked == []
