"""Turn any schema of a tool's arguments into one that every provider of models takes, with a way back for its names.

Providers refuse a whole request for one tool whose parameter has a space or a letter of another script in its name,
whose schema is of an older draft, or whose description is a number. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from wayline.schemas import UnsupportedPattern, compile_pattern
from wayline.schemas.compile import OLD_DRAFTS
from wayline.schemas.limits import PATTERN_REFUSED_SIZE, PATTERNS_SIZE_MAX
from wayline.schemas.references import LISTED, NAMED, ONE, References
from wayline.tool_registry.definitions.schema_slips import without_slips

PARAMETER_MAX = 64
"""Characters of a parameter's name that every provider takes."""
HASH_CHARS = 8

_PARAMETER = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_NOT_IN_PARAMETERS = re.compile(r"[^A-Za-z0-9_.-]")
_INDEX = re.compile(r"/items/(?=[0-9])")
_KINDS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("$comment", "title", "description", "format", "contentMediaType"), str),
    "contentEncoding": str,
    "examples": list,
    **dict.fromkeys(("deprecated", "readOnly", "writeOnly"), bool),
}
"""Keywords that decide nothing, and what their values have to be: else they are left away."""
_ANCHOR = re.compile(r"[A-Za-z_][-A-Za-z0-9._]*")
_ADDRESSES = {"$id": re.compile(r"[^#]*#?"), "$anchor": _ANCHOR, "$dynamicAnchor": _ANCHOR}
_BESIDE_OLD_REFERENCES = frozenset({"$ref", "$defs", "definitions", "title", "description"})


@dataclass(frozen=True)
class FittedSchema:
    """A schema as providers take it."""

    schema: dict[str, Any]
    names: Mapping[str, str]
    """The tool's own names of parameters, by those that stand in the schema for them."""


def fit_schema(schema: Mapping[str, Any]) -> FittedSchema:
    """Return a schema that means the same in the newest draft, with names of parameters that every provider takes."""
    try:
        fitting = _Fitting(dict(schema))
        return FittedSchema(fitting.fit(fitting.root), dict(fitting.names))
    except RecursionError:
        # Deeper than anything that can be sent: the check of schemas refuses it and says so.
        return FittedSchema(dict(schema), {})


def own_arguments(arguments: Any, names: Mapping[str, str]) -> Any:
    """Return arguments by the names that the tool's server has for its parameters."""
    if not names:
        return arguments
    if isinstance(arguments, dict):
        return {names.get(name, name): own_arguments(one, names) for name, one in arguments.items()}
    if isinstance(arguments, list):
        return [own_arguments(one, names) for one in arguments]
    return arguments


