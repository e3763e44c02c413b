"""What MCP clients are given of a tool and of its results beside what models read: as its server gave it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from wayline.contracts.base import Frozen

ResultForm = Literal["text", "value", "whole"]
"""How a caller wants a result: as a model reads it, as a program computes with it, or as its server gave it."""


class ToolDetails(Frozen):
    """What a server says of its tool that only people and MCP clients need."""

    title: str = Field(default="", description="Its name for people.")
    output_schema: dict[str, Any] | None = Field(
        default=None, description="What the structured content of its results looks like."
    )
    destructive: bool | None = Field(default=None, description="Its server's hint; that it is not, of a trusted one.")
    open_world: bool | None = Field(default=None, description="Its server's hint; that it is not, of a trusted one.")
    meta: dict[str, Any] = Field(default_factory=dict, description="Its `_meta`, without names that mean something.")


class WholeResult(Frozen):
    """A result as its server gave it, without secrets."""

    blocks: tuple[dict[str, Any], ...] = Field(default=(), description="Content blocks of MCP.")
    structured: str | None = Field(default=None, description="The structured content, as JSON.")
    meta: dict[str, Any] = Field(default_factory=dict, description="Its `_meta`, without names that mean something.")
