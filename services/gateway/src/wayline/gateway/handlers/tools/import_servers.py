"""Import the MCP servers of a desktop client's configuration."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final, TypeAlias

from fastapi import APIRouter, Body, Query
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from wayline.contracts.errors import Full, Reject, Retry
from wayline.contracts.imported_servers import SERVERS_MAX, PlannedServer, planned
from wayline.contracts.mcp_servers import ListServers, PutServer, ServerList, ServerView
from wayline.contracts.server_config import ServerConfig
from wayline.gateway.conditions import Precondition
from wayline.gateway.handlers.shared.auditing import note_change, trail
from wayline.gateway.handlers.shared.dependencies import Admin, Gateway, GatewayDependency
from wayline.gateway.handlers.tools.mcp_servers import SERVER
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails
from wayline.gateway.problem_answers import wrong_fields
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1/mcp", tags=["mcp servers"], route_class=StrictRoute)

IMPORT_WITHIN_S: Final = 60.0
"""How long servers are saved, one after the other; those behind are not tried."""
NOT_TRIED: Final = f"it was not tried: the servers before it took {IMPORT_WITHIN_S:g} s; import again"
EXAMPLE: Final = {"mcpServers": {"My Files": {"command": "npx", "args": ["-y", "@example/files-mcp@1.4.0", "/srv"]}}}
Servers: TypeAlias = Annotated[dict[str, Any], Field(max_length=SERVERS_MAX)]


class ClientConfiguration(BaseModel):
    """A desktop client's configuration, as its file has it; what is no server is ignored."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    mcpServers: Servers | None = Field(default=None, description="Servers by name, each with `url` or `command`.")
    servers: Servers | None = Field(default=None, description="The same, as some clients call it.")

    @model_validator(mode="after")
    def _has_servers(self) -> ClientConfiguration:
        if self.mcpServers is None and self.servers is None:
            raise ValueError('it has no servers: send {"mcpServers": {"NAME": {"command": "…", "args": […]}}}')
        return self


class ImportedServer(BaseModel):
    """What becomes of one server of a file."""

    given: str = Field(description="Its name in the file.")
    name: str = Field(description="Its name here.")
    disabled: bool = Field(description="The file has it as disabled, so it is saved and not connected to.")
    dropped: tuple[str, ...] = Field(
        default=(), description="Fields of the file that have no meaning here; at most 20."
    )
    exists: bool = Field(default=False, description="A server of that name was there before.")
    config: ServerConfig | None = Field(
        default=None, description="What is saved, values of secrets masked; null: it cannot be."
    )
    saved: bool | None = Field(
        default=False, description="Null: the tool-registry has not answered, and it may have been saved."
    )
    problem: str = Field(default="", description="Why it is not saved, or would not be; empty: there is nothing.")
    warnings: tuple[str, ...] = Field(
        default=(), description="What to correct of it, such as a secret that readers see."
    )


class ImportReport(BaseModel):
    """What becomes of the servers of a file, in its order."""

    dry_run: bool
    saved: int = Field(description="Servers that were saved.")
    servers: tuple[ImportedServer, ...]


@router.post("/servers/import", responses=fails(400, 413))
async def import_servers(
    body: Annotated[ClientConfiguration, Body(examples=[EXAMPLE])],
    gateway: GatewayDependency,
    caller: Admin,
    dry_run: Annotated[bool, Query(description="Save nothing, and say what would be saved.")] = False,
    replace: Annotated[bool, Query(description="Save also those whose name is saved already.")] = False,
) -> ImportReport:
    """Save the servers of a desktop client's configuration, each for itself: one that cannot be keeps no other back.

    A program runs from the moment when it is saved: look at a `dry_run` first.
    """
    found = await gateway.bus.ask(ListServers(tenant=caller.tenant), ServerList)
    given = body.mcpServers if body.mcpServers is not None else body.servers or {}
    servers = _planned(given, found, replace=replace)
    if dry_run:
        note_change(detail="dry run: nothing is saved")
        return ImportReport(dry_run=True, saved=0, servers=tuple(servers))
    # Before they are saved: a process that is killed meanwhile has told what it was about to do.
    note_change(name=", ".join(one.name for one in servers if not one.problem))
    ends_at = asyncio.get_running_loop().time() + IMPORT_WITHIN_S
    done = [await _saved(gateway, caller, one, replace=replace, ends_at=ends_at) for one in servers]
    saved = sum(one.saved is True for one in done)
    note_change(detail=f"saved {saved} of {len(done)}")
    if (known := trail()) is not None:
        # That of one server says nothing of all.
        known.before = None
    return ImportReport(dry_run=False, saved=saved, servers=tuple(done))


def _planned(given: dict[str, Any], found: ServerList, *, replace: bool) -> list[ImportedServer]:
    """Return what would be saved of each server of a file, or why nothing would be."""
    there = {server.name: server for server in found.servers}
    servers: list[ImportedServer] = []
    names: set[str] = set()
    for client_name, server in given.items():
        plan = planned(client_name, server, None)
        config, problem = _config(plan)
        if not problem and plan.name in names:
            problem = f"another server of this file is called {plan.name} here, too"
        if not problem and plan.name in there and not replace:
            problem = f"{plan.name} is saved already; `replace` saves it anew"
        if not problem and plan.name in there and there[plan.name].of == "installation":
            problem = f"{plan.name} is the name of a server of this installation: choose another name"
        names |= {plan.name} if not problem else set()
        about = ImportedServer(**plan.about(), exists=plan.name in there, config=config, problem=problem)
        servers.append(about)
    return servers


def _config(plan: PlannedServer) -> tuple[ServerConfig | None, str]:
    if plan.why:
        return None, plan.why
    try:
        return ServerConfig.model_validate(plan.config), ""
    except ValidationError as error:
        # Without the values, which may be secrets.
        wrong = wrong_fields(error.errors(include_input=False, include_url=False)[:5])
        return None, "; ".join(f"{one.field}: {one.message}" if one.field else one.message for one in wrong)


async def _saved(
    gateway: Gateway, caller: Caller, server: ImportedServer, *, replace: bool, ends_at: float
) -> ImportedServer:
    """Save a server, and return what became of it."""
    if server.problem or server.config is None:
        return server
    if asyncio.get_running_loop().time() > ends_at:
        return server.model_copy(update={"problem": NOT_TRIED})
    # At once, and not disabled afterwards: a program runs from the moment when it is saved.
    enabled = False if server.disabled else None
    request = PutServer(tenant=caller.tenant, name=server.name, config=server.config, enabled=enabled)
    try:
        async with SERVER.changing(gateway, caller, server.name, Precondition(only_new=not replace)):
            view = await gateway.bus.ask(request, ServerView)
    except (Full, Reject) as error:
        return server.model_copy(update={"problem": str(error)})
    except Retry as error:
        return server.model_copy(update={"saved": None, "problem": str(error)})
    return server.model_copy(update={"saved": True, "warnings": view.warnings})
