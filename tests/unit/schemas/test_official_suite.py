"""The required tests of the JSON Schema Test Suite."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wayline.schemas import UnusableSchema, compile_schema

OFFICIAL = Path(__file__).parent / "official"
DIALECTS = {"draft2020-12": None, "draft7": "http://json-schema.org/draft-07/schema#"}
UNUSABLE = {
    "draft2020-12": {"defs": 1, "dynamicRef": 16, "ref": 1, "unevaluatedItems": 1, "unevaluatedProperties": 1},
    "draft7": {"definitions": 1, "ref": 1},
}
"""How many schemas of a file refer to a schema elsewhere, or to a part that depends on the way there."""


def groups(draft: str) -> dict[str, list[dict[str, Any]]]:
    return json.loads((OFFICIAL / f"{draft}.json").read_text())


def compiled(schema: Any, dialect: str | None):
    return compile_schema({"$schema": dialect, **schema} if dialect and isinstance(schema, dict) else schema)


@pytest.mark.parametrize(("draft", "name"), [(draft, name) for draft in DIALECTS for name in groups(draft)])
def test_each_value_is_judged_as_the_suite_says(draft: str, name: str):
    wrong: list[str] = []
    unusable = 0
    for group in groups(draft)[name]:
        try:
            schema = compiled(group["schema"], DIALECTS[draft])
        except UnusableSchema:
            unusable += 1
            continue
        for one in group["tests"]:
            if bool(schema.problems(one["data"])) is one["valid"]:
                wrong.append(f"{group['description']}: {one['description']}")

    assert wrong == []
    assert unusable == UNUSABLE[draft].get(name, 0)
