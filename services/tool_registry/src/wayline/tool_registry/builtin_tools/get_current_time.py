"""The built-in tool `get_current_time`."""

# No `from __future__ import annotations`: the MCP library evaluates the tools' annotations where it finds them.

from datetime import datetime
from typing import Annotated

from pydantic import Field

from wayline.tool_registry.calculation.local_times import CannotCalculate, zone


async def get_current_time(
    timezone: Annotated[str, Field(description="An IANA name such as Europe/Zurich.")] = "UTC",
) -> str:
    """Tell the current date and time."""
    from mcp.server.mcpserver.exceptions import ToolError

    try:
        now = datetime.now(zone(timezone))
    except CannotCalculate as error:
        raise ToolError(str(error)) from None
    return f"{now.isoformat(timespec='seconds')} ({now:%A})"
