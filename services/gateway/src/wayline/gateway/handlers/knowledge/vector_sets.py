"""Sets of vectors: which embedding model searches go by, and another one in its place."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from wayline.contracts.vector_sets import BuildVectors, GetVectorSets, SwitchVectors, UndoVectors, VectorSetList
from wayline.gateway.handlers.shared.dependencies import Admin, GatewayDependency, Reader
from wayline.gateway.openapi import fails
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1/vector-sets", tags=["knowledge"], route_class=StrictRoute)


class BuildBody(BaseModel):
    """Which model the passages are to be embedded with."""

    model_config = ConfigDict(extra="forbid")

    model: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        default=None, description="One of the installation's; null: the one that its settings name."
    )
    switch: bool = Field(default=False, description="Search the new set as soon as it is whole.")


@router.get("", responses=fails())
async def get_vector_sets(gateway: GatewayDependency, caller: Reader) -> VectorSetList:
    """Return the tenant's sets of vectors, how far each is, and how much a new one finds that the live one finds."""
    return await gateway.bus.ask(GetVectorSets(tenant=caller.tenant), VectorSetList)


@router.post("/build", responses=fails(400, 422))
async def build_vectors(body: BuildBody, gateway: GatewayDependency, caller: Admin) -> VectorSetList:
    """Begin to embed all passages with a model, beside the set that is searched."""
    asked = BuildVectors(tenant=caller.tenant, model=body.model, switch=body.switch)
    return await gateway.bus.ask(asked, VectorSetList)


@router.post("/switch", responses=fails(404, 409))
async def switch_vectors(gateway: GatewayDependency, caller: Admin) -> VectorSetList:
    """Search the set that was built; the one before is kept for a day."""
    return await gateway.bus.ask(SwitchVectors(tenant=caller.tenant), VectorSetList)


@router.post("/undo", responses=fails(404))
async def undo_vectors(gateway: GatewayDependency, caller: Admin) -> VectorSetList:
    """Search the set before again."""
    return await gateway.bus.ask(UndoVectors(tenant=caller.tenant), VectorSetList)
