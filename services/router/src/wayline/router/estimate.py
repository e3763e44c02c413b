"""What a job will probably cost on a model, before anything ran. The sizes are guesses, and all of them are here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import Attachment, Part, TextPart
from wayline.contracts.jobs import SubmitJob
from wayline.contracts.models import ModelCard, Slot
from wayline.contracts.money import Usage, usd
from wayline.llm import media
from wayline.llm.prices import cost, worst
from wayline.llm.thinking import output_max, thinking_budget
from wayline.llm.tokens import estimate, most

Level = Literal["simple", "moderate", "complex"]

STEPS: Mapping[Level, int] = {"simple": 2, "moderate": 3, "complex": 5}
"""Calls of a job that has tools; one without them makes one call."""
OUTPUT_TOKENS: Mapping[Level, int] = {"simple": 150, "moderate": 400, "complex": 900}
"""What a call writes."""
THINKING_TOKENS: Mapping[Level, int] = {"simple": 500, "moderate": 2_000, "complex": 5_000}
"""What a call in the reasoning slot thinks before it writes, where its model decides how much."""
TOOLS_TOKENS = 600
"""The definitions of an agent's tools."""
TOOL_RESULT_TOKENS = 800
"""What the tools of a step add to the next prompt."""
PART_TOKENS = 1_500
"""An image or a file of which nothing more is known."""
LEAST_OUTPUT_TOKENS = 20
"""The shortest answer."""
FIRST_PIECES = 2
"""Messages of the first prompt: the instructions and the input. An agent's pinned documents are one more."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A job's size, as far as it can be known before it runs."""

    prompt_tokens: int
    """Of the first call, without what attachments take of it."""
    output_tokens: int
    output_max: int
    steps: int
    steps_max: int
    has_tools: bool
    known_tokens: int = 0
    """Of the first call's prompt, without what is guessed of it, nor what attachments take."""
    pieces: int = FIRST_PIECES
    """Messages of the first prompt."""
    thinking_tokens: int = 0
    """What a call thinks in the reasoning slot, where no number is asked for."""
    cap_usd: Decimal | None = None
    attachments: tuple[Attachment, ...] = ()

    def first_on(self, card: ModelCard) -> int:
        """The first prompt, as this model counts it."""
        return self.prompt_tokens + sum(media.tokens(card, attachment) for attachment in self.attachments)

    def most_on(self, card: ModelCard, estimated: int) -> int:
        """The most that a prompt of so many estimated tokens, and of the attachments, can turn out to have there."""
        beside = sum(media.most_tokens(card, attachment) for attachment in self.attachments)
        return min(most(estimated, pieces=self.pieces) + beside, card.context_window)

    @property
    def growth(self) -> int:
        """Tokens by which each prompt is longer than the one before."""
        return self.output_tokens + (TOOL_RESULT_TOKENS if self.has_tools else 0)


def shape_of(
    job: SubmitJob,
    config: AgentConfig,
    *,
    level: Level = "moderate",
    kept_tokens: int = 0,
    cap_usd: Decimal | None = None,
    attachments: Sequence[Attachment] = (),
) -> Shape:
    """The size of a job; `kept_tokens` are those of a prefix that its session has had counted."""
    options, has_tools, parts = job.options, bool(config.tools), (*config.pinned, *job.parts())
    steps_max = options.max_steps or config.max_steps
    output_max = options.max_output_tokens or config.max_output_tokens
    return Shape(
        prompt_tokens=first_prompt(parts, config, attachments, prefix_tokens=kept_tokens),
        output_tokens=min(OUTPUT_TOKENS[level], output_max),
        output_max=output_max,
        steps=min(STEPS[level] if has_tools else 1, steps_max),
        steps_max=steps_max if has_tools else 1,
        has_tools=has_tools,
        known_tokens=estimate(config.instructions) + said(parts),
        pieces=FIRST_PIECES + bool(config.pinned),
        thinking_tokens=THINKING_TOKENS[level],
        cap_usd=cap_usd,
        attachments=tuple(attachments),
    )


def first_prompt(
    parts: Sequence[Part], config: AgentConfig, attachments: Sequence[Attachment] = (), *, prefix_tokens: int = 0
) -> int:
    """Tokens of the instructions, the tools and the parts; the first two are guessed where nobody has counted them.

    Without the attachments: each model counts them its way.
    """
    prefix = prefix_tokens or estimate(config.instructions) + (TOOLS_TOKENS if config.tools else 0)
    return prefix + said(parts) + len(undescribed(parts, attachments)) * PART_TOKENS


def said(parts: Sequence[Part]) -> int:
    """Tokens of what parts say in words."""
    return sum(estimate(part.text) for part in parts if isinstance(part, TextPart))


def undescribed(parts: Sequence[Part], attachments: Sequence[Attachment]) -> list[Part]:
    """The images and files of which nothing more is known."""
    known = {attachment.document_id for attachment in attachments}
    return [part for part in parts if not isinstance(part, TextPart) and part.document_id not in known]


def expected(card: ModelCard, shape: Shape, *, slot: Slot = "primary", cached_tokens: int = 0) -> Decimal | None:
    """The probable cost; None: no price is known. So many of the first prompt's tokens are in the provider's cache."""
    total = Decimal(0)
    kept, output = cached_tokens, _output(card, shape, slot)
    for step in range(shape.steps):
        prompt = shape.first_on(card) + step * shape.growth
        call = cost(card, _usage(card, prompt, min(kept, prompt), output))
        if call is None:
            return None
        total, kept = total + call, prompt
    return usd(total)


def _output(card: ModelCard, shape: Shape, slot: Slot) -> int:
    """What a call writes, with what it thinks: the whole number where one is asked for, else a guess."""
    thinks = thinking_budget(card, slot)
    if not thinks and slot == "reasoning" and card.reasoning != "none":
        thinks = shape.thinking_tokens
    return min(shape.output_tokens + thinks, output_max(card, slot, shape.output_max))


def _usage(card: ModelCard, prompt: int, kept: int, output: int) -> Usage:
    read = kept if card.cache.kind != "none" and kept >= card.cache.min_tokens else 0
    written = prompt - read if card.cache.kind == "breakpoints" and prompt >= card.cache.min_tokens else 0
    return Usage(input=prompt, cache_read=read, cache_write_5m=written, output=output)


def first_call(card: ModelCard, shape: Shape, *, slot: Slot = "primary") -> Decimal | None:
    """What has to be held for a job's first call at least: the executor adds the tools, which only it knows."""
    return worst(card, shape.most_on(card, shape.known_tokens), output_max(card, slot, shape.output_max))


def span(card: ModelCard, shape: Shape, *, slot: Slot = "primary") -> tuple[Decimal, Decimal] | None:
    """The least and the most: one call that finds all cached and says little; every step at its worst, to the cap."""
    first = shape.first_on(card)
    least = cost(
        card, Usage(input=first, cache_read=_usage(card, first, first, 0).cache_read, output=LEAST_OUTPUT_TOKENS)
    )
    if least is None:
        return None
    writes = output_max(card, slot, shape.output_max)
    grown = (shape.steps_max - 1) * (writes + (TOOL_RESULT_TOKENS if shape.has_tools else 0))
    call = worst(card, shape.most_on(card, shape.prompt_tokens + grown), writes)
    if call is None:
        return None
    dearest = usd(call * shape.steps_max)
    return least, dearest if shape.cap_usd is None else max(least, min(dearest, shape.cap_usd))