@dataclass
class _Fitting:
    root: dict[str, Any]
    names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        dialect = self.root.get("$schema")
        self._old = isinstance(dialect, str) and any(draft in dialect for draft in OLD_DRAFTS)
        self._references = References(self.root, old=self._old)
        self._patterns_size = 0

    def fit(self, schema: dict[str, Any]) -> dict[str, Any]:
        if self._old and "$ref" in schema:
            schema = {keyword: value for keyword, value in schema.items() if keyword in _BESIDE_OLD_REFERENCES}
        fitted: dict[str, Any] = {}
        for keyword, value in _modern(without_slips(schema)).items():
            if self._is_kept(keyword, value):
                fitted[keyword] = self._fit_keyword(keyword, value)
        properties = fitted.get("properties")
        if "propertyNames" in fitted and isinstance(properties, dict) and properties.keys() & self.names.keys():
            del fitted["propertyNames"]
        return fitted

    def _is_kept(self, keyword: str, value: Any) -> bool:
        if keyword in {"$schema", "$vocabulary"}:
            return False
        if keyword in _ADDRESSES:
            return isinstance(value, str) and _ADDRESSES[keyword].fullmatch(value) is not None
        if keyword == "pattern":
            return not isinstance(value, str) or self._is_pattern(value)
        if keyword == "$ref" and isinstance(value, str):
            return self._references.find(value, "") is not None or self._references.has_addresses
        return isinstance(value, _KINDS[keyword]) if keyword in _KINDS else True

    def _fit_keyword(self, keyword: str, value: Any) -> Any:
        if keyword == "properties" and isinstance(value, dict):
            return {self._name(name): self._named(name, one) for name, one in value.items()}
        if keyword == "required" and isinstance(value, list):
            return _each_once([self._name(one) if isinstance(one, str) else one for one in value])
        if keyword == "type" and isinstance(value, list):
            return _each_once(value)
        if keyword == "dependentRequired" and isinstance(value, dict):
            return {self._name(name): self._fit_keyword("required", one) for name, one in value.items()}
        if keyword == "dependentSchemas" and isinstance(value, dict):
            return {self._name(name): self._fit_one(one) for name, one in value.items()}
        if keyword == "$ref" and isinstance(value, str):
            return self._pointer(value)
        if keyword in NAMED and isinstance(value, dict):
            return {name: self._fit_one(one) for name, one in value.items()}
        if keyword in ONE:
            return self._fit_one(value)
        if keyword in LISTED and isinstance(value, list):
            return [self._fit_one(one) for one in value]
        return value

    def _is_pattern(self, source: str) -> bool:
        """Return whether a pattern is one, in whichever engine."""
        if self._patterns_size > PATTERNS_SIZE_MAX:
            # What is checked by it is passed over, too.
            return True
        try:
            self._patterns_size += compile_pattern(source).size
            return True
        except UnsupportedPattern:
            self._patterns_size += PATTERN_REFUSED_SIZE
        try:
            re.compile(source)
            return True
        except (re.error, RecursionError, OverflowError):
            return False

    def _fit_one(self, schema: Any) -> Any:
        return self.fit(schema) if isinstance(schema, dict) else schema

    def _named(self, name: str, schema: Any) -> Any:
        """Fit a parameter's schema; one that gets another name keeps its own as a title."""
        fitted = self._fit_one({} if schema is True else schema)
        if self._name(name) != name and isinstance(fitted, dict):
            fitted.setdefault("title", name.encode(errors="replace").decode())
        return fitted

    def _name(self, name: str) -> str:
        if _PARAMETER.fullmatch(name):
            return name
        fitted = with_hash(_NOT_IN_PARAMETERS.sub("_", name), name, at_most=PARAMETER_MAX)
        self.names[fitted] = name
        return fitted

    def _pointer(self, reference: str) -> str:
        """Return a reference whose way goes by the names as they are now."""
        if "/properties/" not in reference and "/items/" not in reference:
            return reference
        steps = _INDEX.sub("/prefixItems/", reference).split("/")
        for at in range(1, len(steps)):
            if steps[at - 1] == "properties":
                name = steps[at].replace("~1", "/").replace("~0", "~")
                steps[at] = steps[at] if _PARAMETER.fullmatch(name) else self._name(name)
        return "/".join(steps)


def with_hash(plain: str, name: str, *, at_most: int) -> str:
    """Return a name of bounded length that no other name leads to."""
    hashed = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_CHARS]
    return f"{plain[: at_most - HASH_CHARS - 1]}_{hashed}"


def _modern(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema in the words of the newest draft."""
    found = dict(schema)
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(found.get(exclusive), bool) and found.pop(exclusive) and bound in found:
            found[exclusive] = found.pop(bound)
    rest = found.pop("additionalItems", None)
    if isinstance(found.get("items"), list):
        found["prefixItems"] = found.pop("items")
        if rest is not None:
            found["items"] = rest
        if not found["prefixItems"]:
            del found["prefixItems"]
    if isinstance(depending := found.get("dependencies"), dict):
        del found["dependencies"]
        needed = {name: one for name, one in depending.items() if isinstance(one, list)}
        schemas = {name: one for name, one in depending.items() if name not in needed}
        for keyword, more in (("dependentRequired", needed), ("dependentSchemas", schemas)):
            if more and isinstance(found.get(keyword, {}), dict):
                found[keyword] = {**more, **found.get(keyword, {})}
    return found


def _each_once(values: list[Any]) -> list[Any]:
    """Return the values of a list of names, each once; a list that is none stays for the check to refuse."""
    return list(dict.fromkeys(values)) if all(isinstance(one, str) for one in values) else values
