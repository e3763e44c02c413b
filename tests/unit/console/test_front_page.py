"""Home: what needs a person, with or without what it can do without."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

import pytest

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.pages.frame import Frame
from wayline.console.pages.front_page import TEMPLATE, read
from wayline.console.render.environment import Templates

NOW = datetime(2026, 5, 1, tzinfo=UTC)
ME = {"tenant": "acme", "name": "ann", "scopes": ["read"], "open": False, "version": "1"}
FRAME = Frame("Home", "/", ME, "token", "system", "/", now=NOW)
OVERVIEW = {"open": [], "decisions": 2, "decisions_oldest_at": None, "spent": [], "budgets": [], "dead_letters": 3}
ANSWERS: dict[str, Any] = {
    "/v1/overview": OVERVIEW,
    "/v1/jobs": {"jobs": []},
    "/health/ready": {"needs": {"bus": "ok", "postgres": "<b>away</b>"}},
    "/v1/costs": {"rows": [{"group": {"day": "2026-04-30"}, "cost_usd": "0.5", "calls": 2}]},
    "/v1/mcp/servers": {"servers": [{"quarantined": 1}, {"quarantined": 0}]},
    "/v1/pauses": {"pauses": [{"kind": "lane", "name": "batch\u202e", "since": "2026-04-30T22:00:00Z"}]},
}


class Api:
    """Answers, or refuses what a key may not read."""

    def __init__(self, *refused: str) -> None:
        self.refused = refused

    async def get(self, path: str, **_: Any) -> Any:
        if path in self.refused:
            raise ApiError("not with this key", code="forbidden", status=403)
        return ANSWERS[path]


@pytest.mark.parametrize("refused", [(), ("/health/ready", "/v1/costs", "/v1/mcp/servers", "/v1/pauses")])
async def test_home_shows_what_needs_a_person(refused: tuple[str, ...]):
    page = await read(cast(Client, Api(*refused)), "http://127.0.0.1:8080", now=NOW)
    html = Templates().render(TEMPLATE, page=page, frame=FRAME).decode()
    needs = [(need.number, need.address) for need in page.needs(NOW)]

    paused = "/jobs?s=status:parked+waiting:pause"
    assert ((1, paused) in needs, "pause: lane batch⟦U+202E⟧" in html) == (not refused, not refused)
    assert [need for need in needs if need[1] not in ("/tools/servers", paused)] == [
        (2, "/approvals"),
        (3, "/dead-letters"),
    ]
    assert ((1, "/tools/servers") in needs, "data-chart" in html) == (not refused, not refused)
    assert "<b>away" not in html and "What can you do for me?" in html and "the scope write" in html


async def test_home_says_where_nothing_can_be_read():
    with pytest.raises(ApiError):
        await read(cast(Client, Api("/v1/overview")), "http://127.0.0.1:8080", now=NOW)
