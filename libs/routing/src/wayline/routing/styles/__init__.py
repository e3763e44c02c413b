"""How an agent weighs tools against its own knowledge: figures, and the static text at the head of its prompt."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from wayline.contracts.agents import AgentConfig, Style
from wayline.contracts.ids import RECENT
from wayline.contracts.tools import MEMORY_RETRIEVE, MEMORY_SAVE


class StyleFigures(NamedTuple):
    """What a style asks of a model; its text says the same."""

    tool_bias: float
    """The share of tasks that begin with a tool."""
    confidence_min: float
    """How sure a model has to be to answer without any tool."""


STYLES: dict[Style, StyleFigures] = {
    "tool_first": StyleFigures(0.8, 0.95),
    "balanced": StyleFigures(0.5, 0.8),
    "direct": StyleFigures(0.2, 0.6),
}


def system_prompt(config: AgentConfig) -> str:
    """Return the system prompt of an agent's jobs: its style, its instructions, what memory is, its language.

    The same for all jobs of an agent's version, so that it stays cached. An agent without tools has no use for a style,
    and only one that has tools of memory is told of it.
    """
    memory = tuple(
        name
        for name, tool in (("memory", MEMORY_RETRIEVE), ("saving", MEMORY_SAVE))
        if config.memory and tool in config.tools
    )
    return _joined(config.style if config.tools else None, config.instructions, memory, config.language)


@lru_cache(RECENT)
def _joined(style: Style | None, instructions: str, memory: tuple[str, ...], language: str | None) -> str:
    head = style_text(style) if style is not None else ""
    remembering = [_text(name) for name in memory]
    ending = f"Always answer in {language}, whatever the language of the question." if language else ""
    # The instructions of an agent that chooses neither stay as they were written, to the last byte.
    return "\n\n".join(part for part in (head, instructions, *remembering, ending) if part)


@lru_cache(len(STYLES))
def style_text(style: Style) -> str:
    """Return what a model is told of a style."""
    return _text(style)


@lru_cache(len(STYLES) + 2)
def _text(name: str) -> str:
    return files(__name__).joinpath(f"{name}.md").read_text().strip()


def confidence_needed(config: AgentConfig, *, used_tools: bool) -> float:
    """Return how sure a model has to be for its answer to stand."""
    if used_tools or config.style is None or not config.tools:
        return config.routing.confidence_min
    return max(config.routing.confidence_min, STYLES[config.style].confidence_min)
