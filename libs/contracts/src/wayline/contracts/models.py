"""Models: what each can do and what it costs. Data, not code; a tenant can add its own."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from pydantic import Field

from wayline.contracts.base import Frozen, Request

Tier = Literal["flash", "standard", "premium", "reasoning"]
"""Where a model stands in the catalogue."""

Slot = Literal["fast", "primary", "escalation", "reasoning"]
"""What an agent uses a model for; a slot names a model or a tier."""

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class Rates(Frozen):
    """Dollars per million tokens. A cache rate that is None is the input's: the provider does not tell them apart."""

    input: Decimal = Field(ge=0)
    output: Decimal = Field(ge=0)
    cache_read: Decimal | None = Field(default=None, ge=0)
    cache_write_5m: Decimal | None = Field(default=None, ge=0)
    cache_write_1h: Decimal | None = Field(default=None, ge=0)


class RatesAbove(Frozen):
    """Other rates for the whole of a request whose input has more tokens than this."""

    tokens: int = Field(ge=1)
    rates: Rates


class Prices(Frozen):
    """What a model costs, and who says so."""

    rates: Rates
    above: tuple[RatesAbove, ...] = Field(default=(), description="By rising number of tokens.")
    source: str = Field(default="", description="Where the figures are from, with their date or version.")


class CacheRules(Frozen):
    """How a provider keeps prompts.

    `breakpoints`: what is marked is kept; `automatic`: the longest known prefix; `none`: nothing is.
    """

    kind: Literal["none", "automatic", "breakpoints"] = "none"
    min_tokens: int = Field(default=1_024, ge=0, description="Shorter prefixes are silently not kept.")
    breakpoints_max: int = Field(default=4, ge=0)
    lookback_blocks: int | None = Field(
        default=None, description="How many content blocks before a breakpoint an older entry is looked for."
    )
    ttl_s: float | None = Field(default=None, gt=0, description="How long what nobody reads is kept; None: not told.")


class ModelCard(Frozen):
    """One model of the catalogue: what the router chooses by and what an adapter must know."""

    provider: str = Field(min_length=1, max_length=64)
    model: str = Field(min_length=1, max_length=200, description="The name that is sent to the provider.")
    tier: Tier
    context_window: int = Field(default=128_000, ge=1, description="Tokens of prompt and answer together.")
    output_limit: int = Field(default=8_192, ge=1, description="Tokens of one answer at most.")
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
    efforts: tuple[Effort, ...] = ()
    forced_tools: bool = Field(default=False, description="Can be made to call a tool.")
    system_messages: bool = Field(default=False, description="Takes system messages between the others.")
    bound_thinking: bool = Field(
        default=False, description="Its thinking is bound to the exact prefix: an edited history is refused."
    )
    cache: CacheRules = CacheRules()
    prices: Prices | None = Field(default=None, description="None: unknown, which is not zero.")

    @property
    def name(self) -> str:
        """`provider/model`, as jobs and agents name it."""
        return f"{self.provider}/{self.model}"


class ModelList(Frozen):
    models: tuple[ModelCard, ...]


class ModelDeleted(Frozen):
    deleted: bool


class ListModels(Request, subject="models.list.{tenant}", replies=ModelList):
    """Ask for every model a tenant can use: the bundled catalogue and its own additions, which win."""


class PutModel(Request, subject="models.put.{tenant}", replies=ModelCard):
    """Add a model to a tenant's catalogue, or say something else about one that is there."""

    card: ModelCard


class DeleteModel(Request, subject="models.delete.{tenant}", replies=ModelDeleted):
    """Take a tenant's own card back; a bundled model of that name is visible again."""

    provider: str
    model: str
