"""Search providers, one module each: how one is asked, and how its answer is read."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from wayline.tool_registry.web.searches.search_providers.brave import Brave
from wayline.tool_registry.web.searches.search_providers.search_provider import Provider, UnusableAnswer
from wayline.tool_registry.web.searches.search_providers.searxng import Searxng
from wayline.tool_registry.web.searches.search_providers.tavily import Tavily

__all__ = ["PROVIDERS", "Provider", "UnusableAnswer"]

PROVIDERS: Mapping[str, type[Provider]] = MappingProxyType({"searxng": Searxng, "brave": Brave, "tavily": Tavily})
