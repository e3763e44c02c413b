"""Tavily: a search provider for agents."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

from wayline.tool_registry.web.searches.search_providers.search_provider import (
    TITLE_CHARS_MAX,
    ProviderCall,
    UnusableAnswer,
    address,
    day,
    items,
    text,
    with_urls,
)
from wayline.tool_registry.web.searches.search_request import SearchHit, SearchRequest

URL = "https://api.tavily.com"
VIDEO_SITES = ("youtube.com", "vimeo.com", "dailymotion.com")
"""Tavily knows no videos: they are the pages of these sites."""


class Tavily:
    """Asks `POST /search`."""

    def __init__(self, url: str | None, key: str | None) -> None:
        self._url = (url or URL).rstrip("/")
        self._key = key or ""

    def call(self, request: SearchRequest, *, count: int, today: date) -> ProviderCall:
        """Return the HTTP request: a basic search, the cheapest."""
        body: dict[str, Any] = {"query": request.words, "max_results": count, "search_depth": "basic"}
        if sites := VIDEO_SITES if request.kind == "video" and not request.sites else request.sites:
            body["include_domains"] = list(sites)
        if request.kind == "image":
            body |= {"include_images": True, "include_image_descriptions": True}
        if request.category == "news":
            body["topic"] = "news"
        if request.dates is not None:
            if request.dates.recency:
                body["time_range"] = request.dates.recency
            else:
                body |= {"start_date": str(request.dates.first), "end_date": str(request.dates.last)}
        headers = {
            "accept": "application/json",
            "authorization": f"Bearer {self._key}",
            "content-type": "application/json",
        }
        return ProviderCall(f"{self._url}/search", method="POST", headers=headers, content=json.dumps(body).encode())

    def limits_dates(self, request: SearchRequest) -> bool:
        """Return whether pages or videos are asked for: images have no dates there."""
        return request.dates is None or request.kind != "image"

    def hits(self, request: SearchRequest, answer: Any) -> list[SearchHit]:
        """Read `results`, or `images`. Raises UnusableAnswer."""
        if request.kind == "image":
            return self._images(answer)
        return with_urls(
            SearchHit(
                title=text(one.get("title"), TITLE_CHARS_MAX),
                url=str(one.get("url") or ""),
                snippet=text(one.get("content")),
                published=day(one.get("published_date")),
            )
            for one in items(answer, "results")
        )

    def _images(self, answer: Any) -> list[SearchHit]:
        images = answer.get("images") if isinstance(answer, dict) else None
        if images is not None and not isinstance(images, list):
            raise UnusableAnswer("images of its answer is no list")
        found = [one if isinstance(one, dict) else {"url": one} for one in images or ()]
        return with_urls(
            SearchHit(
                title=text(one.get("description"), TITLE_CHARS_MAX),
                url=address(one.get("url")) or "",
                image_url=address(one.get("url")),
            )
            for one in found
        )
