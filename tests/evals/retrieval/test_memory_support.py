"""Of what an extractor invents next to nothing is kept, and of what is true nearly all, on public conversations."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.bench import memory_support as bench

from ..shared import needed

JUNK_MAX = 0.02
TRUE_MIN = {"memory-locomo-dev": 0.85, "memory-bfcl": 0.93}


@pytest.mark.parametrize("name", bench.SETS)
def test_inventions_are_refused_and_paraphrases_kept(name: str, tell: Callable[[str], None]):
    sessions, claims = bench.SETS[name](needed(name))

    found = bench.measure(sessions, claims)

    tell(f"{name}: {found}, junk {found.junk:.3f}")
    assert found.junk <= JUNK_MAX
    assert found.true >= TRUE_MIN[name]
