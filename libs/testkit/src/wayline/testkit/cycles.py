"""What code leaves behind that only Python's cycle collector finds: services have it run seldom."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any


@contextmanager
def uncollected() -> Iterator[list[Any]]:
    """Yield what is there when the block ends though nobody refers to it: until then Python looks for nothing."""
    found: list[Any] = []
    gc.collect()
    gc.disable()
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found += gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def whose(thing: Any) -> str:
    """Return what a thing is, and of a call under way which."""
    for attribute in ("cr_code", "gi_code", "ag_code", "f_code", "__code__"):
        if isinstance(code := getattr(thing, attribute, None), CodeType):
            return f"{code.co_filename}: {code.co_name}"
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def ours(name: str) -> bool:
    """Say whether `whose` has named something of ours."""
    return name.startswith("wayline.") or "/wayline/" in name
