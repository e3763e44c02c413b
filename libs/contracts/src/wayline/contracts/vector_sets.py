"""Sets of vectors: all of a tenant's passages embedded by one model, of which searches read one."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from wayline.contracts.base import Frozen, Request

SetState = Literal["building", "shadow", "live", "old"]


class VectorSet(Frozen):
    """A set and how far it is."""

    set_id: int
    model: str
    dimensions: int | None = Field(default=None, description="None until its first vector.")
    state: SetState = Field(
        description="`building`: passages are still embedded. `shadow`: it is whole, and waits for a switch. `live`: "
        "searches read it. `old`: it was live before, and can be again for a day."
    )
    automatic: bool = Field(default=True, description="It goes live by itself when it is whole.")
    passages: int = Field(default=0, description="That have a vector in it.")
    passages_in_all: int = 0
    documents_waiting: int = Field(default=0, description="Whose passages do not all have one.")
    error: str | None = Field(default=None, description="Why one of them waits.")
    overlap: float | None = Field(
        default=None,
        description="The share of the ten best passages that it has in common with the set that was live when it was "
        "whole, over the tenant's last queries; None where there were none.",
    )
    queries: int | None = Field(default=None, description="That were compared, up to 200.")
    created_at: datetime | None = None
    changed_at: datetime | None = None


class VectorSetList(Frozen):
    """A tenant's sets, the oldest first."""

    sets: tuple[VectorSet, ...] = ()
    models: tuple[str, ...] = Field(
        default=(), description="The models that this installation has; its own choice first."
    )


class GetVectorSets(Request, subject="vectors.get.{tenant}", replies=VectorSetList):
    """Ask for a tenant's sets of vectors."""


class BuildVectors(Request, subject="vectors.build.{tenant}", replies=VectorSetList):
    """Begin to embed all passages with a model, beside the set that is searched."""

    model: str | None = Field(default=None, max_length=200, description="None: the one that the settings name.")
    switch: bool = Field(default=False, description="Search it as soon as it is whole.")


class SwitchVectors(Request, subject="vectors.switch.{tenant}", replies=VectorSetList):
    """Search the set that was built; the one before is kept for a day."""


class UndoVectors(Request, subject="vectors.undo.{tenant}", replies=VectorSetList):
    """Search the set before again."""
