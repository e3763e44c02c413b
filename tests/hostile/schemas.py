"""Schemas and values that keep an ordinary evaluator busy for ever, and what has to come of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Outcome = Literal["fits", "refused", "unusable", "over budget"]


@dataclass(frozen=True)
class HostileSchema:
    """A tool's schema, the arguments of a call, and the outcome where the schema is a stranger's tool's."""

    name: str
    schema: Any
    value: Any
    outcome: Outcome
    strict: Outcome | None = None
    """Where it differs for the answer of an agent: what cannot be checked is no schema for it."""


def text(pattern: str) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}}


def doubling(keyword: str, levels: int, end: Any) -> dict[str, Any]:
    """Return a schema in which each level refers to the next one twice."""
    defs: dict[str, Any] = {f"d{n}": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return {"type": "object", "$defs": {**defs, f"d{levels}": end}, "properties": {"a": {"$ref": "#/$defs/d0"}}}


def chain(length: int) -> dict[str, Any]:
    defs: dict[str, Any] = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(length)}
    return {"type": "object", "$defs": {**defs, f"d{length}": {}}, "properties": {"a": {"$ref": "#/$defs/d0"}}}


def nested(depth: int, keyword: str = "properties") -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(depth):
        schema = {"type": "object", keyword: {"a": schema}} if keyword == "properties" else {keyword: [schema]}
    return schema


