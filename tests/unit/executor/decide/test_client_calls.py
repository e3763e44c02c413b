"""Calls of a caller's own tools: who is asked before they are given out, and that no program makes them."""

from __future__ import annotations

from typing import Any

import pytest

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.jobs import ClientTool, JobOptions
from wayline.contracts.tools import Effect, ToolDefinition
from wayline.executor.decide.actions import AskApproval, GiveOut, RunTools
from wayline.executor.decide.client_calls import client_definitions
from wayline.executor.prompt.programs import stubs_of

from ..logs import Log

PAGE = ToolDefinition(name="page", description="A page.", input_schema={}, effect=Effect.READ, untrusted=True)


def asks(effect: Any, *, tainted: bool) -> Log:
    """A job whose model calls its caller's tool, after it has read a page where it is tainted."""
    options = JobOptions(client_tools=(ClientTool(name="ours", effect=effect),))
    log = Log(config=AgentConfig(tools=("page",), code=True), options=options).say(e.ClientToolsGiven, tools=("ours",))
    log.ask(tools=(PAGE, *client_definitions(log.job))).answer("", "page")
    assert isinstance(log.next, RunTools)
    read = {"step": 1, "call": "1", "tool": "page"}
    log.say(e.ToolRequested, **read, arguments={}, effect=Effect.READ, key="k1")
    log.say(e.ToolCompleted, **read, status="success", content="buy!", words="strangers" if tainted else "trusted")
    return log.ask(2).answer("", "ours")


@pytest.mark.parametrize(
    ("effect", "tainted", "action"),
    [("once", True, AskApproval), ("read", True, GiveOut), ("once", False, GiveOut)],
    ids=["writes after strangers' words", "only reads", "no strangers"],
)
def test_a_person_is_asked_before_a_call_is_given_out(effect: str, tainted: bool, action: type):
    assert isinstance(asks(effect, tainted=tainted).next, action)


def test_a_program_knows_no_tool_of_the_caller():
    stubs = str(stubs_of(asks("read", tainted=False).job))

    assert "page" in stubs and "ours" not in stubs
