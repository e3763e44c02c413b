"""What gateways tell each other of MCP clients: any of them may get a client's message."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from wayline.contracts.base import Frozen, Message, Request


class ClientMessage(Message, subject="mcp.client.{tenant}.{exchange}"):
    """A message of an MCP client that belongs to a request which another gateway may serve."""

    exchange: str = Field(default="", exclude=True, description="Names the request: the gateway that serves it hears.")
    message: dict[str, Any] = Field(default_factory=dict, description="As the client sent it: JSON-RPC.")


class Watching(Frozen):
    """A client's stream tells of a resource from now on, or no longer."""

    watched: int = Field(description="How many resources it tells of.")


class WatchResource(Request, subject="mcp.watch.{tenant}", replies=Watching):
    """Have a client's open stream tell when a resource changes; the gateway that holds the stream answers."""

    session: str
    uri: str
    on: bool = Field(default=True, description="False: tell of it no longer.")
