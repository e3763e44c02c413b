"""Models: what each can do and what it costs. Data, not code; a tenant can add its own."""

from __future__ import annotations

import re
from datetime import date, time
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, field_validator

from wayline.contracts.base import Frozen, Request
from wayline.contracts.image_models import ImageModel

Tier = Literal["flash", "standard", "premium", "reasoning"]
"""Where a model stands in the catalogue."""

Slot = Literal["fast", "primary", "escalation", "reasoning"]
"""What an agent uses a model for; a slot names a model or a tier."""

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""How hard a reasoning model thinks."""

TOKENS_MAX = 1_000_000_000
RATE_MAX = 1_000_000
STEPS_MAX = 16
PROVIDER_CHARS_MAX = 64
MODEL_CHARS_MAX = 200

_SEGMENT = r"[A-Za-z0-9@~_][A-Za-z0-9@~_.:+#=,-]*"
PROVIDER_PATTERN = r"^[a-z0-9][a-z0-9_-]*$"
MODEL_PATTERN = rf"^{_SEGMENT}(/{_SEGMENT})*$"
ONE_LINE = r"^[^\x00-\x1f\x7f]*$"

Rate = Annotated[Decimal, Field(ge=0, le=RATE_MAX)]
Tokens = Annotated[int, Field(ge=1, le=TOKENS_MAX)]


class Rates(Frozen):
    """Dollars per million tokens. A cache rate that is None is the input's: the provider does not tell them apart."""

    input: Rate
    output: Rate
    cache_read: Rate | None = None
    cache_write_5m: Rate | None = None
    cache_write_1h: Rate | None = None


class RatesAbove(Frozen):
    """Other rates for the whole of a request whose input has more tokens than this."""

    tokens: Tokens
    rates: Rates


class Tariff(Frozen):
    """Rates by the size of a request."""

    rates: Rates
    above: tuple[RatesAbove, ...] = Field(
        default=(), max_length=STEPS_MAX, description="By rising number of tokens; sorted where they come otherwise."
    )

    @field_validator("above")
    @classmethod
    def _rising(cls, above: tuple[RatesAbove, ...]) -> tuple[RatesAbove, ...]:
        return tuple(sorted(above, key=lambda step: step.tokens))


class TariffWhen(Tariff):
    """Other rates at some times, all UTC: from a day on, or between two times of each day, or both together."""

    since: date | None = None
    daily_from: time | None = None
    daily_until: time | None = Field(default=None, description="Not included; before `daily_from`: of the next day.")


class Prices(Tariff):
    """What a model costs, and who says so."""

    when: tuple[TariffWhen, ...] = Field(
        default=(), max_length=STEPS_MAX, description="The last one that applies holds instead of the rates above."
    )
    source: str = Field(
        default="",
        max_length=300,
        pattern=ONE_LINE,
        description="Where the figures are from, with their date or version.",
    )


class CacheRules(Frozen):
    """How a provider keeps prompts.

    `breakpoints`: what is marked is kept; `automatic`: the longest known prefix; `none`: nothing is.
    """

    kind: Literal["none", "automatic", "breakpoints"] = "none"
    min_tokens: int = Field(default=1_024, ge=0, le=TOKENS_MAX, description="Shorter prefixes are silently not kept.")
    breakpoints_max: int = Field(default=4, ge=0, le=1_000)
    lookback_blocks: int | None = Field(
        default=None,
        ge=0,
        le=1_000_000,
        description="How many content blocks before a breakpoint an older entry is looked for; for people to know.",
    )
    ttl_s: float | None = Field(default=None, gt=0, description="How long what nobody reads is kept; None: not told.")
    prompt_cache_key: bool = Field(
        default=False,
        description="Chat Completions: takes a `prompt_cache_key`; endpoints that do not know it may refuse it.",
    )


class MediaRules(Frozen):
    """How a model counts images and the pages of PDFs, and what its provider takes of them; None: nobody has said."""

    patch_px: int = Field(default=28, ge=1, le=10_000, description="Of an image each square of so many pixels counts,")
    patch_tokens: Decimal = Field(default=Decimal(1), gt=0, le=1_000, description="so many tokens, begun squares too,")
    patches_max: Tokens | None = Field(default=None, description="and larger images are made smaller to so many.")
    page_tokens: Tokens = Field(default=1_600, description="A PDF's page as an image; its text counts beside it.")
    images_max: int | None = Field(default=None, ge=0, description="In one request.")
    image_max_bytes: int | None = Field(default=None, ge=0, description="Before it is encoded.")
    image_max_px: int | None = Field(default=None, ge=1, description="Of its longer side.")
    pages_max: int | None = Field(default=None, ge=0, description="Of all PDFs in one request.")
    request_max_bytes: int | None = Field(default=None, ge=0, description="All of it, before it is encoded.")


