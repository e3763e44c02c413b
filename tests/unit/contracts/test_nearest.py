from __future__ import annotations

from wayline.contracts.nearest import nearest_names

TOOLS = ("crm__find", "crm__find_order", "shop__pay")


def test_the_name_that_is_spelled_most_alike_is_suggested():
    assert nearest_names("crm_find", TOOLS) == ["crm__find"]


def test_several_names_are_suggested_the_most_alike_first():
    assert nearest_names("crm_find", TOOLS, most=2) == ["crm__find", "crm__find_order"]


def test_nothing_is_suggested_for_a_name_like_none():
    assert nearest_names("xyz", TOOLS) == []
