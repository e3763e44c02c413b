"""What a job will probably cost on a model, before anything ran: by what the agent's recent jobs used, else guesses.

All of the guesses are here. What a call may cost at most is no guess: it is what its room for output can cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from math import ceil
from typing import Literal, NamedTuple

from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import Attachment, Part, TextPart
from wayline.contracts.events import Observed, ToolsObserved
from wayline.contracts.jobs import SubmitJob
from wayline.contracts.models import Effort, ModelCard, Slot
from wayline.contracts.money import Usage, usd
from wayline.llm import media
from wayline.llm.output_room import room_needed, room_within
from wayline.llm.prices import cost, is_known, worst
from wayline.llm.thinking import output_max, thinking_budget, thinking_room
from wayline.llm.tokens import estimate, most
from wayline.routing.step_limit import adapted
from wayline.routing.styles import system_prompt

Level = Literal["simple", "moderate", "complex"]

STEPS: Mapping[Level, int] = {"simple": 2, "moderate": 3, "complex": 5}
"""Calls of a job that has tools; one without them makes one call."""
OUTPUT_TOKENS: Mapping[Level, int] = {"simple": 150, "moderate": 400, "complex": 900}
"""What a call writes."""
THINKING_TOKENS: Mapping[Level, int] = {"simple": 500, "moderate": 1_000, "complex": 2_000}
"""What a job in the reasoning slot thinks before its first words, where its model decides how much."""
TOOLS_TOKENS = 600
"""The definitions of an agent's tools, before its first job has shown how large they are."""
TOOL_RESULT_TOKENS = 800
"""What the tools of a step add to the next prompt."""
PART_TOKENS = 1_500
"""An image or a file of which nothing more is known."""
LEAST_OUTPUT_TOKENS = 20
"""The shortest answer."""
INSTRUCTIONS_KEPT = 64
"""Instructions of agents whose tokens are kept at hand: a decision asks for them three times, and they may be long."""
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
    """What a job thinks, where it is to think and no number is asked for."""
    cap_usd: Decimal | None = None
    attachments: tuple[Attachment, ...] = ()
    effort: Effort | None = None
    """How hard the agent wants its models to think; None: it does not say."""
    exact: bool = False
    """The job itself says how long its answers may be: they get that room, whatever it costs."""
    observed: Mapping[tuple[str, Slot], Observed] = field(default_factory=dict)
    """What the agent's recent jobs used, by model and slot."""

    def first_on(self, card: ModelCard) -> int:
        """Return the first prompt, as this model counts it."""
        return self.prompt_tokens + sum(media.tokens(card, attachment) for attachment in self.attachments)

    def counted_on(self, card: ModelCard, slot: Slot) -> int:
        """Return the first prompt as its provider will probably count it: corrected by what it counted of late."""
        observed = self.observed_on(card, slot)
        density = observed.density if observed is not None else None
        return self.first_on(card) if density is None else ceil(self.first_on(card) * density)

    def most_on(self, card: ModelCard, estimated: int) -> int:
        """Return the most tokens that a prompt of `estimated` tokens and the attachments can have there."""
        beside = sum(media.most_tokens(card, attachment) for attachment in self.attachments)
        return min(most(estimated, pieces=self.pieces) + beside, card.context_window)

    def observed_on(self, card: ModelCard, slot: Slot) -> Observed | None:
        """Return what the agent's recent jobs used of a model in a slot."""
        return self.observed.get((card.name, slot))

    def most_output(self, card: ModelCard, slot: Slot) -> int:
        """Return the most that a call can write there, with what it thinks."""
        return output_max(card, slot, self.output_max, effort=self.effort)

    def growth(self, output_tokens: int) -> int:
        """Return tokens by which each prompt is longer than the one before."""
        return output_tokens + (TOOL_RESULT_TOKENS if self.has_tools else 0)


def shape_of(
    job: SubmitJob,
    config: AgentConfig,
    *,
    level: Level = "moderate",
    steps_max: int | None = None,
    steps_level: Level | None = None,
    kept_tokens: int = 0,
    cap_usd: Decimal | None = None,
    attachments: Sequence[Attachment] = (),
    observed: Sequence[Observed] = (),
    tools: ToolsObserved | None = None,
) -> Shape:
    """Return the size of a job; `kept_tokens` are those of a prefix that its session has had counted.

    `steps_max`: its step limit, where it is known; else `steps_level` is the complexity that the limit follows, if any.
    """
    options, has_tools, parts = job.options, bool(config.tools), (*config.pinned, *job.told_parts())
    first = first_prompt(parts, config, attachments, prefix_tokens=kept_tokens, tools=tools)
    steps_max = steps_max or adapted(options.max_steps or config.max_steps, steps_level)
    output_max = options.max_output_tokens or config.max_output_tokens
    return Shape(
        prompt_tokens=first.tokens,
        output_tokens=min(OUTPUT_TOKENS[level], output_max),
        output_max=output_max,
        steps=min(STEPS[level] if has_tools else 1, steps_max),
        steps_max=steps_max if has_tools else 1,
        has_tools=has_tools,
        known_tokens=first.known_tokens,
        pieces=FIRST_PIECES + bool(config.pinned) + (tools.count if tools and has_tools else 0),
        thinking_tokens=THINKING_TOKENS[level],
        cap_usd=cap_usd,
        attachments=tuple(attachments),
        effort=config.effort,
        exact=options.max_output_tokens is not None,
        observed={(one.model, one.slot): one for one in observed},
    )


