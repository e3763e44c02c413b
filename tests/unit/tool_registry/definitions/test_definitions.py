"""Definitions differ by their fingerprints, and are shown by where they differ."""

from __future__ import annotations

import json

import pytest

from wayline.tool_registry.definitions.definitions import (
    CHANGED,
    INSTRUCTIONS,
    NEW,
    OTHER_INSTRUCTIONS,
    TOOLS_MAX,
    Definition,
    Difference,
    Pins,
    can_be_kept,
    definition_of,
    differences,
    fingerprint,
    instructions_of,
    require_moderate,
    review,
)
from wayline.tool_registry.errors import TooMuchOffered

PAY = {"name": "pay", "description": "Pay a bill.", "inputSchema": {"type": "object", "properties": {}}}


def one(name: str, sha256: str) -> Definition:
    return Definition(name, sha256, "{}")


def pins(**waiting: str) -> Pins:
    return Pins(begun=True, approved={"pay": "a", "rate": "b", INSTRUCTIONS: "i"}, waiting=waiting)


OFFERED = [one("rate", "b"), one("pay", "a"), one(INSTRUCTIONS, "i")]


def test_the_order_of_keys_does_not_count():
    turned = {"inputSchema": {"properties": {}, "type": "object"}, "description": "Pay a bill.", "name": "pay"}

    assert fingerprint(turned) == fingerprint(PAY)


@pytest.mark.parametrize(
    "more",
    [{"x-vendor": 1}, {"title": ""}, {"_meta": {}}, {"annotations": {"x": None}}, {"description": "Pay a bill. "}],
)
def test_every_other_change_counts(more: dict):
    assert fingerprint(PAY | more) != fingerprint(PAY)


def test_a_definition_keeps_the_hash_of_the_raw_object():
    kept = definition_of(PAY | {"description": "key secret"}, shown=PAY | {"description": "key ***"})

    assert kept.sha256 == fingerprint(PAY | {"description": "key secret"})
    assert "secret" not in kept.text + repr(kept)


def test_no_instructions_are_the_same_as_empty_ones():
    assert instructions_of(None, shown=None) == instructions_of("", shown="")


def test_what_was_approved_is_not_held():
    found = review(OFFERED, pins())

    assert (found.withheld, found.hold, found.release) == ({}, (), ())


def test_changed_and_new_tools_are_held():
    found = review([*OFFERED[:1], one("pay", "other"), one("take", "t"), OFFERED[2]], pins())

    assert found.withheld == {"pay": CHANGED, "take": NEW}
    assert set(found.hold) == {one("take", "t"), one("pay", "other")}


def test_other_instructions_hold_every_tool():
    found = review([*OFFERED[:2], one(INSTRUCTIONS, "other")], pins())

    assert found.withheld == dict.fromkeys(["pay", "rate", INSTRUCTIONS], OTHER_INSTRUCTIONS)
    assert found.hold == (one(INSTRUCTIONS, "other"),)


def test_what_waits_already_is_not_written_again():
    assert review([*OFFERED[:1], one("pay", "other"), OFFERED[2]], pins(pay="other")).hold == ()


def test_what_is_as_approved_or_gone_waits_no_more():
    assert set(review(OFFERED, pins(pay="other", take="t")).release) == {"pay", "take"}


def test_the_first_of_two_tools_with_one_name_counts():
    assert review([*OFFERED, one("pay", "other")], pins()).withheld == {}
    assert review([one("pay", "other"), *OFFERED], pins()).withheld == {"pay": CHANGED}


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800", "x" * 257])
def test_a_name_that_cannot_be_kept_is_refused(name: str):
    assert not can_be_kept(name)


def test_too_many_definitions_are_refused():
    require_moderate([one("t", "a")] * TOOLS_MAX)
    with pytest.raises(TooMuchOffered, match="2001 tools"):
        require_moderate([one("t", "a")] * (TOOLS_MAX + 1))
    with pytest.raises(TooMuchOffered, match="bytes"):
        require_moderate([Definition("t", "a", " " * 17_000_000)])


def test_differences_name_their_place_and_escape_hidden_characters():
    before = {"description": "Pay.", "inputSchema": {"required": ["a"], "a/b": 1, "enum": ["x", "y"]}}
    after = {
        "description": "Pay.\u202e\x1b[2K",
        "inputSchema": {"required": ["a", "b"], "enum": ["x", "z"], "k\u200bey": True},
    }

    found = differences(json.dumps(before), json.dumps(after))

    assert found == [
        Difference("/description", '"Pay."', '"Pay.\\u202e\\u001b[2K"'),
        Difference("/inputSchema/a~1b", "1", None),
        Difference("/inputSchema/enum/1", '"y"', '"z"'),
        Difference("/inputSchema/k\\u200bey", None, "true"),
        Difference("/inputSchema/required", '["a"]', '["a", "b"]'),
    ]


def test_a_new_definition_is_shown_whole():
    assert differences(None, json.dumps({"name": "take"})) == [Difference("/name", None, '"take"')]


def test_hidden_characters_change_the_pinned_hash():
    plain, hidden = ({"name": "pay", "description": text} for text in ("Pay.", "Pay.\u200b"))

    assert definition_of(plain, shown=plain).sha256 != definition_of(hidden, shown=hidden).sha256
