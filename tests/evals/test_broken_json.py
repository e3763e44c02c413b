"""Public lists of broken, strict and unfinished JSON, read by our own readers."""

from __future__ import annotations

import base64
import json
import time
import tracemalloc
from typing import Any

import pytest

from wayline.llm.broken_json import repair, tool_arguments

from .shared import rows

WRONG_MAX = 5
CASE_MAX_S = 1.0
CASE_MAX_BYTES = 100 * 1024 * 1024
OPTIONS_WITHOUT_MEANING = {"return_objects"}
"""Options of a case that change the type of its answer, not the answer."""


def same(one: Any, other: Any) -> bool:
    """Equal in value and in type: True is not 1 here."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def test_broken_json_is_mended_as_its_list_expects(tell):
    cases = [
        case
        for case in rows("json-repair-cases", "cases.jsonl.gz")
        if not case["empty"]
        and OPTIONS_WITHOUT_MEANING.issuperset(case["options"])
        and isinstance(case["expected_object"], (dict, list))
    ]
    wrong = [case["input"] for case in cases if not same(_mended(case["input"]), case["expected_object"])]
    tell(f"broken JSON mended: {len(cases) - len(wrong)} of {len(cases)}")

    assert len(wrong) <= WRONG_MAX, wrong


def _mended(text: str) -> Any:
    try:
        return repair.repaired(text)
    except ValueError:
        return None


def test_the_parsing_test_suite_comes_through_unchanged_and_within_its_limits(tell):
    slowest, largest = 0.0, 0
    for case in rows("json-testsuite", "cases.jsonl.gz"):
        text = base64.b64decode(case["base64"]).decode(errors="replace")
        began = time.perf_counter()
        value = _mended(text)
        took_s = time.perf_counter() - began
        # Tracing makes everything slow: memory is measured in a run of its own.
        tracemalloc.start()
        _mended(text)
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        slowest, largest = max(slowest, took_s), max(largest, peak_bytes)
        assert took_s < CASE_MAX_S, case["name"]
        assert peak_bytes < CASE_MAX_BYTES, case["name"]
        if case["must"] == "accept":
            assert same(value, json.loads(text)), case["name"]
    tell(f"JSON test suite: slowest {slowest * 1_000:.1f} ms, largest {largest / 1e6:.1f} MB")


def test_arguments_that_models_wrote_are_read(tell):
    cases = rows("json-model-output", "tool_tool_arguments.jsonl.gz")
    for case in cases:
        assert same(tool_arguments.read(case["arguments"]), json.loads(case["arguments"] or "{}")), case["src"]
    tell(f"arguments that models wrote: {len(cases)} of {len(cases)} read")


@pytest.mark.parametrize("one_by_one", [False, True])
def test_unfinished_arguments_are_never_contradicted(tell, one_by_one: bool):
    cases = rows("json-model-output", "argument_fragments.jsonl.gz")
    for case in cases:
        whole = "".join(case["fragments"])
        final, text, known = json.loads(whole), "", None
        for piece in whole if one_by_one else case["fragments"]:
            text += piece
            known = repair.partial(text)
            assert known is None or _begins(known, final), text
        assert same(known, final)
    how = "a character at a time" if one_by_one else "as they came"
    tell(f"unfinished arguments, {how}: {len(cases)} of {len(cases)} never contradicted")


def _begins(known: Any, final: Any) -> bool:
    """Whether what is known can still become the final value by being added to."""
    if isinstance(known, dict):
        return isinstance(final, dict) and all(key in final and _begins(known[key], final[key]) for key in known)
    if isinstance(known, list):
        return isinstance(final, list) and len(known) <= len(final) and all(map(_begins, known, final))
    if isinstance(known, str):
        return isinstance(final, str) and final.startswith(known)
    return same(known, final)
