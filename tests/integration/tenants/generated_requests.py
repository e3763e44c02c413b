"""Requests made from the API's description and a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

DEPTH_MAX = 4


@dataclass(frozen=True)
class Operation:
    """One method of one path."""

    method: str
    path: str
    described: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def params(self) -> list[str]:
        """Return the names in its path."""
        return [word[1:-1] for word in self.path.split("/") if word.startswith("{")]

    def queries(self) -> dict[str, dict[str, Any]]:
        return {one["name"]: one for one in self.described.get("parameters", ()) if one["in"] == "query"}

    def takes_header(self, name: str) -> bool:
        described = self.described.get("parameters", ())
        return any(one["in"] == "header" and one["name"].lower() == name for one in described)

    def body(self) -> dict[str, Any] | None:
        """Return the schema of its JSON."""
        return self.described.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")


@dataclass
class Generator:
    """Makes values that a schema allows; for names that are known those that are known."""

    schemas: dict[str, Any]
    known: dict[str, Any]
    random: random.Random
    used: set[str] = field(default_factory=set)

    def body(self, schema: dict[str, Any]) -> Any:
        """Return what the schema gives as its example, or what it requires and some of the rest."""
        schema = self._resolved(schema)
        if examples := schema.get("examples"):
            return self._with_known(self.random.choice(examples))
        return self.value(schema)

    def value(self, schema: dict[str, Any], *, name: str = "", depth: int = 0) -> Any:
        schema = self._resolved(schema)
        if name in self.known:
            return self.known[name]
        if "const" in schema or "enum" in schema:
            return schema["const"] if "const" in schema else self.random.choice(schema["enum"])
        if options := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
            wanted = [one for one in options if one.get("type") != "null"]
            return self.value(self.random.choice(wanted), name=name, depth=depth)
        if schema.get("default") is not None:
            return schema["default"]
        match schema.get("type"):
            case "object":
                return self._object(schema, depth)
            case "array":
                some = schema.get("minItems", 1)
                return [self.value(schema.get("items", {}), depth=depth + 1) for _ in range(some)]
            case "integer" | "number":
                return schema.get("minimum", 1)
            case "boolean":
                return self.random.random() < 0.5
            case _:
                return "word"

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        required = set(schema.get("required", ()))
        chosen = {
            name: one
            for name, one in schema.get("properties", {}).items()
            if name in required or (depth < DEPTH_MAX and self.random.random() < 0.3)
        }
        return {name: self.value(one, name=name, depth=depth + 1) for name, one in chosen.items()}

    def _resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in schema:
            schema = self.schemas[schema["$ref"].rpartition("/")[2]]
        return schema

    def _with_known(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self.known.get(name, self._with_known(one)) for name, one in value.items()}
        return [self._with_known(one) for one in value] if isinstance(value, list) else value
