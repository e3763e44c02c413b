"""Tools that a job's caller runs itself: how many there may be, how large, and what they may be called."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from wayline.contracts.jobs import JobOptions
from wayline.contracts.jobs.client_tools import CLIENT_TOOLS_MAX, DESCRIPTION_MAX_CHARS, RESERVED


def named(*names: str, **more: Any) -> dict[str, Any]:
    return {"client_tools": [{"name": name, **more} for name in names]}


def test_as_many_tools_as_may_be_are_taken():
    tools = JobOptions.model_validate(named(*(f"t{n}" for n in range(CLIENT_TOOLS_MAX)))).client_tools

    assert tools is not None and len(tools) == CLIENT_TOOLS_MAX
    assert {tool.definition().effect for tool in tools} == {"once"}


@pytest.mark.parametrize(
    "options",
    [
        named(*(f"t{n}" for n in range(CLIENT_TOOLS_MAX + 1))),
        named(*(f"t{n}" for n in range(9)), description="é" * (DESCRIPTION_MAX_CHARS // 2)),
        named("same", "same"),
        named("two words"),
        named("t", effect="reconcile"),
        named("t", owner="me"),
        named(),
    ],
    ids=["too many", "too large", "the same name", "no name", "asked afterwards", "an unknown field", "none"],
)
def test_tools_beyond_the_bounds_are_refused(options: dict[str, Any]):
    with pytest.raises(ValidationError):
        JobOptions.model_validate(options)


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_no_tool_has_the_name_of_a_built_in_one(name: str):
    with pytest.raises(ValidationError):
        JobOptions.model_validate(named(name))
