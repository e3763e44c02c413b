"""SearXNG: a metasearch engine that an installation runs itself; its JSON format has to be switched on."""

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

_CATEGORIES = {"web": "general", "image": "images", "video": "videos"}


class Searxng:
    """Asks `/search?format=json`."""

    def __init__(self, url: str | None, key: str | None) -> None:
        self._url = (url or "").rstrip("/")
        self._key = key

    def call(self, request: SearchRequest, *, count: int, today: date) -> ProviderCall:
        """Return the HTTP request; SearXNG knows no count."""
        parameters = {"q": request.words_with_sites, "format": "json", "categories": _CATEGORIES[request.kind]}
        if request.dates is not None and (recency := request.dates.covered_by(today)):
            parameters["time_range"] = recency
        headers = {"accept": "application/json"} | ({"authorization": f"Bearer {self._key}"} if self._key else {})
        return ProviderCall(f"{self._url}/search?{urlencode(parameters)}", headers=headers)

    def limits_dates(self, request: SearchRequest) -> bool:
        """Return whether a named range is asked for: any other is searched within a longer one, or not at all."""
        return request.dates is None or request.dates.recency is not None

    def hits(self, request: SearchRequest, answer: Any) -> list[SearchHit]:
        """Read `results`. Raises UnusableAnswer."""
        return with_urls(
            SearchHit(
                title=text(one.get("title"), TITLE_CHARS_MAX),
                url=str(one.get("url") or ""),
                snippet=text(one.get("content")),
                published=day(one.get("publishedDate")),
                image_url=address(one.get("img_src")) if request.kind == "image" else None,
                duration=text(one.get("length")) or None if request.kind == "video" else None,
            )
            for one in items(answer, "results")
        )
