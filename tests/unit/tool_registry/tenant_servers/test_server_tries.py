"""How many servers are tried at once."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from wayline.tool_registry.errors import TriesFull
from wayline.tool_registry.tenant_servers.server_tries import TRIES_MAX, TRIES_PER_TENANT_MAX, ServerTries


def test_one_tenants_tries_leave_room_to_another():
    tries = ServerTries()
    with ExitStack() as stack:
        for _ in range(TRIES_PER_TENANT_MAX):
            stack.enter_context(tries.begun("acme"))

        with pytest.raises(TriesFull, match="4 servers of this tenant are being tried"), tries.begun("acme"):
            pass
        stack.enter_context(tries.begun("zenith"))


def test_all_tenants_together_have_a_limit():
    tries = ServerTries()
    with ExitStack() as stack:
        for number in range(TRIES_MAX):
            stack.enter_context(tries.begun(f"tenant-{number}"))

        with pytest.raises(TriesFull, match="16 servers are being tried"), tries.begun("one-more"):
            pass


def test_a_try_that_failed_makes_room():
    tries = ServerTries()
    for _ in range(TRIES_MAX + 1):
        with pytest.raises(ValueError, match="away"), tries.begun("acme"):
            raise ValueError("away")
