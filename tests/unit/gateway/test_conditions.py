"""Whether a change is made: by the tag that its client has read, and by what is there now."""

from __future__ import annotations

import pytest

from wayline.contracts.errors import NotFound, Reject
from wayline.gateway.conditions import entity_tag, read_condition
from wayline.gateway.errors import PreconditionFailed

NOW, OLD = entity_tag("now"), entity_tag("old")


async def holds(if_match: str | None, if_none_match: str | None, *, there: bool = True) -> bool:
    async def present() -> str:
        if not there:
            raise NotFound("agent", "a")
        return NOW

    try:
        await read_condition(if_match, if_none_match).check(present)
    except PreconditionFailed as error:
        assert error.status == 412
        return False
    return True


@pytest.mark.parametrize(
    ("if_match", "if_none_match", "there", "expected"),
    [
        (None, None, True, True),
        (None, None, False, True),
        (NOW, None, True, True),
        (OLD, None, True, False),
        (f"{OLD}, {NOW}", None, True, True),
        (NOW, None, False, False),
        ("*", None, True, True),
        ("*", None, False, False),
        (f"W/{NOW}", None, True, False),
        (None, "*", True, False),
        (None, "*", False, True),
    ],
)
async def test_a_change_is_made_only_where_its_condition_holds(
    if_match: str | None, if_none_match: str | None, *, there: bool, expected: bool
):
    assert await holds(if_match, if_none_match, there=there) is expected


@pytest.mark.parametrize(("if_match", "if_none_match"), [("abc", None), ("", None), (None, '"x"'), ('"a",b', None)])
def test_headers_that_say_nothing_are_refused(if_match: str | None, if_none_match: str | None):
    with pytest.raises(Reject) as refused:
        read_condition(if_match, if_none_match)

    assert refused.value.status == 422


def test_a_tag_is_strong_and_differs_with_what_was_saved():
    assert entity_tag({"a": 1, "b": 2}) == entity_tag({"b": 2, "a": 1})
    assert len({entity_tag({"a": 1}), entity_tag({"a": 2}), entity_tag({"a": 1}, 2)}) == 3
    assert NOW[0] == NOW[-1] == '"'
