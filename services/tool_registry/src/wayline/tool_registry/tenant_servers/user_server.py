"""A server that each user logs in to: the tenant's login lists its tools, a call goes with its user's."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from wayline.tool_registry.calls.tool_servers import ToolRequest
from wayline.tool_registry.errors import Withheld
from wayline.tool_registry.servers.mcp_server import McpServer, Question
from wayline.tool_registry.tenant_servers.user_connections import UserConnections

if TYPE_CHECKING:
    from mcp_types import CallToolResult, InputRequiredResult


class UserServer(McpServer):
    """Calls tools over the connection of the user that a call is for, and over no other."""

    def __init__(self, *of_tenant: Any, users: UserConnections, **more: Any) -> None:
        """Take what McpServer takes, and the connections of users."""
        super().__init__(*of_tenant, **more)
        self._users = users

    def hide(self, text: str) -> str:
        """Return a text without the secrets that the server is sent, of the tenant and of users."""
        return self._users.hide(super().hide(text))

    async def call(self, request: ToolRequest) -> CallToolResult | InputRequiredResult:
        """Call a tool as its user. Raises what McpServer.call does, NeedsLogin and Withheld."""
        user_id = None if request.asked is None else request.asked.user_id
        async with self._users.of(user_id) as server:
            if why := server.withheld.get(server.names.get(request.tool, "")):
                raise Withheld(
                    f"{request.tool} of {self.name!r} is not called for user {user_id!r}: for this user {why}"
                )
            return await server.call(request)

    async def ask_as(self, user_id: str | None, question: Question) -> dict[str, Any]:
        """Ask over the connection of a user. Raises what McpServer.ask does, and NeedsLogin."""
        async with self._users.of(user_id) as server:
            return await server.ask(question)

    def learn_again(self) -> None:
        """Ask for the tools at once, of the tenant and of users: what was approved of them has changed."""
        super().learn_again()
        self._users.learn_again()

    async def retire(self, grace_s: float) -> None:
        """Stop once the calls under way have ended, or the grace is over."""
        await self._users.retire(grace_s)
        await super().retire(0)

    async def stop(self) -> None:
        """Leave the server now, and every user's connection."""
        await asyncio.gather(super().stop(), self._users.stop())
