"""Plans of a public set have valid waves, and with a model that says what it knows nearly every dependency."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .measures import Measured, decided, goals, shop

WORDS_RECALL_MIN, WORDS_PRECISION_MIN = 0.35, 0.6
"""Of words alone, where no sentence says what comes first: measured, and not to fall."""


def said(found: Measured) -> str:
    return f"{found.plans} plans: {found.recall:.3f} of {found.gold} dependencies, precision {found.precision:.3f}"


@pytest.mark.timeout(300)
def test_waves_are_valid_and_words_alone_find_a_third(tell: Callable[[str], None]):
    found = decided(goals(), model=False)

    tell(f"planned by words alone, {said(found)}")
    assert (found.valid, found.whole, found.in_order) == (found.plans,) * 3
    assert found.recall >= WORDS_RECALL_MIN and found.precision >= WORDS_PRECISION_MIN


@pytest.mark.timeout(300)
def test_a_model_that_says_what_it_knows_is_understood(tell: Callable[[str], None]):
    found = decided(goals(), model=True)

    tell(f"planned with a scripted model, {said(found)}")
    assert (found.valid, found.whole) == (found.plans,) * 2
    assert found.recall >= 0.9 and found.in_order >= 0.8 * found.plans


def test_the_shop_is_planned_without_a_model():
    found = decided([shop()], model=False)

    assert found.valid == found.whole == 1 and found.recall >= 0.9
