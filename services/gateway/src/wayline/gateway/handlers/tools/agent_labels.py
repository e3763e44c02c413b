"""Labels of agents' versions, which jobs ask for and by which a share of them is given."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Path, Response

from wayline.contracts import ids
from wayline.contracts.agent_labels import (
    AgentLabel,
    DeleteAgentLabel,
    LabelConfig,
    LabelRemoved,
    PutAgentLabel,
)
from wayline.contracts.agents import Agent, GetAgent
from wayline.contracts.errors import NotFound
from wayline.gateway.conditions import IfUnchanged, entity_tag
from wayline.gateway.handlers.shared.changing import Changeable, tagged
from wayline.gateway.handlers.shared.deleting import was_there
from wayline.gateway.handlers.shared.dependencies import Admin, Gateway, GatewayDependency, Reader
from wayline.gateway.handlers.tools.agents import AgentPath
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails, tags
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1/agents/{name}/labels", tags=["agents"], route_class=StrictRoute)

LabelPath: TypeAlias = Annotated[str, Path(pattern=ids.NAME_PATTERN, examples=["candidate"])]


@router.get("/{label}", responses=tags(404))
async def get_agent_label(
    name: AgentPath, label: LabelPath, gateway: GatewayDependency, caller: Reader, response: Response
) -> AgentLabel:
    """Return which version of an agent has a label, and its share of jobs."""
    found = await _label(gateway, caller, f"{name}/{label}")
    return tagged(response, found, _tag(found))


@router.put("/{label}", responses=tags(404, 412))
async def put_agent_label(
    *,
    name: AgentPath,
    label: LabelPath,
    config: LabelConfig,
    gateway: GatewayDependency,
    caller: Admin,
    condition: IfUnchanged,
    response: Response,
) -> AgentLabel:
    """Give a version of an agent a label, with a share of the jobs that ask for none; jobs under way keep theirs."""
    async with LABEL.changing(gateway, caller, f"{name}/{label}", condition):
        asked = PutAgentLabel(tenant=caller.tenant, name=name, label=label, config=config)
        saved = await gateway.bus.ask(asked, AgentLabel)
    return tagged(response, saved, _tag(saved))


@router.delete("/{label}", responses=fails(404, 412))
async def delete_agent_label(
    name: AgentPath, label: LabelPath, gateway: GatewayDependency, caller: Admin, condition: IfUnchanged
) -> LabelRemoved:
    """Take a label from an agent: jobs that ask for it are refused from now on."""
    async with LABEL.changing(gateway, caller, f"{name}/{label}", condition):
        asked = DeleteAgentLabel(tenant=caller.tenant, name=name, label=label)
        removed = await gateway.bus.ask(asked, LabelRemoved)
    gateway.router.forget_agent(caller.tenant, name)
    return was_there(removed, "label", f"{name}/{label}")


async def _label(gateway: Gateway, caller: Caller, named: str) -> AgentLabel:
    """Return a label by `agent/label`."""
    name, _, label = named.partition("/")
    agent = await gateway.bus.ask(GetAgent(tenant=caller.tenant, name=name), Agent)
    found = next((one for one in agent.labels if one.label == label), None)
    if found is None:
        raise NotFound("label", named)
    return found


def _tag(label: AgentLabel) -> str:
    return entity_tag(label.model_dump(mode="json"))


LABEL = Changeable("agent label", _label, _tag)
