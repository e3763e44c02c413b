"""Which servers a job waits for before it begins, and what it says without them."""

from __future__ import annotations

import pytest

from wayline.contracts.tools import ServerAway
from wayline.executor.decide.absent_tools import absent_servers, began_without, worth_waiting

NEVER_REACHED = ServerAway(name="crm", known=False, tried=False)
FAILED = ServerAway(name="crm", known=False)
KNOWN = ServerAway(name="crm")


@pytest.mark.parametrize("pattern", ["crm__find", "crm__*", "*", "cr*", "c?m__find", "[c]*"])
def test_a_server_that_was_not_reached_yet_is_waited_for(pattern: str):
    assert worth_waiting((pattern,), (NEVER_REACHED,)) == ("crm",)


@pytest.mark.parametrize("pattern", ["bank__*", "crm", "calculator", "crm2__*", "b*"])
def test_a_server_that_the_agent_does_not_use_delays_nothing(pattern: str):
    assert worth_waiting((pattern,), (NEVER_REACHED,)) == ()


def test_a_failed_server_is_waited_for_only_where_named():
    assert worth_waiting(("*",), (FAILED,)) == ()
    assert worth_waiting(("crm__*",), (FAILED,)) == ("crm",)
    assert absent_servers(("*",), (FAILED,)) == (FAILED,)


def test_a_server_whose_tools_are_listed_is_not_absent():
    assert absent_servers(("crm__*", "*"), (KNOWN,)) == ()


def test_a_result_names_only_servers_that_the_agent_names():
    assert began_without(("crm__*", "*"), ("crm", "bank")) == (
        "the job began without the tools of crm: not reached at that time"
    )
    assert began_without(("*",), ("crm",)) is None
