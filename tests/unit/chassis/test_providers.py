"""What executors tell each other of a model, across versions."""

import json

import pytest

from wayline.chassis.providers import Condition, ProviderState, read_state


@pytest.mark.parametrize("condition", Condition)
def test_a_word_is_read_as_it_was_written(condition):
    state = ProviderState(until=7, condition=condition)

    assert read_state(state.to_wire()) == state


@pytest.mark.parametrize(
    ("why", "condition"),
    [
        ("asked to be left alone", Condition.HELD),
        ("keeps failing", Condition.FAILING),
        ("is well", Condition.WELL),
    ],
)
def test_older_builds_are_understood_and_understand(why, condition):
    assert read_state(json.dumps({"until": 7, "why": why}).encode()) == ProviderState(until=7, condition=condition)
    assert json.loads(ProviderState(until=7, condition=condition).to_wire())["why"] == why


@pytest.mark.parametrize("body", [b"nonsense", b"[]", b'{"until": 1}', b'{"until": 1, "condition": "new"}'])
def test_a_word_of_another_kind_is_ignored(body):
    assert read_state(body) is None
