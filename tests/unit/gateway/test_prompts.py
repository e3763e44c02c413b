"""Prompts: which templates are taken, and how values get into them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from wayline.contracts.errors import Reject
from wayline.gateway.shapes.prompts import PromptBody, completed, proposals

REVIEW: dict[str, Any] = {
    "arguments": [{"name": "text"}, {"name": "tone", "required": False, "values": ["kind", "Keen", "plain"]}],
    "messages": [{"text": "In a {{ tone }} tone: {{text}}"}, {"resource": "document://{{text}}"}],
}


def test_values_are_put_in_their_places_once():
    text, resource = completed(PromptBody(**REVIEW), {"text": "a/{{tone}}", "tone": "kind"})

    assert (text.text, resource.resource) == ("In a kind tone: a/{{tone}}", "document://a%2F%7B%7Btone%7D%7D")


def test_an_optional_value_that_is_left_out_is_empty():
    text, _ = completed(PromptBody(**REVIEW), {"text": "x"})

    assert text.text == "In a  tone: x"


@pytest.mark.parametrize(("given", "words"), [({}, "lacks text"), ({"text": "x", "size": "9"}, "no argument size")])
def test_values_that_do_not_fit_are_refused_by_name(given: dict[str, str], words: str):
    with pytest.raises(Reject, match=words):
        completed(PromptBody(**REVIEW), given)


def test_proposals_begin_with_what_was_typed():
    prompt = PromptBody(**REVIEW)

    assert proposals(prompt, "tone", "ke") == ["Keen"]
    assert proposals(prompt, "tone", "") == ["kind", "Keen", "plain"]
    assert proposals(prompt, "text", "") == proposals(prompt, "size", "") == []


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"messages": [{"text": "{{other}}"}]}, "lacks what the messages use: other"),
        ({"arguments": [{"name": "text"}, {"name": "text"}]}, "twice: text"),
        ({"messages": [{"text": "a", "resource": "document://b"}]}, "either `text` or `resource`"),
        ({"messages": [{}]}, "either `text` or `resource`"),
        ({"messages": []}, "at least 1 item"),
    ],
)
def test_a_template_that_cannot_be_completed_is_refused(changed: dict[str, Any], words: str):
    with pytest.raises(ValidationError, match=words):
        PromptBody(**{**REVIEW, **changed})
