"""What the routes of memories and of insights have in common."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeAlias

from fastapi import Path, Query

from wayline.contracts.errors import NotFound
from wayline.contracts.memory import (
    ChangeInsight,
    ChangeMemory,
    Fact,
    FactChange,
    FactPage,
    FactState,
    ForgetMemories,
    ListInsights,
    MemoriesForgotten,
)
from wayline.gateway.conditions import Precondition, entity_tag
from wayline.gateway.handlers.shared.dependencies import Gateway
from wayline.gateway.keys import Caller
from wayline.gateway.shapes.memories import FactChangeBody

FactPath: TypeAlias = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$", examples=["fact_5f2b8c1e9a70d3f46b21c0de"])]
States: TypeAlias = Annotated[
    tuple[FactState, ...],
    Query(alias="state", max_length=5, description="Only facts that are so; several are allowed."),
]


def save_key(caller: Caller, key: str | None) -> str:
    """Return the key of a save over HTTP: a client's own, apart from those of tool calls and of other API keys."""
    return f"http/{caller.key_id or caller.name}/{key or secrets.token_hex(16)}"


def user_of(caller: Caller, user_id: str | None) -> str | None:
    """Return whose memories a request may see; a key that is bound to one user finds no other. Raises NotFound."""
    if caller.user_id is not None and user_id not in (None, caller.user_id):
        raise NotFound("memory of user", user_id or "")
    return caller.user_id or user_id


async def insight_of(gateway: Gateway, caller: Caller, fact_id: str) -> Fact:
    """Return an insight that is not history. Raises NotFound."""
    asked = ListInsights(tenant=caller.tenant, fact_ids=(fact_id,), states=("active", "quarantined"))
    found = seen_by(caller, await gateway.bus.ask(asked, FactPage))
    if not found.facts:
        raise NotFound("insight", fact_id)
    return found.facts[0]


def seen_by(caller: Caller, page: FactPage) -> FactPage:
    """Return insights as a key may see them: one that is bound to a user is not told where others said or used them."""
    if caller.user_id is None:
        return page
    facts = tuple(fact.model_copy(update={"conversations": ()}) for fact in page.facts)
    return page.model_copy(update={"facts": facts})


async def changed(
    gateway: Gateway,
    caller: Caller,
    found: Callable[[], Awaitable[Fact]],
    body: FactChangeBody,
    condition: Precondition,
) -> Fact:
    """Make the next version of a fact, only while it is as the request expects."""
    fact = await found()

    async def present() -> str:
        return tag_of(fact)

    await condition.check(present)
    change = FactChange.model_validate(body.model_dump(exclude={"reason"}, exclude_unset=True))
    kind = ChangeMemory if fact.kind == "memory" else ChangeInsight
    asked = kind(
        tenant=caller.tenant,
        fact_id=fact.fact_id,
        user_id=caller.user_id if fact.kind == "memory" else None,
        change=change,
        # Two clients that have read the same version are told apart here, whatever they sent.
        if_version=fact.version,
        by=caller.name,
        reason=body.reason,
    )
    return await gateway.bus.ask(asked, Fact)


async def decided(gateway: Gateway, caller: Caller, fact: Fact, decision: str, reason: str | None) -> Fact:
    """Release or reject a quarantined fact, in the name of the caller's key."""
    kind = ChangeMemory if fact.kind == "memory" else ChangeInsight
    asked = kind.model_validate(
        {"tenant": caller.tenant, "fact_id": fact.fact_id, "decision": decision, "by": caller.name, "reason": reason}
    )
    return await gateway.bus.ask(asked, Fact)


async def forgotten(gateway: Gateway, caller: Caller, fact: Fact) -> MemoriesForgotten:
    """Delete a fact with its history."""
    return await gateway.bus.ask(ForgetMemories(tenant=caller.tenant, fact_ids=(fact.fact_id,)), MemoriesForgotten)


def tag_of(fact: Fact) -> str:
    """Return the entity tag of a fact: of its version, not of its uses."""
    return entity_tag(fact.fact_id, fact.version)