class ModelCard(Frozen):
    """One model of the catalogue: what the router chooses by and what an adapter must know."""

    provider: str = Field(min_length=1, max_length=PROVIDER_CHARS_MAX)
    model: str = Field(min_length=1, max_length=MODEL_CHARS_MAX, description="The name that is sent to the provider.")
    tier: Tier
    context_window: Tokens = Field(default=128_000, description="Tokens of prompt and answer together.")
    output_limit: Tokens = Field(default=8_192, description="Tokens of one answer at most.")
    tools: Literal["native", "json"] = Field(
        default="native", description="`json`: asks for tools in the JSON protocol, as text."
    )
    images: bool = False
    files: bool = False
    structured_output: bool = Field(default=False, description="Takes a JSON Schema for its answer.")
    temperature: bool = Field(default=False, description="Takes a temperature; else it is dropped and noted.")
    reasoning: Literal["none", "adaptive", "effort", "budget"] = Field(
        default="none", description="How thinking is asked for: it decides itself, by effort, or by a token budget."
    )
    efforts: tuple[Effort, ...] = Field(default=(), max_length=7)
    forced_tools: bool = Field(default=False, description="Can be made to call a tool; for people to know.")
    system_messages: bool = Field(default=False, description="Takes system messages between the others.")
    tool_references: bool = Field(
        default=False,
        description="Takes tools whose loading is deferred, and results that refer to them; any other is sent text.",
    )
    bound_thinking: bool = Field(
        default=False,
        description="Its thinking is bound to the exact prefix: an edited history is refused; for people to know.",
    )
    signed_calls: bool = Field(
        default=False,
        description="Chat Completions: refuses a tool call that comes back without the signature of its thought.",
    )
    cache: CacheRules = CacheRules()
    media: MediaRules = MediaRules()
    prices: Prices | None = Field(default=None, description="None: unknown, which is not zero.")
    priced_as: str | None = Field(
        default=None,
        max_length=265,
        pattern=ONE_LINE,
        description="`provider/model` of the price list, where that is not the card's own name.",
    )
    host: str | None = Field(
        default=None,
        max_length=253,
        pattern=ONE_LINE,
        description="Only there where its provider's base URL has this host: `chat` may be any endpoint.",
    )

    @property
    def name(self) -> str:
        """Return `provider/model`, as jobs and agents name it."""
        return f"{self.provider}/{self.model}"


class ModelList(Frozen):
    """Every model a tenant can use."""

    models: tuple[ModelCard, ...] = Field(description="Of two of a tier the first comes first where a tier is meant.")
    usable: tuple[str, ...] = Field(default=(), description="Names of those whose provider is configured.")
    own: tuple[str, ...] = Field(default=(), description="Names of the tenant's own cards.")
    image_models: tuple[ImageModel, ...] = Field(
        default=(),
        description="Models of the tier `image`, whose prices are known: for `image_generate`, never for jobs.",
    )


class ModelDeleted(Frozen):
    """Whether the tenant had such a card of its own."""

    deleted: bool


class ListModels(Request, subject="models.list.{tenant}", replies=ModelList):
    """Ask for every model a tenant can use: the bundled catalogue and its own additions, which win."""

    fresh: bool = Field(default=False, description="As the table has them now, also where they were read a moment ago.")


class PutModel(Request, subject="models.put.{tenant}", replies=ModelCard):
    """Add a model to a tenant's catalogue, or say something else about one that is there."""

    card: ModelCard

    @field_validator("card")
    @classmethod
    def _can_be_addressed(cls, card: ModelCard) -> ModelCard:
        """Refuse a name that fits no path: jobs may name any model, but a kept card is found under its name."""
        for part, pattern in ((card.provider, PROVIDER_PATTERN), (card.model, MODEL_PATTERN)):
            if not re.fullmatch(pattern, part):
                raise ValueError(f"{part!r} cannot be kept: it does not match {pattern}")
        return card


class DeleteModel(Request, subject="models.delete.{tenant}", replies=ModelDeleted):
    """Take a tenant's own card back; a bundled model of that name is visible again."""

    provider: str
    model: str


LEFT_ALONE_MAX = 1_000


class Provider(Frozen):
    """A provider that an executor can call, and never its key."""

    name: str
    host: str = Field(default="", description="Where it is: empty where it is this machine's own.")
    keyed: bool = Field(default=False, description="Whether a key is sent along.")


class ModelLeftAlone(Frozen):
    """A model that an executor does not call now."""

    model: str = Field(description="`provider/model`.")
    why: Literal["failing", "held"] = Field(
        description="`failing`: its calls kept failing, so its circuit breaker is open; `held`: its provider asked for "
        "a pause (`Retry-After`)."
    )
    retry_after_s: float = Field(
        ge=0, description="When it is called again; 0: the next call tries whether it is well."
    )


class ProviderList(Frozen):
    """What one executor can call."""

    providers: tuple[Provider, ...]
    executor: str = Field(default="", description="Which one, as in `job.claimed`; empty from an older build.")
    left_alone: tuple[ModelLeftAlone, ...] = Field(
        default=(), max_length=LEFT_ALONE_MAX, description="Models of all tenants that it does not call now."
    )


class ListProviders(Request, subject="models.providers.{tenant}", replies=ProviderList):
    """Ask which providers executors are configured for. Each of them answers; they should be configured alike."""