def deep_value(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


EMAIL = r"^([a-zA-Z0-9])(([\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+[.]{1}(([a-z]{2,3})|([a-z]{2,3}[.]{1}[a-z]{2,3}))$"
PASSWORD = r"^(?=.*[A-Z])(?=.*\d)[^\s]{8,}$"
MANY = [{"n": n} for n in range(20_000)]
TREE = {"type": "object", "properties": {"a": {"$ref": "#"}}, "additionalProperties": False}
SHORT_TEXTS = {"properties": {"a": {"items": {"pattern": r"(?:[ab]{1,30}){1,30}c|ab"}}}}

CASES = [
    HostileSchema("nested repeats", text("^(a+)+$"), {"a": "a" * 26 + "!"}, "refused"),
    HostileSchema("nested repeats, long", text("^(a+)+$"), {"a": "a" * 100_000 + "!"}, "refused"),
    HostileSchema("a published e-mail pattern", text(EMAIL), {"a": "a" * 32}, "refused"),
    HostileSchema("alternatives that overlap", text(r"^(a|aa|a?)*b$"), {"a": "a" * 40}, "refused"),
    HostileSchema("repeats of anything", text(r"^(.*)*(.*)*(.*)*=$"), {"a": "x" * 5_000}, "refused"),
    HostileSchema("spaces around", text(r"^\s*(.*?)\s*$"), {"a": " " * 50_000 + "x"}, "fits"),
    HostileSchema("counted repeats", text(r"(?:[a-z]{1,10}x?){1,6}Y"), {"a": "abcxq" * 20_000}, "fits", "over budget"),
    HostileSchema("a pattern too large", text(r"((a{1,100}){1,100}){1,100}"), {"a": "a"}, "fits", "unusable"),
    HostileSchema("a repeat of a million", text(r"a{1000000}"), {"a": "a"}, "fits", "unusable"),
    HostileSchema("brackets without end", text("(" * 1_500 + ")" * 1_500), {"a": "a"}, "fits", "unusable"),
    HostileSchema("a long pattern", text("(a|b)" * 10_000), {"a": "a"}, "fits", "unusable"),
    HostileSchema("references back", text(r"(a*)*\1b"), {"a": "a" * 40}, "fits", "unusable"),
    HostileSchema("looking behind", text(r"(?<=a+)b"), {"a": "b"}, "fits", "unusable"),
    HostileSchema("a password that fits", text(PASSWORD), {"a": "Secret123"}, "fits"),
    HostileSchema("a password that does not", text(PASSWORD), {"a": "secret123"}, "refused"),
    HostileSchema("no pattern at all", text("["), {"a": "a"}, "fits", "unusable"),
    HostileSchema(
        "a thousand patterns",
        {"type": "object", "patternProperties": {f"^{n}(a+)+$": {} for n in range(1_000)}},
        {"a": 1},
        "unusable",
    ),
    HostileSchema(
        "patterns by names",
        {"type": "object", "patternProperties": {f"^(a|{n})+$": {"type": "integer"} for n in range(150)}},
        {"a" * 50 + str(n): 1 for n in range(2_000)},
        "over budget",
    ),
    HostileSchema("doubling by allOf", doubling("allOf", 60, {"type": "string"}), {"a": "x"}, "fits"),
    HostileSchema("doubling by allOf, wrong", doubling("allOf", 60, {"type": "string"}), {"a": 1}, "refused"),
    HostileSchema("doubling by anyOf", doubling("anyOf", 60, {"type": "string"}), {"a": 1}, "refused"),
    HostileSchema("doubling by oneOf", doubling("oneOf", 60, {"type": "string"}), {"a": "x"}, "refused"),
    HostileSchema(
        "doubling that keeps what was seen",
        {**doubling("anyOf", 60, {"properties": {"b": {}}}), "unevaluatedProperties": False},
        {"a": {"b": 1}},
        "fits",
    ),
    HostileSchema("a chain of references", chain(250), {"a": 1}, "over budget"),
    HostileSchema("itself without end", {"type": "object", "allOf": [{"$ref": "#"}]}, {}, "unusable"),
    HostileSchema(
        "itself by a condition", {"type": "object", "anyOf": [{"required": ["b"]}, {"$ref": "#"}]}, {}, "over budget"
    ),
    HostileSchema("a tree", TREE, deep_value(90), "fits"),
    HostileSchema("a tree too deep", TREE, deep_value(400), "over budget"),
    HostileSchema("three hundred deep", nested(300), {}, "unusable"),
    HostileSchema("alternatives three hundred deep", nested(300, "anyOf"), {}, "unusable"),
    HostileSchema("thousands of properties", {"properties": {str(n): {} for n in range(30_000)}}, {}, "unusable"),
    HostileSchema("a long list of values", {"properties": {"a": {"enum": list(range(19_000))}}}, {"a": "x"}, "refused"),
    HostileSchema("unique items", {"properties": {"a": {"uniqueItems": True}}}, {"a": MANY[:5_000]}, "fits"),
    HostileSchema(
        "unique items of every size", {"properties": {"a": {"uniqueItems": True}}}, {"a": MANY * 5}, "over budget"
    ),
    HostileSchema(
        "many items by many schemas",
        {"properties": {"a": {"items": {"allOf": [{"properties": {"n": {"minimum": n}}} for n in range(500)]}}}},
        {"a": MANY},
        "refused",
    ),
    HostileSchema(
        "many items that fit many schemas",
        {"properties": {"a": {"items": {"allOf": [{"properties": {"n": {"minimum": -n}}} for n in range(500)]}}}},
        {"a": MANY},
        "over budget",
    ),
    HostileSchema(
        "contains in contains",
        {"properties": {"a": {"contains": {"contains": {"contains": {"const": 1}}}}}},
        {"a": [[[0] * 50] * 50] * 50},
        "over budget",
    ),
    HostileSchema("short texts by a large pattern", SHORT_TEXTS, {"a": ["ab" * 99] * 2_000}, "over budget"),
    HostileSchema(
        "what was seen, again and again",
        {
            "$defs": {"all": {"additionalProperties": True}},
            "allOf": [{"not": {"not": {"$ref": "#/$defs/all"}}}] * 100,
            "unevaluatedProperties": False,
        },
        {f"k{n}": 1 for n in range(5_000)},
        "over budget",
    ),
    HostileSchema(
        "large patterns",
        {"properties": {f"p{n}": {"pattern": rf"(\p{{L}}|\p{{N}}){{30}}|x{n}"} for n in range(199)}},
        {},
        "fits",
        "unusable",
    ),
    HostileSchema(
        "a schema from elsewhere", {"properties": {"a": {"$ref": "http://127.0.0.1:1/x"}}}, {"a": 1}, "fits", "unusable"
    ),
    HostileSchema("a file", {"properties": {"a": {"$ref": "file:///etc/passwd"}}}, {"a": 1}, "fits", "unusable"),
    HostileSchema("a number of 256 bits", {"properties": {"a": {"maximum": 2**256}}}, {"a": 1}, "unusable"),
    HostileSchema("multiples of nearly nothing", {"properties": {"a": {"multipleOf": 1e-308}}}, {"a": 1e308}, "fits"),
    HostileSchema("a schema that is a list", [], {}, "unusable"),
    HostileSchema("properties that are a text", {"properties": "a"}, {}, "unusable"),
    HostileSchema("a dialect that is a number", {"$schema": 5}, {}, "unusable"),
    HostileSchema("a huge value in a message", {"properties": {"a": {"type": "string"}}}, {"a": MANY}, "refused"),
    HostileSchema(
        "fifty thousand wrong items", {"properties": {"a": {"items": False}}}, {"a": [0] * 50_000}, "refused"
    ),
]
