"""What a job will probably cost on a model, before anything ran. The sizes are guesses, and all of them are here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import Attachment, Part, TextPart
from wayline.contracts.jobs import SubmitJob
from wayline.contracts.models import ModelCard
from wayline.contracts.money import Usage, usd
from wayline.llm import media
from wayline.llm.prices import cost, worst
from wayline.llm.tokens import estimate

Level = Literal["simple", "moderate", "complex"]

STEPS: Mapping[Level, int] = {"simple": 2, "moderate": 3, "complex": 5}
"""Calls of a job that has tools; one without them makes one call."""
OUTPUT_TOKENS: Mapping[Level, int] = {"simple": 150, "moderate": 400, "complex": 900}
"""What a call writes."""
TOOLS_TOKENS = 600
"""The definitions of an agent's tools."""
TOOL_RESULT_TOKENS = 800
"""What the tools of a step add to the next prompt."""
PART_TOKENS = 1_500
"""An image or a file of which nothing more is known."""
LEAST_OUTPUT_TOKENS = 20
"""The shortest answer."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A job's size, as far as it can be known before it runs."""

    prompt_tokens: int
    """Of the first call, without what attachments take of it; what a session said before is part of it."""
    output_tokens: int
    output_max: int
    steps: int
    steps_max: int
    has_tools: bool
    cap_usd: Decimal | None = None
    attachments: tuple[Attachment, ...] = ()

    def first_on(self, card: ModelCard) -> int:
        """The first prompt, as this model counts it."""
        return self.prompt_tokens + sum(media.tokens(card, attachment) for attachment in self.attachments)

    def most_on(self, card: ModelCard) -> int:
        """The same where attachments take the most that they can."""
        most = self.prompt_tokens + sum(media.most_tokens(card, attachment) for attachment in self.attachments)
        return min(most, card.context_window) if self.attachments else most

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
    """The size of a job; `kept_tokens` is the prompt its session has already."""
    options, has_tools = job.options, bool(config.tools)
    steps_max = options.max_steps or config.max_steps
    output_max = options.max_output_tokens or config.max_output_tokens
    return Shape(
        prompt_tokens=kept_tokens + first_prompt(job, config, attachments),
        output_tokens=min(OUTPUT_TOKENS[level], output_max),
        output_max=output_max,
        steps=min(STEPS[level] if has_tools else 1, steps_max),
        steps_max=steps_max if has_tools else 1,
        has_tools=has_tools,
        cap_usd=cap_usd,
        attachments=tuple(attachments),
    )


def first_prompt(job: SubmitJob, config: AgentConfig, attachments: Sequence[Attachment] = ()) -> int:
    """Tokens of the instructions, the tools and the input, but for the attachments: each model counts them its way."""
    parts = (*config.pinned, *job.parts())
    said = sum(estimate(part.text) for part in parts if isinstance(part, TextPart))
    said += len(undescribed(parts, attachments)) * PART_TOKENS
    return estimate(config.instructions) + said + (TOOLS_TOKENS if config.tools else 0)


def undescribed(parts: Sequence[Part], attachments: Sequence[Attachment]) -> list[Part]:
    """The images and files of which nothing more is known."""
    known = {attachment.document_id for attachment in attachments}
    return [part for part in parts if not isinstance(part, TextPart) and part.document_id not in known]


def expected(card: ModelCard, shape: Shape, *, cached_tokens: int = 0) -> Decimal | None:
    """The probable cost; None: no price is known. So many of the first prompt's tokens are in the provider's cache."""
    total = Decimal(0)
    kept = cached_tokens
    for step in range(shape.steps):
        prompt = shape.first_on(card) + step * shape.growth
        call = cost(card, _usage(card, prompt, min(kept, prompt), shape.output_tokens))
        if call is None:
            return None
        total, kept = total + call, prompt
    return usd(total)


def _usage(card: ModelCard, prompt: int, kept: int, output: int) -> Usage:
    read = kept if card.cache.kind != "none" and kept >= card.cache.min_tokens else 0
    written = prompt - read if card.cache.kind == "breakpoints" and prompt >= card.cache.min_tokens else 0
    return Usage(input=prompt, cache_read=read, cache_write_5m=written, output=min(output, card.output_limit))


def worst_call(card: ModelCard, prompt_tokens: int, output_max: int) -> Decimal | None:
    """The most that one call of this length can cost: the model writes no more at once than its card says."""
    return worst(card, prompt_tokens, min(output_max, card.output_limit))


def span(card: ModelCard, shape: Shape) -> tuple[Decimal, Decimal] | None:
    """The least and the most: one call that finds all cached and says little; every step at its worst, to the cap."""
    first = shape.first_on(card)
    least = cost(
        card, Usage(input=first, cache_read=_usage(card, first, first, 0).cache_read, output=LEAST_OUTPUT_TOKENS)
    )
    longest = shape.most_on(card) + (shape.steps_max - 1) * (
        shape.output_max + (TOOL_RESULT_TOKENS if shape.has_tools else 0)
    )
    most = worst_call(card, min(longest, card.context_window), shape.output_max)
    if least is None or most is None:
        return None
    most = usd(most * shape.steps_max)
    return least, most if shape.cap_usd is None else max(least, min(most, shape.cap_usd))
