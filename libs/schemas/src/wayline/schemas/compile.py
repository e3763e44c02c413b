"""Compile a schema into nodes, part by part; a part that many refer to is compiled once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from wayline.schemas.keywords import KEYWORDS
from wayline.schemas.keywords.parts import Part
from wayline.schemas.keywords.unevaluated import KEYWORDS as UNEVALUATED
from wayline.schemas.limits import (
    PATTERN_REFUSED_SIZE,
    PATTERNS_MAX,
    PATTERNS_SIZE_MAX,
    SCHEMA_DEPTH_MAX,
    SCHEMA_PARTS_MAX,
    UnusableSchema,
)
from wayline.schemas.nodes import Check, Evaluated, Node, Run
from wayline.schemas.patterns import Pattern, UnsupportedPattern, compile_pattern
from wayline.schemas.problems import shown
from wayline.schemas.references import References

OLD_DRAFTS = ("draft-03", "draft-04", "draft-06", "draft-07")
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
INTEGER_BITS_MAX = 64


@dataclass(frozen=True)
class Compiled:
    """A schema as nodes."""

    root: Node
    tracks: bool
    """Whether some part needs to know what others have looked at."""
    unchecked: tuple[str, ...]
    """What of it cannot be checked, and is passed over."""


def compile_nodes(schema: Any, *, lenient: bool) -> Compiled:
    """Compile a schema. Raises UnusableSchema.

    `lenient`: a pattern that cannot be searched in bounded time, and a reference to what is not in the schema, are
    passed over and named; else they make the schema unusable.
    """
    keywords = _measured(schema)
    compiler = _Compiler(schema, lenient=lenient)
    root = compiler.run()
    return Compiled(root, not keywords.isdisjoint(UNEVALUATED), tuple(dict.fromkeys(compiler.unchecked)))


def _measured(schema: Any) -> set[str]:
    """Return the names in a schema, which is no larger and no deeper than it may be. Raises UnusableSchema."""
    names: set[str] = set()
    level, depth, parts = [schema], 0, 0
    while level:
        below: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                if not all(isinstance(name, str) for name in one):
                    raise UnusableSchema("a name in it is no text")
                names.update(one)
                below += one.values()
            elif isinstance(one, list):
                below += one
            elif isinstance(one, int) and one.bit_length() > INTEGER_BITS_MAX:
                raise UnusableSchema(f"it holds an integer of more than {INTEGER_BITS_MAX} bits")
            elif isinstance(one, float) and not isfinite(one):
                raise UnusableSchema("it holds a number that is none")
        parts += len(below)
        depth += 1
        if depth > SCHEMA_DEPTH_MAX:
            raise UnusableSchema(f"it is nested more than {SCHEMA_DEPTH_MAX} deep")
        if parts > SCHEMA_PARTS_MAX:
            raise UnusableSchema(f"it has more than {SCHEMA_PARTS_MAX} parts")
        level = below
    return names


@dataclass
class _Compiler:
    schema: Any
    lenient: bool
    unchecked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        dialect = self.schema.get("$schema", "") if isinstance(self.schema, dict) else ""
        if not isinstance(dialect, str):
            raise UnusableSchema(f"{shown(dialect)} is not the name of a dialect", where="$.$schema")
        self._old = any(draft in dialect for draft in OLD_DRAFTS)
        self._references = References(self.schema, old=self._old)
        self._patterns: set[str] = set()
        self._patterns_size = 0
        self._nodes: dict[tuple[int, str], Node] = {}
        self._waiting: deque[tuple[Node, dict[str, Any], str, str]] = deque()

    def run(self) -> Node:
        """Compile every part that can be come to."""
        root = self._node(self.schema, "$", "")
        while self._waiting:
            node, schema, where, base = self._waiting.popleft()
            node.checks += self._checks(node, schema, where, base)
        _require_end(self._nodes.values())
        return root

    def _node(self, schema: Any, where: str, base: str) -> Node:
        if isinstance(schema, bool):
            node = Node()
            if not schema:
                node.checks.append(_nothing)
            return node
        if not isinstance(schema, dict):
            raise UnusableSchema(f"{shown(schema)} is not a schema", where=where)
        base = self._references.base_of(schema, base)
        node = self._nodes.get((id(schema), base))
        if node is None:
            node = self._nodes[id(schema), base] = Node()
            self._waiting.append((node, schema, where, base))
        return node

    def _checks(self, node: Node, schema: dict[str, Any], where: str, base: str) -> list[Check]:
        found = [self._reference(node, schema, name, where, base) for name in REFERENCES if name in schema]
        if not (self._old and "$ref" in schema):
            for keyword, make in KEYWORDS.items():
                if keyword in schema:
                    found.append(make(self._part(keyword, schema, where, base)))
            node.always += [self._node(one, where, base) for one in schema.get("allOf", ()) if isinstance(one, dict)]
        return [one for one in found if one is not None]

    def _compile_pattern(self, source: str) -> Pattern:
        """Return a pattern. Raises UnsupportedPattern, or UnusableSchema where there are too many."""
        if source in self._patterns:
            return compile_pattern(source)
        if self._patterns_size > PATTERNS_SIZE_MAX:
            raise UnsupportedPattern("the patterns before it take all the room that those of one schema have")
        self._patterns.add(source)
        if len(self._patterns) > PATTERNS_MAX:
            raise UnusableSchema(f"it has more than {PATTERNS_MAX} patterns")
        self._patterns_size += PATTERN_REFUSED_SIZE
        pattern = compile_pattern(source)
        self._patterns_size += pattern.size - PATTERN_REFUSED_SIZE
        return pattern

    def _part(self, keyword: str, schema: dict[str, Any], where: str, base: str) -> Part:
        at = f"{where}.{keyword}"
        return Part(
            keyword,
            schema[keyword],
            schema,
            where=at,
            subschema=lambda value, place: self._node(value, place, base),
            compile_pattern=self._compile_pattern,
            uncheckable=self._tell(at),
        )

    def _tell(self, where: str) -> Callable[[str], None]:
        def tell(why: str) -> None:
            if not self.lenient:
                raise UnusableSchema(why, where=where)
            self.unchecked.append(f"{where}: {why}")

        return tell

    def _reference(self, node: Node, schema: dict[str, Any], name: str, where: str, base: str) -> Check | None:
        reference = schema[name]
        at = f"{where}.{name}"
        if not isinstance(reference, str):
            raise UnusableSchema(f"{shown(reference)} is not a reference", where=at)
        if self._references.is_dynamic(name, reference):
            self._tell(at)(f"what it refers to by {shown(reference)} depends on the way there")
            return None
        found = self._references.find(reference, base)
        if found is None:
            self._tell(at)(f"the schema refers to {shown(reference)}, which is not in it")
            return None
        target = self._node(found[0], f"{at} {shown(reference)}", found[1])
        node.always.append(target)
        return target.check_once


def _nothing(value: Any, run: Run, seen: Evaluated | None) -> bool:
    return run.fail(_refused, value)


def _refused(value: Any) -> str:
    return f"False schema does not allow {shown(value)}"


def _require_end(nodes: Any) -> None:
    """Refuse a schema whose parts are compared with the same value again and again. Raises UnusableSchema."""
    done: set[int] = set()
    for start in nodes:
        path: list[tuple[Node, int]] = [(start, 0)]
        on_path = {id(start)}
        while path:
            node, number = path.pop()
            if id(node) in done or number == len(node.always):
                done.add(id(node))
                on_path.discard(id(node))
                continue
            path.append((node, number + 1))
            after = node.always[number]
            if id(after) in on_path:
                raise UnusableSchema("it refers to itself without end")
            if id(after) not in done:
                on_path.add(id(after))
                path.append((after, 0))
