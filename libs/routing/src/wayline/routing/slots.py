"""The model behind each slot of an agent, for one job: the first of its tier that can take the job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import get_args

from wayline.contracts.agents import AgentConfig, Routing
from wayline.contracts.chat import Attachment, FilePart, ImagePart
from wayline.contracts.errors import Reject
from wayline.contracts.events import Away, ToolsObserved
from wayline.contracts.jobs import SubmitJob
from wayline.contracts.models import MODEL_CHARS_MAX, PROVIDER_CHARS_MAX, ModelCard, Slot, Tier
from wayline.llm import media
from wayline.llm.inputs import kind_of
from wayline.llm.prices import LOCAL
from wayline.routing.estimate import first_prompt, undescribed
from wayline.routing.policy import TIER_OF

TIERS: tuple[Tier, ...] = get_args(Tier)
SLOTS: tuple[Slot, ...] = get_args(Slot)
QUOTED_MAX_CHARS = 80
UNDESCRIBED_KEPT = 256
"""Cards of models that nobody has described and that are kept at hand: most jobs name the same few."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a model must take to do a job at all."""

    tokens: int
    """Of the first prompt and the answer together, without what attachments take of it."""
    images: bool = False
    files: bool = False
    attachments: tuple[Attachment, ...] = ()

    def met_by(self, card: ModelCard) -> bool:
        """Return whether a model can do it."""
        able = (card.images or not self.images) and (card.files or not self.files)
        whole = self.tokens + sum(media.tokens(card, attachment) for attachment in self.attachments)
        return able and card.context_window >= whole and media.problem(card, self.attachments) is None

    def unmet_by(self, card: ModelCard) -> str:
        """Return why a model cannot do it."""
        return media.problem(card, self.attachments) or f"the job needs {self}"

    def __str__(self) -> str:
        extra = [name for name, wanted in (("images", self.images), ("files", self.files)) if wanted]
        return f"{self.tokens} tokens" + (f" with {' and '.join(extra)}" if extra else "")


def needs_of(
    job: SubmitJob,
    config: AgentConfig,
    *,
    kept_tokens: int = 0,
    attachments: Sequence[Attachment] = (),
    tools: ToolsObserved | None = None,
) -> Needs:
    """Return what this job needs; `kept_tokens` are those of a prefix that its session has had counted."""
    answer = job.options.max_output_tokens or config.max_output_tokens
    parts = (*config.pinned, *job.told_parts())
    # Of what nobody has described, only what it is called is known.
    unknown = undescribed(parts, attachments)
    kinds = {kind_of(attachment.media_type) for attachment in attachments}
    return Needs(
        tokens=first_prompt(parts, config, attachments, prefix_tokens=kept_tokens, tools=tools).tokens + answer,
        images="image" in kinds or any(isinstance(part, ImagePart) for part in unknown),
        files="pdf" in kinds or any(isinstance(part, FilePart) for part in unknown),
        attachments=tuple(attachments),
    )


@dataclass(frozen=True, slots=True)
class Slots:
    """The slots that can take a job, and those that have a model but none that can."""

    models: Mapping[Slot, ModelCard]
    unfit: frozenset[Slot] = frozenset()
    fallbacks: tuple[ModelCard, ...] = ()
    away: Mapping[Slot, Away] = field(default_factory=dict)
    """The model that a slot would have, were it not away: another of its tier stands there, or the same one."""

    def of(self, order: Iterable[Slot]) -> list[Slot]:
        """Return those of the given slots that can take the job now."""
        return [slot for slot in order if slot in self.models and not self.shut(slot)]

    def shut(self, slot: Slot) -> bool:
        """Return whether nobody of a slot can be called now."""
        return slot in self.away and self.away[slot].model == self.models[slot].name


