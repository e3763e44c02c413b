"""Brave Search."""

from __future__ import annotations

from datetime import date
from typing import Any
from urllib.parse import urlencode

from wayline.tool_registry.web.searches.search_providers.search_provider import (
    TITLE_CHARS_MAX,
    ProviderCall,
    address,
    day,
    items,
    text,
    with_urls,
)
from wayline.tool_registry.web.searches.search_request import SearchHit, SearchRequest

URL = "https://api.search.brave.com/res/v1"
_PATHS = {"web": "web/search", "image": "images/search", "video": "videos/search"}
_FRESHNESS = {"day": "pd", "week": "pw", "month": "pm", "year": "py"}


class Brave:
    """Asks `/web/search`, `/images/search` or `/videos/search`."""

    def __init__(self, url: str | None, key: str | None) -> None:
        self._url = (url or URL).rstrip("/")
        self._key = key or ""

    def call(self, request: SearchRequest, *, count: int, today: date) -> ProviderCall:
        """Return the HTTP request."""
        parameters = {"q": request.words_with_sites, "count": str(count)}
        if request.dates is not None and self.limits_dates(request):
            named = request.dates.recency
            parameters["freshness"] = _FRESHNESS[named] if named else f"{request.dates.first}to{request.dates.last}"
        headers = {"accept": "application/json", "x-subscription-token": self._key}
        return ProviderCall(f"{self._url}/{_PATHS[request.kind]}?{urlencode(parameters)}", headers=headers)

    def limits_dates(self, request: SearchRequest) -> bool:
        """Return whether pages or videos are asked for: images have no dates there."""
        return request.dates is None or request.kind != "image"

    def hits(self, request: SearchRequest, answer: Any) -> list[SearchHit]:
        """Read `web.results`, or `results` of images and videos. Raises UnusableAnswer."""
        path = ("web", "results") if request.kind == "web" else ("results",)
        return with_urls(
            SearchHit(
                title=text(one.get("title"), TITLE_CHARS_MAX),
                url=str(one.get("url") or ""),
                snippet=text(one.get("description")),
                published=day(one.get("page_age")) if request.kind != "image" else None,
                image_url=address(_inner(one, "properties", "url")),
                duration=text(_inner(one, "video", "duration")) or None,
            )
            for one in items(answer, *path)
        )


def _inner(one: Any, name: str, field: str) -> Any:
    inner = one.get(name)
    return inner.get(field) if isinstance(inner, dict) else None
