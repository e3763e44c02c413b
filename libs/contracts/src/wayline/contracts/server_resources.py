"""What an MCP server offers beside tools: resources that can be read, and prompts that can be filled in."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from wayline.contracts.base import Frozen, Request
from wayline.contracts.server_logins import UserId

ResourceUri: TypeAlias = Annotated[str, Field(min_length=1, max_length=8_000)]
PromptName: TypeAlias = Annotated[str, Field(min_length=1, max_length=500)]


class ServerResource(Frozen):
    """A resource of a server, by its address."""

    uri: str
    name: str = ""
    title: str = ""
    description: str = ""
    mime_type: str = ""
    size_bytes: int | None = Field(default=None, description="As its server states it.")


class ResourceTemplate(Frozen):
    """An address with places to fill in (RFC 6570): what comes of it can be read."""

    uri_template: str
    name: str = ""
    title: str = ""
    description: str = ""
    mime_type: str = ""


class ServerResources(Frozen):
    """The resources and templates of a server, at most 1,000 of each."""

    resources: tuple[ServerResource, ...] = ()
    templates: tuple[ResourceTemplate, ...] = ()
    resources_total: int = 0
    templates_total: int = 0


class ResourcePart(Frozen):
    """One content of a resource: a text, or bytes."""

    uri: str
    mime_type: str = ""
    text: str | None = Field(default=None, description="None: it is bytes.")
    base64: str | None = Field(default=None, description="Its bytes; None: it is a text.")


class ResourceContents(Frozen):
    """What reading a resource brought; the words of its server, whom nobody has to trust."""

    contents: tuple[ResourcePart, ...]


class PromptArgument(Frozen):
    """A value that a prompt is filled in with."""

    name: str
    description: str = ""
    required: bool = False


class ServerPrompt(Frozen):
    """A prompt of a server."""

    name: str
    title: str = ""
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


class ServerPrompts(Frozen):
    """The prompts of a server, at most 1,000."""

    prompts: tuple[ServerPrompt, ...] = ()
    prompts_total: int = 0


class FilledMessage(Frozen):
    """A message of a prompt."""

    role: Literal["user", "assistant"]
    content: dict[str, Any] = Field(description="A content block of MCP, such as a text or an image.")


class FilledPrompt(Frozen):
    """A prompt with its arguments filled in; the words of its server, whom nobody has to trust."""

    description: str = ""
    messages: tuple[FilledMessage, ...]


class ListServerResources(Request, subject="mcp.resources.{tenant}", replies=ServerResources):
    """Ask a connected server for its resources and templates."""

    name: str


class ReadServerResource(Request, subject="mcp.read.{tenant}", replies=ResourceContents):
    """Read one resource of a connected server."""

    name: str
    uri: ResourceUri
    user_id: UserId | None = Field(default=None, description="As whom, where each user logs in to the server.")


class ListServerPrompts(Request, subject="mcp.prompts.{tenant}", replies=ServerPrompts):
    """Ask a connected server for its prompts."""

    name: str


class FillServerPrompt(Request, subject="mcp.prompt.{tenant}", replies=FilledPrompt):
    """Have a connected server fill in one of its prompts."""

    name: str
    prompt: PromptName
    arguments: dict[str, str] = Field(default={}, max_length=100)
    user_id: UserId | None = Field(default=None, description="As whom, where each user logs in to the server.")