class FirstPrompt(NamedTuple):
    """The tokens of a job's first prompt, without those of its attachments: each model counts them its way."""

    tokens: int
    known_tokens: int
    """Without what is guessed of it."""


def first_prompt(
    parts: Sequence[Part],
    config: AgentConfig,
    attachments: Sequence[Attachment] = (),
    *,
    prefix_tokens: int = 0,
    tools: ToolsObserved | None = None,
) -> FirstPrompt:
    """Count the tokens of instructions, tools and parts; tools are guessed where nobody has counted them."""
    instructions, words = _instructions_tokens(system_prompt(config)), text_tokens(parts)
    counted = tools.tokens if tools and config.tools else 0
    guessed = TOOLS_TOKENS if config.tools and not tools else 0
    prefix = prefix_tokens or instructions + counted + guessed
    unknown = len(undescribed(parts, attachments)) * PART_TOKENS
    return FirstPrompt(prefix + words + unknown, instructions + words + counted)


@lru_cache(INSTRUCTIONS_KEPT)
def _instructions_tokens(instructions: str) -> int:
    return estimate(instructions)


def text_tokens(parts: Sequence[Part]) -> int:
    """Return tokens of what parts say in words."""
    return sum(estimate(part.text) for part in parts if isinstance(part, TextPart))


def undescribed(parts: Sequence[Part], attachments: Sequence[Attachment]) -> list[Part]:
    """Return the images and files of which nothing more is known."""
    known = {attachment.document_id for attachment in attachments}
    return [part for part in parts if not isinstance(part, TextPart) and part.document_id not in known]


def expected(card: ModelCard, shape: Shape, *, slot: Slot = "primary", cached_tokens: int = 0) -> Decimal | None:
    """Estimate the cost; None: no price is known. `cached_tokens` of the first prompt are in the provider's cache."""
    if not is_known(card):
        return None
    total = Decimal(0)
    kept, prompt = cached_tokens, shape.counted_on(card, slot)
    for output in _outputs(card, shape, slot):
        call = cost(card, _usage(card, prompt, min(kept, prompt), output))
        if call is None:
            return None
        total, kept, prompt = total + call, prompt, prompt + shape.growth(output)
    return usd(total)


def _outputs(card: ModelCard, shape: Shape, slot: Slot) -> list[int]:
    """Estimate what each call of a job writes, thinking included: as its agent's jobs did, else by guess."""
    most = shape.most_output(card, slot)
    observed = shape.observed_on(card, slot)
    if observed is not None:
        return [min(observed.output_tokens, most)] * min(observed.calls, shape.steps_max)
    by_number = thinking_budget(card, slot)
    guessed = 0 if by_number else min(shape.thinking_tokens, thinking_room(card, slot, shape.effort))
    # A model that decides by itself thinks most before its first words.
    thinks = [by_number + guessed, *[by_number] * (shape.steps - 1)]
    return [min(shape.output_tokens + thought, most) for thought in thinks]


def _usage(card: ModelCard, prompt: int, kept: int, output: int) -> Usage:
    read = kept if card.cache.kind != "none" and kept >= card.cache.min_tokens else 0
    written = prompt - read if card.cache.kind == "breakpoints" and prompt >= card.cache.min_tokens else 0
    return Usage(input=prompt, cache_read=read, cache_write_5m=written, output=output)


def least_call(card: ModelCard, shape: Shape, *, slot: Slot = "primary") -> Decimal | None:
    """Price the job's first call where it gets no more room for its output than it needs; None: no price is known."""
    if not is_known(card):
        return None
    return worst(card, shape.most_on(card, shape.known_tokens), _needed(card, shape, slot))


def first_call(card: ModelCard, shape: Shape, *, slot: Slot = "primary") -> Decimal | None:
    """Price what is held for a job's first call: all the room that it wants, as far as the job's cap pays it.

    More than the cap where not even what it needs can be paid; None where no price is known. The executor adds the
    tools where none were observed.
    """
    if not is_known(card):
        return None
    prompt, wanted = shape.most_on(card, shape.known_tokens), shape.most_output(card, slot)
    room = room_within(card, prompt, wanted=wanted, needed=_needed(card, shape, slot), usd_max=shape.cap_usd)
    return worst(card, prompt, room)


def _needed(card: ModelCard, shape: Shape, slot: Slot) -> int:
    return room_needed(
        card,
        slot,
        shape.output_max,
        effort=shape.effort,
        observed=shape.observed_on(card, slot),
        exact=shape.exact,
    )


def span(card: ModelCard, shape: Shape, *, slot: Slot = "primary") -> tuple[Decimal, Decimal] | None:
    """Return the least and the most: one call that finds all cached and says little; every step at its worst."""
    if not is_known(card):
        return None
    first = shape.first_on(card)
    least = cost(
        card, Usage(input=first, cache_read=_usage(card, first, first, 0).cache_read, output=LEAST_OUTPUT_TOKENS)
    )
    if least is None:
        return None
    writes = shape.most_output(card, slot)
    grown = (shape.steps_max - 1) * (writes + (TOOL_RESULT_TOKENS if shape.has_tools else 0))
    call = worst(card, shape.most_on(card, shape.prompt_tokens + grown), writes)
    if call is None:
        return None
    dearest = usd(call * shape.steps_max)
    return least, dearest if shape.cap_usd is None else max(least, min(dearest, shape.cap_usd))
