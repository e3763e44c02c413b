"""`wayline open`, and the address of a job that `wayline run` prints."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from wayline.client import ApiError
from wayline.standalone.cli import app
from wayline.standalone.commands import console_links
from wayline.standalone.commands.console_links import link_of, link_or_none


class Gateway:
    """Says where its console is."""

    def __init__(self, links: dict[str, str] | None = None, error: ApiError | None = None) -> None:
        self.links, self.error = links, error

    async def get(self, path: str) -> dict[str, Any]:
        assert path == "/v1/me"
        if self.error:
            raise self.error
        return {} if self.links is None else {"links": self.links}


def client(*args: Any) -> Any:
    return cast("Any", Gateway(*args))


async def test_a_job_has_its_own_address_in_the_console():
    links = {"console": "http://127.0.0.1:8081"}

    assert await link_of(client(links)) == "http://127.0.0.1:8081"
    assert await link_of(client(links), "a/b") == "http://127.0.0.1:8081/jobs/a%2Fb"
    assert await link_of(client({}), "j1") is await link_of(client(None)) is None


async def test_a_job_runs_where_nobody_says_its_address():
    refused = ApiError("there is no such path", code="not_found", status=404)

    assert await link_or_none(client(None, refused), "j1") is None


@pytest.mark.parametrize(
    ("links", "words", "code", "said"),
    [
        ({"console": "http://c"}, ["open", "j1"], 0, "http://c/jobs/j1\n"),
        ({"console": "http://c"}, ["open", "--print"], 0, "http://c\n"),
        ({}, ["open"], 1, "knows no console"),
    ],
)
def test_open_prints_the_address_or_why_there_is_none(
    monkeypatch: pytest.MonkeyPatch, links: dict[str, str], words: list[str], code: int, said: str
):
    monkeypatch.setattr(console_links, "conversation", lambda ask, **_: asyncio.run(ask(client(links))))
    done = CliRunner().invoke(app, words)

    assert (done.exit_code, said in done.output) == (code, True)
