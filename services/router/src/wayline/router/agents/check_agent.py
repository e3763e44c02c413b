"""Whether an agent can be saved: what could only fail in each of its jobs is refused while it is saved."""

from __future__ import annotations

from collections.abc import Sequence

from wayline.contracts.agents import AgentConfig
from wayline.contracts.errors import Reject
from wayline.contracts.models import ModelCard
from wayline.contracts.nearest import nearest_names
from wayline.llm.structured import schema_problem
from wayline.routing.slots import SLOTS, TIERS, quoted

NAMED_MAX = 5
"""Known models that a refusal names, the likest first."""
NAME_MAX_CHARS = 265
"""As much of a name as is compared with them."""


def check_agent(config: AgentConfig, cards: Sequence[ModelCard]) -> None:
    """Raise Reject for an answer's schema that can check nothing, or a model without a card.

    `cards` are all of the tenant's models, also those whose provider is not configured yet.
    """
    problem = None if config.output_schema is None else schema_problem(config.output_schema)
    if problem:
        raise Reject(f"output_schema is no JSON Schema: {problem}", code="invalid_output_schema", status=422)
    known = [card.name for card in cards]
    if config.model in TIERS:
        raise _unknown(
            f"model is {config.model!r}, a tier: to have all work done by the first usable model of a tier, leave "
            "model out, name it in routing.primary and set routing.mode to locked"
        )
    if config.model and config.model not in known:
        raise _unknown(f"model is {quoted(config.model)}, which is not {_one_of(config.model, known)}")
    routing = config.routing
    slots = [(f"routing.{slot}", getattr(routing, slot)) for slot in SLOTS]
    for field, name in [*slots, *(("routing.fallbacks", name) for name in routing.fallbacks)]:
        if name and name not in {*TIERS, *known}:
            tiers = f"neither a tier ({', '.join(TIERS)}) nor"
            raise _unknown(f"{field} is {quoted(name)}, which is {tiers} {_one_of(name, known)}")


def _unknown(message: str) -> Reject:
    return Reject(message, code="unknown_model", status=422)


def _one_of(name: str, known: Sequence[str]) -> str:
    nearest = nearest_names(name[:NAME_MAX_CHARS], known, most=NAMED_MAX, cutoff=0)
    some = f"{'such as ' if len(known) > len(nearest) else ''}{', '.join(nearest)}"
    return f"one of GET /v1/models: {some}. Correct it, or add the model with PUT /v1/models first"
