"""Which pages browsers let read an answer: those of named origins, never with cookies."""

from __future__ import annotations

from typing import Any

import pytest

from wayline.contracts.errors import WrongSetting
from wayline.gateway.page_access import PageAccess
from wayline.gateway.request_middleware import RequestMiddleware
from wayline.gateway.settings import Settings

PAGE = "https://app.example"


async def asked(
    path: str, *, method: str = "GET", status: int = 200, api_origins: tuple[str, ...] = (PAGE,), **headers: str
) -> dict[str, str]:
    """Return the headers of the answer to a page's request."""
    sent: list[dict[str, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": [(b"etag", b'"1"')]})
        await send({"type": "http.response.body", "body": b""})

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    given = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": given}
    await RequestMiddleware(PageAccess(app, (), api_origins=api_origins))(scope, receive, send)
    return {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}


def is_readable(told: dict[str, str]) -> bool:
    return told.get("access-control-allow-origin") == PAGE


@pytest.mark.parametrize("path", ["/v1/jobs", "/openai/v1/chat/completions", "/openapi.json"])
async def test_pages_of_a_named_origin_read_answers(path: str):
    told = await asked(path, origin=PAGE)
    foreign = [await asked(path, origin=origin) for origin in ("https://evil.example", "http://localhost:3000", "null")]
    off = await asked(path, origin=PAGE, api_origins=())

    assert is_readable(told) and told["vary"] == "Origin"
    assert "ETag" in told["access-control-expose-headers"] and "RateLimit" in told["access-control-expose-headers"]
    assert "access-control-allow-credentials" not in told
    assert not [one for one in (*foreign, off) if any(name.startswith("access-control") for name in one)]


async def test_a_browsers_question_is_answered_with_what_the_page_asks_for():
    question = {"origin": PAGE, "access_control_request_method": "PATCH"}
    told = await asked(
        "/v1/settings",
        method="OPTIONS",
        **question,
        access_control_request_headers="authorization, if-match,x-stainless-lang, bad header,cookie",
    )

    assert is_readable(told) and "PATCH" in told["access-control-allow-methods"]
    assert told["access-control-allow-headers"] == "authorization, if-match, x-stainless-lang"
    assert "access-control-allow-credentials" not in told


async def test_pages_that_keep_a_cookie_are_read_by_none_else():
    assert not is_readable(await asked("/v1/mcp/oauth/start", origin=PAGE))
    assert not is_readable(await asked("/health/live", origin=PAGE))


async def test_a_page_may_read_that_its_body_was_too_large():
    assert is_readable(await asked("/v1/jobs", method="POST", status=413, origin=PAGE))


@pytest.mark.parametrize("origin", ["*", "app.example", "https://app.example/", "https://app.example/path", "null"])
def test_what_is_no_origin_is_refused_as_one(origin: str):
    with pytest.raises(WrongSetting, match="scheme, host and port"):
        Settings(cors_origins=(origin,))
