"""The lists of models that providers publish."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from wayline.simulator.models import Facts
from wayline.simulator.refusals import unknown_model
from wayline.simulator.scripts.script import Wire
from wayline.simulator.transport import refused

MADE = "2026-01-01T00:00:00Z"
MADE_S = 1_767_225_600


class Listing:
    """Answers `/v1/models`: to Anthropic's clients its own, to others the rest."""

    def __init__(self, models: Mapping[str, Facts]) -> None:
        self._models = models

    async def all(self, request: web.Request) -> web.StreamResponse:
        wire = _wire(request)
        rows = [_row(facts) for facts in self._models.values() if _belongs(facts, wire)]
        if wire == "anthropic":
            ends = {"first_id": rows[0]["id"], "last_id": rows[-1]["id"], "has_more": False}
            return web.json_response({"data": rows, **ends})
        return web.json_response({"object": "list", "data": rows})

    async def one(self, request: web.Request) -> web.StreamResponse:
        wire, name = _wire(request), request.match_info["name"]
        facts = self._models.get(name)
        if facts is None or not _belongs(facts, wire):
            return refused(unknown_model(wire, name), wire, 0)
        return web.json_response(_row(facts))


def _wire(request: web.Request) -> Wire:
    return "anthropic" if "anthropic-version" in request.headers else "openai_chat"


def _belongs(facts: Facts, wire: Wire) -> bool:
    return (facts.provider == "anthropic") == (wire == "anthropic")


def _row(facts: Facts) -> dict[str, Any]:
    if facts.provider == "anthropic":
        limits = {"max_input_tokens": facts.window, "max_tokens": facts.output_limit}
        return {"type": "model", "id": facts.name, "display_name": facts.name, "created_at": MADE, **limits}
    return {"id": facts.name, "object": "model", "created": MADE_S, "owned_by": facts.provider}
