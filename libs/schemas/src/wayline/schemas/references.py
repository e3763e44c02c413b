"""Find what a schema refers to, in itself alone: nothing is ever fetched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

ONE = frozenset(
    "additionalItems additionalProperties contains contentSchema else if items not propertyNames then unevaluatedItems"
    " unevaluatedProperties".split()
)
"""Keywords that hold a schema."""
LISTED = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
"""Keywords that hold a list of schemas."""
NAMED = frozenset({"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"})
"""Keywords that hold schemas by names of the author's choice, which may be those of keywords."""


def subschemas(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the objects that stand directly in a schema and are schemas."""
    for keyword, value in schema.items():
        if keyword in ONE and isinstance(value, dict):
            yield value
        elif keyword in LISTED and isinstance(value, list):
            yield from (one for one in value if isinstance(one, dict))
        elif keyword in NAMED and isinstance(value, dict):
            yield from (one for one in value.values() if isinstance(one, dict))


class References:
    """The parts of one schema that have an address of their own."""

    def __init__(self, root: Any, *, old: bool) -> None:
        """Take a schema; `old`: of a draft before 2019-09, where nothing counts beside a `$ref`."""
        self._old = old
        self._resources: dict[str, Any] = {"": root}
        self._anchors: dict[tuple[str, str], Any] = {}
        self._named = Counter[str]()
        """How many parts have an anchor of a name, at any address."""
        self._bases: dict[int, str] = {}
        self._recursive = False
        waiting = [(root, "")]
        while waiting:
            schema, base = waiting.pop()
            if not isinstance(schema, dict):
                continue
            base = self._note(schema, base)
            waiting += [(one, base) for one in subschemas(schema)]

    @property
    def has_addresses(self) -> bool:
        """Return whether a part has an address of its own."""
        return len(self._resources) > 1

    def base_of(self, schema: Any, within: str) -> str:
        """Return the address by which a part's references are read."""
        return self._bases.get(id(schema), within)

    def find(self, reference: str, base: str) -> tuple[Any, str] | None:
        """Return what a reference means, and the address of that; None: it is not in the schema."""
        try:
            address, fragment = urldefrag(_joined(base, reference))
        except ValueError:
            return None
        root = self._resources.get(address)
        if root is None:
            return None
        fragment = unquote(fragment)
        if not fragment:
            return root, self.base_of(root, address)
        if fragment.startswith("/"):
            return self._pointed(root, fragment, self.base_of(root, address))
        found = self._anchors.get((address, fragment))
        return None if found is None else (found, self.base_of(found, address))

    def is_dynamic(self, keyword: str, reference: str) -> bool:
        """Return whether a reference may mean several parts, by the way on which its place was reached."""
        if keyword == "$recursiveRef":
            return self._recursive and len(self._resources) > 1
        if keyword != "$dynamicRef":
            return False
        return self._named[reference.partition("#")[2]] > 1

    def _note(self, schema: dict[str, Any], base: str) -> str:
        own = schema.get("id" if self._old and "$id" not in schema else "$id")
        if isinstance(own, str) and not (self._old and "$ref" in schema):
            try:
                address, fragment = urldefrag(_joined(base, own))
            except ValueError:
                address, fragment = base, ""
            if fragment and self._old:
                self._anchor(address, fragment, schema)
            self._resources.setdefault(address, schema)
            base = address
        self._recursive = self._recursive or schema.get("$recursiveAnchor") is True
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(name := schema.get(keyword), str):
                self._anchor(base, name, schema)
        self._bases[id(schema)] = base
        return base

    def _anchor(self, address: str, name: str, schema: dict[str, Any]) -> None:
        self._anchors.setdefault((address, name), schema)
        self._named[name] += 1

    def _pointed(self, root: Any, pointer: str, base: str) -> tuple[Any, str] | None:
        part = root
        for step in pointer.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(part, dict) and name in part:
                part = part[name]
            elif isinstance(part, list) and name.isdecimal() and int(name[:9]) < len(part):
                part = part[int(name[:9])]
            else:
                return None
            base = self.base_of(part, base)
        return part, base


def _joined(base: str, reference: str) -> str:
    """Return the address of a reference. Raises ValueError."""
    # Of a URN the library would forget the address.
    return f"{base}{reference}" if reference.startswith("#") else urljoin(base, reference)
