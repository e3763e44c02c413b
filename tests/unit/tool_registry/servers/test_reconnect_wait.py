"""How long a registry waits before it connects to a server again."""

from __future__ import annotations

from wayline.tool_registry.servers.reconnect_wait import FIRST_S, ReconnectWait


def test_waits_double_up_to_the_most_while_nothing_connects():
    wait = ReconnectWait(most_s=1)

    assert [wait.after(0) for _ in range(5)] == [FIRST_S, 2 * FIRST_S, 4 * FIRST_S, 1, 1]


def test_a_connection_that_soon_ends_does_not_shorten_the_wait():
    wait = ReconnectWait(most_s=1)

    assert [wait.after(0.5) for _ in range(4)] == [FIRST_S, 2 * FIRST_S, 4 * FIRST_S, 1]


def test_a_connection_that_lasted_begins_with_the_first_wait():
    wait = ReconnectWait(most_s=1)
    for _ in range(3):
        wait.after(0)

    assert [wait.after(1), wait.after(0)] == [FIRST_S, 2 * FIRST_S]
