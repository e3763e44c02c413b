"""What a result's text says already is not said again, and to find that out takes no more than a moment."""

from __future__ import annotations

from wayline.tool_registry.calls.structured_content import LEAVES_MAX, with_structured


def test_values_that_the_text_names_are_not_shown_again():
    assert with_structured(["Oslo has 3 degrees"], {"city": "Oslo", "degrees": 3}) == ["Oslo has 3 degrees"]
    assert len(with_structured(["Oslo has 3 degrees"], {"city": "Oslo", "wind": 7})) == 2


def test_a_long_text_is_not_searched_for_each_of_many_values():
    names = [f"{'a' * 20}b{n:05}" for n in range(LEAVES_MAX)]
    # A search for all of them takes six seconds.
    text = "a" * 900_000 + "".join(names)

    assert len(with_structured([text], {"names": names})) == 2
