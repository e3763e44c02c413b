"""Search providers for tests: SearXNG, Brave and Tavily as they are spoken to, each refusing what it does not know."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from wayline.simulator.website import Page, ReceivedRequest, Website

KEY = "a-search-key"


@dataclass(frozen=True)
class Result:
    """One result, the same in every engine's format."""

    title: str
    url: str
    text: str = ""
    published: str | None = None


@dataclass(frozen=True)
class SearchQuery:
    """What a provider was asked for."""

    query: str
    parameters: Mapping[str, Any]


Finds = Callable[[SearchQuery], list[Result]]


@dataclass
class SearchEngine:
    """Answers searches on one socket, in the form of the provider whose path is asked."""

    finds: Finds
    asked: list[SearchQuery] = field(default_factory=list)
    refusals: list[Page] = field(default_factory=list)
    """Answered first, one a request."""

    def website(self) -> Website:
        """Return the site to enter; each provider has its own paths."""
        return Website(
            {
                "/search": self._search,
                "/res/v1/web/search": lambda request: self._brave(request, "web"),
                "/res/v1/images/search": lambda request: self._brave(request, "image"),
                "/res/v1/videos/search": lambda request: self._brave(request, "video"),
            }
        )

    def _search(self, request: ReceivedRequest) -> Page:
        return self._tavily(request) if request.method == "POST" else self._searxng(request)

    def _found(self, query: str, parameters: Mapping[str, Any]) -> list[Result]:
        asked = SearchQuery(query, parameters)
        self.asked.append(asked)
        return self.finds(asked)

    def _searxng(self, request: ReceivedRequest) -> Page:
        parameters = _parameters(request)
        if self.refusals:
            return self.refusals.pop(0)
        if parameters.get("format") != "json":
            return Page("<html>a page for people</html>")
        if parameters.get("time_range", "day") not in ("day", "week", "month", "year"):
            return Page('{"error": "Invalid value for parameter time_range"}', status=400)
        image = parameters.get("categories") == "images"
        results = [
            {
                "url": one.url,
                "title": one.title,
                "content": one.text,
                "publishedDate": f"{one.published}T00:00:00" if one.published else None,
                "engine": "duckduckgo",
                "score": 1.0,
                **({"img_src": f"{one.url}.png", "thumbnail_src": f"{one.url}.small.png"} if image else {}),
            }
            for one in self._found(parameters["q"], parameters)
        ]
        more = {"answers": [], "corrections": [], "infoboxes": [], "suggestions": [], "unresponsive_engines": []}
        return _json({"query": parameters["q"], "number_of_results": 0, "results": results, **more})

    def _brave(self, request: ReceivedRequest, kind: str) -> Page:
        parameters = _parameters(request)
        if request.headers.get("x-subscription-token") != KEY:
            return _json({"type": "ErrorResponse", "error": {"code": "SUBSCRIPTION_TOKEN_INVALID"}}, status=422)
        if self.refusals:
            return self.refusals.pop(0)
        if len(parameters["q"]) > 400 or len(parameters["q"].split()) > 50 or not 1 <= int(parameters["count"]) <= 20:
            return _json({"type": "ErrorResponse", "error": {"code": "VALIDATION"}}, status=422)
        results = [
            {
                "title": one.title,
                "url": one.url,
                "description": f"<strong>{one.text}</strong>",
                "page_age": f"{one.published}T08:00:00" if one.published else None,
                **({"properties": {"url": f"{one.url}.png"}} if kind == "image" else {}),
                **({"video": {"duration": "03:20", "creator": "a creator"}} if kind == "video" else {}),
            }
            for one in self._found(parameters["q"], parameters)
        ]
        if kind == "web":
            # Brave leaves the list out where it found nothing.
            found = {"web": {"type": "search", "results": results}} if results else {}
            return _json({"type": "search", "query": {"original": parameters["q"]}, **found})
        return _json({"type": f"{kind}s", "query": {"original": parameters["q"]}, "results": results})

    def _tavily(self, request: ReceivedRequest) -> Page:
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return _json({"detail": {"error": "Unauthorized: missing or invalid API key."}}, status=401)
        if self.refusals:
            return self.refusals.pop(0)
        body = json.loads(request.body)
        known = {
            *("query", "max_results", "search_depth", "topic", "time_range", "start_date", "end_date"),
            *("include_domains", "include_images", "include_image_descriptions"),
        }
        if set(body) - known or body.get("topic", "general") not in ("general", "news", "finance"):
            return _json({"detail": {"error": "Invalid request."}}, status=400)
        results = self._found(body["query"], body)
        images = [{"url": f"{one.url}.png", "description": one.text} for one in results]
        listed = [
            {"title": one.title, "url": one.url, "content": one.text, "score": 0.9}
            | ({"published_date": one.published} if one.published else {})
            for one in results
        ]
        asked_images = images if body.get("include_images") else []
        return _json({"query": body["query"], "images": asked_images, "results": listed, "response_time": 0.5})


def _parameters(request: ReceivedRequest) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(request.path).query))


def _json(value: Any, status: int = 200) -> Page:
    return Page(json.dumps(value), status=status, media_type="application/json")
