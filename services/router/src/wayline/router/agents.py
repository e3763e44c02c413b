"""Whether an agent can be saved: what could only fail in each of its jobs is refused while somebody looks."""

from __future__ import annotations

from collections.abc import Sequence

from wayline.contracts.agents import AgentConfig
from wayline.contracts.errors import Reject
from wayline.contracts.models import ModelCard
from wayline.llm.structured import schema_problem
from wayline.router.slots import SLOTS, TIERS, card_of, quoted


def check_agent(config: AgentConfig, cards: Sequence[ModelCard]) -> None:
    """Raises Reject for an answer's schema that can check nothing, or a model that its routing cannot mean.

    `cards` are all of the tenant's models, also those whose provider is not configured yet.
    """
    problem = None if config.output_schema is None else schema_problem(config.output_schema)
    if problem:
        raise Reject(f"output_schema is no JSON Schema: {problem}", code="invalid_output_schema", status=422)
    if config.model:
        card_of(config.model, cards, tier="standard")
    routing = config.routing
    slots = [(f"routing.{slot}", getattr(routing, slot)) for slot in SLOTS]
    known = {*TIERS, *(card.name for card in cards)}
    for field, name in [*slots, *(("routing.fallbacks", name) for name in routing.fallbacks)]:
        if name and name not in known:
            raise Reject(
                f"{field} is {quoted(name)}, which is neither a tier ({', '.join(TIERS)}) nor one of GET /v1/models: "
                "correct it, or add the model with PUT /v1/models first",
                code="unknown_model",
                status=422,
            )
