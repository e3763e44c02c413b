"""`wayline agents label` moves a label and keeps its share, unless another one is given."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from wayline.client import ApiError
from wayline.client.client import Tagged
from wayline.standalone.cli import app
from wayline.standalone.commands import administration

THERE = {"label": "candidate", "version": 3, "share": 0.1}


@pytest.mark.parametrize(
    ("there", "words", "share", "said"),
    [
        (THERE, (), 0.1, "label candidate, with 10% of"),
        (THERE, ("--share", "0.5"), 0.5, "label candidate, with 50% of"),
        (THERE, ("--share", "0"), None, "has the label candidate\n"),
        (None, (), None, "has the label candidate\n"),
    ],
)
def test_a_moved_label_keeps_its_share(
    there: dict[str, Any] | None,
    words: tuple[str, ...],
    share: float | None,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
):
    puts: list[Any] = []

    class Client:
        async def tagged(self, path: str) -> Tagged:
            if there is None:
                raise ApiError("no such label", code="not_found", status=404)
            return Tagged(there, '"t1"')

        async def put(self, path: str, body: dict[str, Any], *, headers: Any = None) -> dict[str, Any]:
            puts.append((path, body, headers))
            return {"label": "candidate", "share": None, **body}

    def answer(ask: Any, *, draw: Any, **_: Any) -> None:
        Console(width=200).print(draw(asyncio.run(ask(Client()))))

    monkeypatch.setattr(administration, "answer", answer)
    done = CliRunner().invoke(app, ["agents", "label", "critic", "candidate", "--version", "4", *words])

    [(path, body, headers)] = puts
    assert (path, body["version"], body.get("share")) == ("/v1/agents/critic/labels/candidate", 4, share)
    assert headers == ({"If-Match": '"t1"'} if there and not words else None)
    assert said in done.output
