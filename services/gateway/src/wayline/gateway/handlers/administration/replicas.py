"""The running processes of services: listed, drained, and put to work again."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import ConfigDict, Field

from wayline.contracts.base import Frozen
from wayline.contracts.errors import NotFound, Retry
from wayline.contracts.replicas import (
    FINISH_MAX_S,
    FINISH_S,
    NAME_MAX,
    SERVICES,
    DescribeReplicas,
    DrainReplica,
    ReplicaState,
)
from wayline.gateway.handlers.shared.dependencies import Gateway, GatewayDependency, Operator
from wayline.gateway.openapi import fails
from wayline.gateway.shapes.body import Body
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1/replicas", tags=["tenants"], route_class=StrictRoute)

ANSWER_WITHIN_S = 4.0
"""How long the first replica of a service has to answer, or the one that is drained: it looks at what it needs."""
QUIET_S = 1.5
"""How long after an answer another one may still come: each takes 1 s at most (`DESCRIBED_WITHIN_S`)."""


class ReplicaList(Frozen):
    """The running processes of every service."""

    replicas: tuple[ReplicaState, ...]
    unanswered: tuple[str, ...] = Field(description="Services of which no process answered.")


class DrainBody(Body):
    """How a replica is drained."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"finish_s": 600}]})

    finish_s: Annotated[float, Field(ge=0, le=FINISH_MAX_S)] = FINISH_S


ReplicaPath = Annotated[str, Path(max_length=NAME_MAX, examples=["executor-host-a-4711"])]


@router.get("", responses=fails())
async def list_replicas(gateway: GatewayDependency, caller: Operator) -> ReplicaList:
    """List the running processes: their versions, whether what they need works, what they have in hand."""
    answers = await asyncio.gather(*(_of_service(gateway, service, caller.tenant) for service in SERVICES))
    found = dict(zip(SERVICES, answers, strict=True))
    replicas = tuple(sorted((one for some in answers for one in some), key=lambda one: (one.service, one.name)))
    return ReplicaList(replicas=replicas, unanswered=tuple(service for service, some in found.items() if not some))


@router.post("/{name}/drain", responses=fails(404, 413))
async def drain_replica(
    name: ReplicaPath, gateway: GatewayDependency, caller: Operator, body: DrainBody | None = None
) -> ReplicaState:
    """Have one process take no more work, and finish what it has. It stays so until it is undone or ends."""
    request = body or DrainBody()
    return await _tell(gateway, name, caller.tenant, undo=False, finish_s=request.finish_s)


@router.post("/{name}/undrain", responses=fails(404))
async def undrain_replica(name: ReplicaPath, gateway: GatewayDependency, caller: Operator) -> ReplicaState:
    """Have a drained process take work again."""
    return await _tell(gateway, name, caller.tenant, undo=True, finish_s=0)


async def _of_service(gateway: Gateway, service: str, tenant: str) -> list[ReplicaState]:
    try:
        request = DescribeReplicas(tenant=tenant, service=service)
        return await gateway.bus.ask_everyone(request, ReplicaState, timeout_s=ANSWER_WITHIN_S, quiet_s=QUIET_S)
    except Retry:
        return []


async def _tell(gateway: Gateway, name: str, tenant: str, *, undo: bool, finish_s: float) -> ReplicaState:
    service = next((one for one in SERVICES if name.startswith(f"{one}-")), None)
    if service is None:
        raise NotFound("replica", name)
    request = DrainReplica(tenant=tenant, service=service, name=name, undo=undo, finish_s=finish_s)
    try:
        return await gateway.bus.ask(request, ReplicaState, timeout_s=ANSWER_WITHIN_S)
    except Retry:
        # Where others of its service answer, it is gone.
        if await _of_service(gateway, service, tenant):
            raise NotFound("replica", name) from None
        raise
