"""A request is handled by the same route as if all were tried in turn."""

from __future__ import annotations

import re

import httpx2
import pytest
from fastapi import APIRouter, FastAPI
from fastapi.routing import iter_route_contexts
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from wayline.gateway.application import routes
from wayline.gateway.path_index import ROUTE, PathIndex

ROUTES = routes(1_000_000, 1_000_000)
PATHS = sorted({one.path for one in iter_route_contexts(ROUTES) if one.path})
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH")
NO_PATHS = ("", "/", "/v1", "/v1/", "/v1/nothing", "/nothing/at/all", "//v1/jobs", "/v1/jobs/", "/mcp/more")


def request(method: str, path: str) -> Scope:
    return {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "headers": []}


def tried_in_turn(scope: Scope) -> tuple[Match, BaseRoute | None]:
    found = [(route.matches(scope)[0], route) for route in ROUTES]
    whole = [one for one in found if one[0] is Match.FULL]
    partial = [one for one in found if one[0] is Match.PARTIAL]
    return next(iter(whole + partial), (Match.NONE, None))


@pytest.mark.parametrize("method", METHODS)
def test_every_path_has_the_route_that_a_search_finds(method: str):
    index = PathIndex(ROUTES)
    assert len(PATHS) > 150
    for path in (*(re.sub(r"\{[^}]+\}", "a-b", path) for path in PATHS), *NO_PATHS):
        match, found = index.matches(request(method, path))
        assert (match, found.get(ROUTE)) == tried_in_turn(request(method, path)), path


async def test_the_first_of_two_fitting_routes_takes_a_request():
    words, ids = APIRouter(), APIRouter()
    words.add_api_route("/v1/things/all", lambda: "all")
    ids.add_api_route("/v1/things/{name}", lambda name: name)
    outer = APIRouter()
    outer.include_router(words)
    outer.include_router(ids)
    app = FastAPI(routes=[PathIndex(outer.routes)])

    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://here") as client:
        answers = [await client.get(f"/v1/things/{name}") for name in ("all", "one")]
        refused = await client.delete("/v1/things/one")
        nothing = await client.get("/v1/other/one")

    assert [answer.json() for answer in answers] == ["all", "one"]
    assert (refused.status_code, nothing.status_code) == (405, 404)


def test_a_parameter_among_the_first_segments_is_refused():
    outer, any_word = APIRouter(), APIRouter()
    any_word.add_api_route("/v1/{word}", lambda word: word)
    outer.include_router(any_word)

    with pytest.raises(ValueError, match="first two segments"):
        PathIndex(outer.routes)
