"""The built-in tool `calculator`."""

# No `from __future__ import annotations`: the MCP library evaluates the tools' annotations where it finds them.

from typing import Annotated

from pydantic import Field

from wayline.tool_registry.calculation.arithmetic import EXPRESSION_CHARS_MAX, calculate
from wayline.tool_registry.calculation.exact_numbers import CannotCompute


async def calculator(
    expression: Annotated[
        str,
        Field(
            min_length=1,
            max_length=EXPRESSION_CHARS_MAX,
            description="Such as (3 + 4) * 2^10, 15% of 80, 17 mod 5, round(2/3, 2), sqrt(2), log(8, 2), "
            "mean(1, 2, 4), stdev(1, 2, 4), percent_change(80, 92). Angles are in radians. No commas in numbers, "
            "a space after each between arguments.",
        ),
    ],
) -> str:
    """Calculate an arithmetic expression exactly; a rounded result begins with "about"."""
    from mcp.server.mcpserver.exceptions import ToolError

    try:
        return calculate(expression)
    except CannotCompute as error:
        raise ToolError(str(error)) from None
