"""On whose behalf documents are asked for: a key of one user sees what that user may find, and nothing else."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import Depends, Query

from wayline.contracts.knowledge import AUDIENCE_MAX, AudienceName
from wayline.gateway.handlers.shared.dependencies import identify
from wayline.gateway.keys import Caller


def seen_by(caller: Caller) -> tuple[str, ...] | None:
    """Return the names for which documents are there; None: an application's key sees all."""
    return None if caller.user_id is None else (caller.user_id,)


async def _seen_by(
    caller: Annotated[Caller, Depends(identify)],
    audience: Annotated[
        tuple[AudienceName, ...],
        Query(
            max_length=AUDIENCE_MAX,
            description="On whose behalf (user ids, groups; several are allowed): a document with an audience is there "
            "for its names alone. Left out, an application sees all. A key of one user sees that user's alone.",
        ),
    ] = (),
) -> tuple[str, ...] | None:
    return seen_by(caller) or audience or None


SeenBy: TypeAlias = Annotated[tuple[str, ...] | None, Depends(_seen_by)]
