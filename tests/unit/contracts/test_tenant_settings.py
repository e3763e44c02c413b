"""What a switch adds to an agent's `tools_off` is told from what the agent says itself."""

from __future__ import annotations

import pytest

from wayline.contracts.tenant_settings import MEMORY_WRITING_TOOLS, SWITCHED_TOOLS, own_tools_off


@pytest.mark.parametrize("added", [*SWITCHED_TOOLS.values(), MEMORY_WRITING_TOOLS])
def test_patterns_that_a_switch_adds_are_left_out(added: tuple[str, ...]):
    assert own_tools_off(("bank__*", *added, "pay")) == ("bank__*", "pay")


def test_single_patterns_of_a_switch_are_the_agents_own():
    assert own_tools_off(("web_fetch*", "memory_*")) == ("web_fetch*", "memory_*")