def slots_of(
    routing: Routing, cards: Sequence[ModelCard], needs: Needs, *, away: Mapping[str, str] | None = None
) -> Slots:
    """Return what each slot means with these cards. Raises Reject for a name that is neither a tier nor a model.

    `away` are models, as `provider/model`, that cannot be called now, each with why. Where all are, none is: to wait
    for the right one is better than to wait for another.
    """
    away = away or {}
    models: dict[Slot, ModelCard] = {}
    missed: dict[Slot, Away] = {}
    unfit: set[Slot] = set()
    for slot in SLOTS:
        name = getattr(routing, slot) or (None if slot == "reasoning" else TIER_OF[slot])
        meant = meant_by(name, cards, tier=TIER_OF[slot], named=models.values()) if name else []
        fit = first_fit(meant, cards, needs)
        if fit is not None:
            models[slot] = fit
            if fit.name in away:
                missed[slot] = Away(slot=slot, model=fit.name, why=away[fit.name])
                models[slot] = first_fit([card for card in meant if card.name not in away], cards, needs) or fit
        elif meant:
            unfit.add(slot)
    fallbacks = fallbacks_of(routing, cards, needs, named=models.values())
    slots = Slots(models, frozenset(unfit), fallbacks, missed)
    return slots if slots.of(SLOTS) else replace(slots, away={})


def named_by(routing: Routing) -> set[str]:
    """Return what an agent's slots name: tiers and models."""
    return {name for slot in SLOTS if (name := getattr(routing, slot))}


def fallbacks_of(
    routing: Routing, cards: Sequence[ModelCard], needs: Needs, *, named: Iterable[ModelCard] = ()
) -> tuple[ModelCard, ...]:
    """Return who takes over when a model cannot be reached, of those that can take the job."""
    several = (meant_by(name, cards, tier="standard", named=named) for name in routing.fallbacks)
    fit = (first_fit(meant, cards, needs) for meant in several)
    return tuple({card.name: card for card in fit if card is not None}.values())


def first_fit(meant: Sequence[ModelCard], cards: Sequence[ModelCard], needs: Needs) -> ModelCard | None:
    """Return the first that can take the job. What nobody knows of a model is no reason to refuse it work."""
    return next((card for card in meant if needs.met_by(card) or card not in cards), None)


def meant_by(name: str, cards: Sequence[ModelCard], *, tier: Tier, named: Iterable[ModelCard] = ()) -> list[ModelCard]:
    """Return a tier's models in the catalogue's order, or the one that is named; unknown, it stands in the given tier.

    `named` are models that another slot has named already: an unknown one has one tier in all of them.

    A local model is never meant by a tier: it answers by quoting, which is not what anybody who names a tier wants.
    """
    if name in TIERS:
        return [card for card in cards if card.tier == name and card.provider not in LOCAL]
    return [card_of(name, (*cards, *named), tier=tier)]


def card_of(name: str, cards: Sequence[ModelCard], *, tier: Tier) -> ModelCard:
    """Return the card of a model; of one that nobody has described, a card that says the least and costs unknown."""
    known = next((card for card in cards if card.name == name), None)
    if known is not None:
        return known
    provider, _, model = name.partition("/")
    if not provider or not model:
        raise Reject(f"model {quoted(name)} is not of the form provider/model", code="invalid_model", status=422)
    if len(provider) > PROVIDER_CHARS_MAX or len(model) > MODEL_CHARS_MAX:
        raise Reject(
            f"model {quoted(name)} is too long: a provider has at most {PROVIDER_CHARS_MAX} characters, a model "
            f"{MODEL_CHARS_MAX}",
            code="invalid_model",
            status=422,
        )
    return _undescribed_card(provider, model, "flash" if provider in LOCAL else tier)


@lru_cache(UNDESCRIBED_KEPT)
def _undescribed_card(provider: str, model: str, tier: Tier) -> ModelCard:
    return ModelCard(provider=provider, model=model, tier=tier)


def quoted(name: str) -> str:
    """Return a name that a user gave, for a sentence about it: the beginning of one that is too long."""
    return repr(name if len(name) <= QUOTED_MAX_CHARS else f"{name[:QUOTED_MAX_CHARS]}…")
