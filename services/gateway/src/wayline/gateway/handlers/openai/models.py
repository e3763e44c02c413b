"""`/openai/v1/models`: the agents that a key may run, also by the labels of their versions."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from wayline.contracts.agents import Agent, AgentList, GetAgent, ListAgents
from wayline.contracts.errors import NotFound, Reject
from wayline.gateway.handlers.shared.dependencies import GatewayDependency, Reader
from wayline.gateway.openai.chat_body import ModelName
from wayline.gateway.openai.model_names import NamedModel, named_model, unknown_label
from wayline.gateway.openapi import fails_as_openai
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/openai/v1", tags=["openai"], route_class=StrictRoute)


class OpenAIModel(BaseModel):
    """An agent, as a model that answers."""

    id: str = Field(description="The agent's name, or `agent:label`: the `model` of a request.")
    object: Literal["model"] = "model"
    created: int = Field(default=0, description="Always 0: agents are versions, and have no moment of their own.")
    owned_by: str = Field(description="The tenant.")


class OpenAIModelList(BaseModel):
    """All agents of the tenant."""

    object: Literal["list"] = "list"
    data: list[OpenAIModel]


@router.get("/models", responses=fails_as_openai())
async def list_openai_models(gateway: GatewayDependency, caller: Reader) -> OpenAIModelList:
    """List the agents, and their labels as `agent:label`: each is a model that can be named in a request."""
    found = await gateway.bus.ask(ListAgents(tenant=caller.tenant), AgentList)
    named = [NamedModel(one.name, label) for one in found.agents for label in (None, *(at.label for at in one.labels))]
    return OpenAIModelList(data=[OpenAIModel(id=str(one), owned_by=caller.tenant) for one in named])


@router.get("/models/{model}", responses=fails_as_openai(404))
async def get_openai_model(
    model: Annotated[ModelName, Path()], gateway: GatewayDependency, caller: Reader
) -> OpenAIModel:
    """Return one agent as a model, or the version of it that has a label."""
    named = named_model(model)
    try:
        found = await gateway.bus.ask(GetAgent(tenant=caller.tenant, name=named.agent), Agent)
    except Reject as error:
        if error.status != NotFound.status:
            raise
        raise Reject(str(error), code="unknown_agent", status=NotFound.status) from None
    if named.label is not None and all(one.label != named.label for one in found.labels):
        raise unknown_label(named.agent, named.label)
    return OpenAIModel(id=str(named), owned_by=caller.tenant)
