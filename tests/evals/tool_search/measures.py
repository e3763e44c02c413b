"""What tool search is measured by: recall, definition tokens of a prompt, and the tool that a scripted model picks."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean

from wayline.contracts.agents import AgentConfig
from wayline.contracts.searched_tools import SearchTools
from wayline.contracts.tool_loading import always_loaded
from wayline.contracts.tools import ToolDefinition
from wayline.executor.prompt.builtin_tools import pin
from wayline.executor.prompt.tool_discovery import QUERY_CHARS_MAX, RESULTS
from wayline.llm.tokens import estimate_definitions
from wayline.tool_registry.tool_search import Entry, ToolIndex, choose, fuse
from wayline.tool_registry.tool_search.tool_words import stem, words

from ..calls.function_sets import cases
from .embedder import tool_embeddings
from .meaning import Latent
from .tool_sets import CALLS, CUTS, ToolSet, id_of, load

CATALOGUES = 10
"""Drawn of each set and size, always the same ones."""
Ranking = Callable[[str], Sequence[ToolDefinition]]
"""The tools that fit a task, the best first."""


@dataclass(frozen=True)
class Found:
    """What a search found of the right tools."""

    recall: dict[int, float]
    """The mean share of a task's right tools among the first ones, by how many are looked at."""
    complete: float
    """The share of tasks all of whose right tools are among the first ten."""


def found(judged: ToolSet, ranked: Ranking) -> Found:
    """Return what a ranking finds of the right tools of all tasks."""
    shares: dict[int, list[float]] = {cut: [] for cut in CUTS}
    for task, text in judged.tasks.items():
        names, right = [id_of(tool) for tool in ranked(text)], judged.right[task]
        for cut in CUTS:
            shares[cut].append(len(right & set(names[:cut])) / len(right))
    means = {cut: fmean(of_tasks) for cut, of_tasks in shares.items()}
    return Found(means, fmean(share == 1 for share in shares[max(CUTS)]))


def found_by_words(judged: ToolSet) -> Found:
    """Return what the search finds as it is without an embedder."""
    index = ToolIndex(Entry(tool) for tool in judged.tools)
    return found(judged, lambda task: [match.tool for match in index.search(task)[: max(CUTS)]])


def found_with_meaning(judged: ToolSet) -> Found:
    """Return what words find together with vectors that understand little."""
    index = ToolIndex(Entry(tool) for tool in judged.tools)
    return _fused(judged, index, Latent(index).similar)


def found_with_model(judged: ToolSet) -> Found:
    """Return what words find together with the vectors of an embedding model, asked over HTTP."""
    index = ToolIndex(Entry(tool) for tool in judged.tools)
    near: dict[str, Mapping[int, float]] = {}

    async def ask() -> None:
        async with tool_embeddings() as vectors:
            for task in judged.tasks.values():
                near[task] = await vectors.similar("t", task[:QUERY_CHARS_MAX], index)

    asyncio.run(ask())
    assert all(near.values()), "the model did not answer each time"
    return _fused(judged, index, near.__getitem__)


def _fused(judged: ToolSet, index: ToolIndex, similar: Callable[[str], Mapping[int, float]]) -> Found:
    def ranked(task: str) -> list[ToolDefinition]:
        both = fuse(index.search(task), similar(task), index)
        return [match.tool for match in both[: max(CUTS)]]

    return found(judged, ranked)


@dataclass(frozen=True)
class Offer:
    """A catalogue as a model is offered it by default: all of it, and what its prompts have with search."""

    all: tuple[ToolDefinition, ...]
    loaded: tuple[ToolDefinition, ...]
    catalogue: tuple[ToolDefinition, ...]

    @property
    def saved(self) -> float:
        """Return the share of a call's definition tokens that deferring saves, with our own tools counted in both."""
        return 1 - estimate_definitions(self.loaded) / estimate_definitions(self.all)


def saved_shares(name: str, size: int) -> list[float]:
    """Return what deferring saves of catalogues of a size, or of the whole set where it is smaller."""
    tools = _functions() if name == CALLS else load(name).tools
    draw = random.Random(size)
    return [_offer(draw.sample(tools, min(size, len(tools)))).saved for _ in range(CATALOGUES)]


def _functions() -> Sequence[ToolDefinition]:
    return tuple({tool.name: tool for case in cases() for tool in case.tools}.values())


def _offer(tools: Sequence[ToolDefinition]) -> Offer:
    catalogue = tuple(sorted(tools, key=lambda tool: tool.name))
    loaded = always_loaded(AgentConfig(), catalogue)
    deferred = [tool for tool in catalogue if tool not in loaded]
    return Offer(pin(("*",), catalogue), pin(("*",), loaded, deferred=deferred), catalogue)


@dataclass(frozen=True)
class Choice:
    """The shares of tasks for which a scripted model picks the right tool: shown all, and with search."""

    tasks: int
    of_all: float
    with_search: float


def choice(judged: ToolSet, size: int) -> Choice:
    """Let the same script pick among a whole catalogue and among what a search with the task's words shows.

    Half of a catalogue are tools that tasks need.
    """
    size = min(size, len(judged.tools))
    draw = random.Random(size)
    needed = sorted({next(iter(right)) for right in judged.right.values() if len(right) == 1})
    tools = {id_of(tool): tool for tool in judged.tools}
    of_all: list[bool] = []
    with_search: list[bool] = []
    for _ in range(CATALOGUES):
        names = set(draw.sample(needed, min(size // 2, len(needed))))
        names |= set(draw.sample(sorted(tools.keys() - names), size - len(names)))
        offer = _offer([tools[name] for name in names])
        index = ToolIndex(Entry(tool) for tool in offer.catalogue)
        for task, text in judged.tasks.items():
            if judged.right[task] <= names:
                of_all.append(_pick(text, offer.catalogue) in judged.right[task])
                with_search.append(_pick(text, _shown(text, offer, index)) in judged.right[task])
    return Choice(len(of_all), fmean(of_all), fmean(with_search))


def _shown(task: str, offer: Offer, index: ToolIndex) -> list[ToolDefinition]:
    """Return the tools that a model has seen after one search."""
    ask = SearchTools(tenant="t", query=task[:QUERY_CHARS_MAX], max_results=RESULTS)
    found = choose(index.search(ask.query), ask, searched=len(index))
    return [*(tool for tool in offer.loaded if tool in offer.catalogue), *(one.tool for one in found.tools)]


def _pick(task: str, shown: Sequence[ToolDefinition]) -> str | None:
    """Pick the tool that shares the most words with a task, for its length; of equal ones the first shown."""
    asked = _stems(task)

    def shared(tool: ToolDefinition) -> float:
        own = _stems(f"{tool.name.partition('__')[2]} {tool.description}")
        return len(asked & own) / (len(own) or 1) ** 0.5

    return id_of(max(shown, key=shared)) if shown else None


@lru_cache(50_000)
def _stems(text: str) -> frozenset[str]:
    return frozenset(map(stem, words(text)))
