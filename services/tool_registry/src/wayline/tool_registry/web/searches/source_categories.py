"""The sites that a search may be limited to, by category."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

SourceCategory = Literal[
    "encyclopedia",
    "programming",
    "academic",
    "government",
    "finance",
    "tech",
    "reference",
    "news",
    "health",
    "legal",
    "sports",
]

SITES: Mapping[SourceCategory, tuple[str, ...]] = MappingProxyType(
    {
        "encyclopedia": ("wikipedia.org", "britannica.com"),
        "programming": ("stackoverflow.com", "github.com", "developer.mozilla.org"),
        "academic": ("arxiv.org", "scholar.google.com", "ncbi.nlm.nih.gov"),
        "government": ("*.gov", "who.int", "un.org"),
        "finance": ("reuters.com", "bloomberg.com", "sec.gov"),
        "tech": ("techcrunch.com", "arstechnica.com", "wired.com"),
        "reference": ("wikipedia.org", "britannica.com", "merriam-webster.com"),
        "news": ("apnews.com", "reuters.com", "bbc.com", "theguardian.com", "npr.org"),
        "health": ("who.int", "cdc.gov", "nih.gov", "nhs.uk", "mayoclinic.org"),
        "legal": ("law.cornell.edu", "courtlistener.com", "justia.com", "eur-lex.europa.eu"),
        "sports": ("espn.com", "bbc.com/sport", "olympics.com", "skysports.com"),
    }
)
"""A host, `*.` and an ending, or a host with the beginning of a path."""
