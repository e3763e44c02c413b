"""How long a registry waits before it asks a server for its tools again."""

from __future__ import annotations

from wayline.tool_registry.servers.tool_changes import (
    CHANGED_PAUSE_MAX_S,
    CHANGED_PAUSE_S,
    QUIET_S,
    ChangePause,
)


def test_a_flood_of_changes_is_answered_ever_more_rarely():
    pause, now, asked = ChangePause(), 0.0, 0
    while now < 600:
        now += pause.after_change(now) + 0.01
        asked += 1

    assert asked < 30
    assert pause.after_change(now) == CHANGED_PAUSE_MAX_S


def test_a_change_after_a_quiet_while_is_heard_at_once():
    pause = ChangePause()
    for now in range(5):
        pause.after_change(now)

    assert pause.after_change(1_000.0) == CHANGED_PAUSE_S
    assert pause.after_change(1_000.0 + CHANGED_PAUSE_S + QUIET_S + 0.1) == CHANGED_PAUSE_S
