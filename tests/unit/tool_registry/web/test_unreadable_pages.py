"""A page that cannot be read is let go at once: nobody waits for Python's cycle collector to find it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from wayline.guarded_http import Answer
from wayline.testkit.cycles import ours, uncollected, whose
from wayline.tool_registry.web.fetching import CannotFetch
from wayline.tool_registry.web.pages.document_reader import CannotRead
from wayline.tool_registry.web.pages.web_pages import WebPages

URL = "https://host.example/"


class Client:
    """Answers with a page."""

    async def get(self, *_: Any, **__: Any) -> Answer:
        return Answer(URL, 200, {"content-type": "text/html"}, b"<p>" * 1_000)


class Reader:
    """Reads nothing."""

    async def read(self, *_: Any, **__: Any) -> Any:
        raise CannotRead("it has no text")


async def test_a_page_that_cannot_be_read_leaves_no_cycles():
    pages: Any = WebPages(Client(), Reader(), robots=False)  # pyright: ignore[reportArgumentType]

    async def fetch() -> None:
        with pytest.raises(CannotFetch):
            await pages.fetch("acme", URL)

    await fetch()
    with uncollected() as found:
        await fetch()

    assert Counter(filter(ours, map(whose, found))) == {}
