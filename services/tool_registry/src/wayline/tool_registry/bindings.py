"""Which handler receives each message."""

from __future__ import annotations

from typing import Any

from wayline.chassis import Ask, asks, hears
from wayline.contracts.bus_tools import AnnounceTools
from wayline.contracts.forgetting import EraseFromRegistry
from wayline.contracts.mcp_servers import (
    ApproveDefinitions,
    DeleteServer,
    EnableServer,
    GetImpact,
    GetServer,
    ListServers,
    PutServer,
    ServersChanged,
    TrySavedServer,
    TryServer,
)
from wayline.contracts.searched_tools import SearchTools
from wayline.contracts.server_logins import (
    AuthorizeServer,
    FinishAuthorization,
    ForgetAuthorization,
    ForgetUser,
    GetLogin,
    ListLogins,
    OpenLogin,
)
from wayline.contracts.server_resources import (
    FillServerPrompt,
    ListServerPrompts,
    ListServerResources,
    ReadServerResource,
)
from wayline.contracts.tenant_secrets import DeleteSecret, ListSecrets, PutSecret, RotateSecrets
from wayline.contracts.tools import CallTool, CancelTool, ListTools, ResolveTool, VoidTool
from wayline.tool_registry.wiring import Handlers

IMPACTS_MAX = 16
"""Comparisons with a month of calls at once; each may also hang while it tries a server."""
LOGINS_MAX = 16
"""Requests of each kind that connect to authorization servers at once; a tenant's may have three quarters of them."""
RESOURCES_MAX = 16
"""Requests of each kind that ask servers for resources or prompts at once: each may hold an answer of megabytes."""


def asks_of(handlers: Handlers, *, calls_max: int) -> list[Ask[Any]]:
    """Return what answers each request on the bus."""
    return [*_about_calls(handlers, calls_max), *_about_servers(handlers), *_about_resources(handlers)]


def announcements_of(handlers: Handlers) -> Ask[AnnounceTools]:
    """Return what answers the announcements of services, which every replica receives."""
    return asks(AnnounceTools, handlers.announcements.announce, everyone=True)


def _about_calls(handlers: Handlers, calls_max: int) -> list[Ask[Any]]:
    return [
        asks(ListTools, handlers.calls.list_tools),
        asks(SearchTools, handlers.search.search_tools),
        asks(CallTool, handlers.calls.call_tool, slots=calls_max),
        asks(ResolveTool, handlers.calls.resolve_tool),
        asks(VoidTool, handlers.calls.void_tool, slots=calls_max),
        hears(CancelTool, handlers.calls.cancel_tool),
        asks(EraseFromRegistry, handlers.erased_calls.erase),
    ]


def _about_servers(handlers: Handlers) -> list[Ask[Any]]:
    servers, logins, secrets = handlers.servers, handlers.logins, handlers.secrets
    return [
        asks(GetImpact, handlers.impact.impact, slots=IMPACTS_MAX),
        asks(PutServer, servers.put),
        # Their own limit refuses at once what here would wait for others that hang.
        asks(TryServer, servers.try_server),
        asks(TrySavedServer, servers.try_saved),
        asks(ListServers, servers.list),
        asks(GetServer, servers.get),
        asks(DeleteServer, servers.delete),
        asks(EnableServer, servers.enable),
        asks(ApproveDefinitions, servers.approve),
        asks(PutSecret, secrets.put),
        asks(ListSecrets, secrets.list),
        asks(DeleteSecret, secrets.delete),
        asks(RotateSecrets, secrets.rotate),
        asks(AuthorizeServer, logins.authorize, slots=LOGINS_MAX),
        asks(GetLogin, logins.describe),
        asks(OpenLogin, logins.open),
        asks(FinishAuthorization, logins.finish, slots=LOGINS_MAX),
        asks(ForgetAuthorization, logins.forget, slots=LOGINS_MAX),
        asks(ForgetUser, logins.forget_user, slots=LOGINS_MAX),
        asks(ListLogins, logins.list),
        hears(ServersChanged, servers.changed),
    ]


def _about_resources(handlers: Handlers) -> list[Ask[Any]]:
    resources = handlers.resources
    return [
        asks(ListServerResources, resources.list_resources, slots=RESOURCES_MAX),
        asks(ReadServerResource, resources.read, slots=RESOURCES_MAX),
        asks(ListServerPrompts, resources.list_prompts, slots=RESOURCES_MAX),
        asks(FillServerPrompt, resources.fill_prompt, slots=RESOURCES_MAX),
    ]
