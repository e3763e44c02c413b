"""Searching the knowledge base, and for each hit why it was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import VisitorDependency
from wayline.console.pages.form_values import WrongField, names_of, number_of, object_of, whole_of
from wayline.console.pages.frame import Frame, show
from wayline.console.pages.knowledge.document import address_of
from wayline.console.pages.refusal import reason_of

router = APIRouter()
TEMPLATE = "knowledge/search.html"
BAR = 1_000
"""Units of a whole bar."""
MODES: Final = (("hybrid", "words and meaning"), ("keyword", "words"), ("vector", "meaning"))
TYPED: Final = {
    "mode": "hybrid",
    "weight": "",
    "count": "10",
    "least": "",
    "collections": "",
    "audience": "",
    "where": "",
}
"""The fields beside the query, with what they are where nothing was typed."""
SWITCHES: Final = ("join", "all", "plain")
LEGS: Final = (("keyword", "words"), ("vector", "meaning"))


@dataclass(frozen=True, slots=True)
class Leg:
    """How one way of searching judged a passage."""

    title: str
    rank: int
    score: float
    bar: int


@dataclass(frozen=True, slots=True)
class Found:
    """A hit, and why it is one."""

    hit: dict[str, Any]
    bar: int
    legs: tuple[Leg, ...]
    covered: float | None
    duplicates: int
    joined: int

    @property
    def address(self) -> str:
        return address_of(self.hit["document_id"])

    @property
    def places(self) -> tuple[str, ...]:
        """Return where the passage stands: its page and its headings, as far as its metadata says so."""
        page, headings = (self.hit["metadata"].get(name) for name in ("page", "headings"))
        path = " \u203a ".join(map(str, headings)) if isinstance(headings, list) else str(headings or "")
        return tuple(place for place in (f"page {page}" if page else "", path) if place)


@dataclass(frozen=True, slots=True)
class Search:
    """What the page shows: the form, and what was found."""

    query: str = ""
    typed: dict[str, str] = field(default_factory=lambda: dict(TYPED))
    result: dict[str, Any] | None = None
    hits: tuple[Found, ...] = ()
    problem: str = ""


def body_of(query: str, typed: Mapping[str, str]) -> dict[str, Any]:
    """Return what is asked of the API; what was left empty is its own choice. Raises WrongField."""
    filters: dict[str, Any] = {}
    if collections := names_of(typed["collections"]):
        filters["collections"] = collections
    if where := object_of(typed["where"], what="Metadata"):
        filters["where"] = {key: told if isinstance(told, dict) else {"equals": told} for key, told in where.items()}
    asked: dict[str, Any] = {
        "query": query,
        "mode": typed["mode"],
        "top_k": whole_of(typed["count"], what="How many"),
        "vector_weight": number_of(typed["weight"], what="Weight"),
        "min_score": number_of(typed["least"], what="Least score"),
        "audience": names_of(typed["audience"]) or None,
        "filter": filters,
        "syntax": "plain" if typed.get("plain") else None,
        "join_neighbours": bool(typed.get("join")),
        "fold_duplicates": not typed.get("all"),
    }
    return {name: value for name, value in asked.items() if value is not None}


def found_of(hits: list[dict[str, Any]]) -> tuple[Found, ...]:
    """Return hits with their bars: scores and cosines go from 0 to 1, weights of words have no end but their best."""
    best = max((hit["why"].get("keyword", {}).get("score", 0.0) for hit in hits), default=0.0)
    return tuple(_found(hit, best_words=best) for hit in hits)


def _found(hit: dict[str, Any], *, best_words: float) -> Found:
    why = hit["why"]
    legs = tuple(
        Leg(
            title,
            told["rank"],
            told["score"],
            _bar(told["score"] / (best_words or 1.0) if leg == "keyword" else told["score"]),
        )
        for leg, title in LEGS
        if (told := why.get(leg))
    )
    counts = {name: len(why.get(name) or ()) for name in ("duplicates", "joined")}
    return Found(hit, _bar(hit["score"]), legs, why.get("covered"), **counts)


def _bar(share: float) -> int:
    return round(min(max(share, 0.0), 1.0) * BAR)


async def read(client: Client, query: str, typed: dict[str, str]) -> Search:
    """Ask the API for passages; a refused question is shown beside the form that asked it."""
    if not query:
        return Search(query, typed)
    try:
        result = await client.post("/v1/search", body_of(query, typed))
    except WrongField as error:
        return Search(query, typed, problem=str(error))
    except ApiError as error:
        return Search(query, typed, problem=reason_of(error))
    return Search(query, typed, result, found_of(result["hits"]))


@router.get("/knowledge/search")
async def search(
    request: Request, visitor: VisitorDependency, q: Annotated[str, Query(max_length=2_000)] = ""
) -> HTMLResponse:
    """Show the passages that a search finds."""
    frame = Frame.of(request, visitor, title="Search", section="/knowledge")
    sent = request.query_params
    typed = {name: sent.get(name, "").strip() or usual for name, usual in TYPED.items()}
    typed |= {name: "on" if sent.get(name) else "" for name in SWITCHES}
    page = await read(visitor.client, q.strip(), typed)
    return await show(request, TEMPLATE, frame, status=422 if page.problem else 200, page=page, modes=MODES)
