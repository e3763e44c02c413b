"""Answers that are JSON are drawn as tables, lists and waves; what is not, or too much, stays as it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wayline.console.render.environment import Templates
from wayline.console.render.structured import DEPTH_MAX, VALUES_MAX, Structured, structured_of

from ...console_payloads import PAYLOADS
from .test_hostile_content import require_ours, text_of

PLAN = {
    "prioritized_tasks": [{"id": "t2", "name": "Paint", "wave": 1}, {"id": "t1", "name": "Hang", "wave": 2}],
    "execution_waves": [{"wave": 1, "tasks": ["t2", "t9"]}, {"wave": 2, "tasks": ["t1"]}],
}


def html_of(value: Any) -> str:
    template = "{% import 'components_structured.html' as s %}{{ s.structured(found, raw) }}"
    found = Structured(value)
    return Templates()._environment.from_string(template).render(found=found, raw=json.dumps(value))


@pytest.mark.parametrize(
    ("text", "is_drawn"),
    [
        ('{"a": 1}', True),
        (' [{"a": 1}]', True),
        ("{}", False),
        ("{not json", False),
        ("The answer is {}", False),
        ('{"a": NaN}', False),
        ("[" * 5_000, False),
        (json.dumps(list(range(VALUES_MAX + 1))), False),
        ('{"a":' * DEPTH_MAX + "1" + "}" * DEPTH_MAX, False),
    ],
)
def test_only_json_that_fits_a_page_is_drawn(text: str, is_drawn: bool):
    assert (structured_of(text) is not None) is is_drawn


def test_the_waves_of_a_plan_stand_side_by_side_by_name():
    found = structured_of(json.dumps(PLAN))

    assert found and found.waves == [["Paint", "t9"], ["Hang"]]
    assert html_of(PLAN).count("<h3>Wave") == 2


@pytest.mark.parametrize("waves", [7, [7], [{"tasks": "t1"}], {}, None])
def test_what_only_looks_like_a_plan_has_no_waves(waves: Any):
    assert Structured({"execution_waves": waves}).waves == []


def test_like_objects_are_rows_and_others_are_lists():
    html = html_of({"items": [{"name": "tea", "price": 3.5}, {"name": "milk", "cold": True}], "tags": ["a", None]})

    assert "<th>name</th><th>price</th><th>cold</th>" in html and '<td class="number">3.5</td>' in html
    assert "<td>yes</td>" in html and html.count("<li>") == 2


@pytest.mark.parametrize("nothing", [{}, []])
def test_what_is_empty_in_an_answer_is_said_to_be(nothing: Any):
    assert '<li class="quiet">none</li>' in html_of({"found": nothing})


def test_strangers_words_in_a_structured_answer_make_no_element():
    words = [word for word in PAYLOADS if len(word) < 2_000]
    rows = [{"a": word, "b": word} for word in words]
    page = html_of({"x": rows, "y": words})
    plain = html_of({"x": [{"a": "s", "b": "s"}] * len(words), "y": ["s"] * len(words)})

    assert require_ours(page) == require_ours(plain)
    assert "alert(1)" in text_of(page)
