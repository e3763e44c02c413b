"""Keep short what stops an event loop although no handler computes: the garbage collector, and threads that compute."""

from __future__ import annotations

import gc
import sys

COLLECT_AFTER = 50_000
"""Objects made beyond those that went before Python looks for cycles: a message makes thousands and hardly a cycle."""
SWITCH_S = 0.002
"""How long a thread that computes may keep the loop waiting each time that it wants to go on. Python's own is 5 ms, and
a call of a tool wants to go on about twenty times; much less would make a busy machine do little but change threads."""


def shorten_pauses() -> None:
    """Set up the interpreter of a service that has started."""
    keep_for_good()
    gc.set_threshold(COLLECT_AFTER)


def switch_often() -> None:
    """Let the loop go on soon where threads of this process read what strangers sent; other services have none."""
    sys.setswitchinterval(SWITCH_S)


def keep_for_good() -> None:
    """Take all objects that there are out of what is searched for cycles.

    Modules, classes and validators are some 150,000 objects that never go: to search them takes 80 ms each time. No
    search before: of so many it would find some ten to free.
    """
    gc.freeze()
