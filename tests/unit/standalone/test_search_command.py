"""`wayline search` asks the gateway in the words of `POST /v1/search`."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

from wayline.gateway.shapes.documents import SearchBody
from wayline.standalone.cli import app
from wayline.standalone.commands import knowledge


def asked_by(*words: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    asked: list[tuple[str, dict[str, Any]]] = []

    class Client:
        def post(self, path: str, body: dict[str, Any]) -> None:
            asked.append((path, body))

    monkeypatch.setattr(knowledge, "answer", lambda ask, **_: ask(Client()))
    done = CliRunner().invoke(app, ["search", *words])
    assert done.exit_code == 0, done.output
    [(path, body)] = asked
    assert path == "/v1/search"
    SearchBody.model_validate(body)
    return body


def test_a_plain_search_sends_what_every_gateway_knows(monkeypatch: pytest.MonkeyPatch):
    assert asked_by("tide", monkeypatch=monkeypatch) == {"query": "tide", "mode": "hybrid", "top_k": 10}


def test_filters_of_a_search_are_those_of_the_api(monkeypatch: pytest.MonkeyPatch):
    words = ("--document-id", "d1", "--document-id", "d2", "--collection", "sea", "--where", '{"year": {"gte": 2020}}')

    body = asked_by("tide", *words, "--join-neighbours", monkeypatch=monkeypatch)

    assert body["filter"] == {"document_ids": ["d1", "d2"], "collections": ["sea"], "where": {"year": {"gte": 2020}}}
    assert body["join_neighbours"] is True


def test_conditions_that_are_no_json_object_are_refused():
    done = CliRunner().invoke(app, ["search", "tide", "--where", "year"])

    assert done.exit_code == 2
    assert "--where 'year' is no JSON object" in done.output
