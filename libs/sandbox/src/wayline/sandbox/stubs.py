"""Tools as Python functions: what a program is type-checked against, and which tool each name stands for."""

from __future__ import annotations

import builtins
import json
import keyword
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wayline.contracts.tools import ToolDefinition
from wayline.sandbox.annotations import annotation, is_literal, required, shape

DESCRIPTION_CHARS_MAX = 600
"""Of a tool or a parameter in a docstring."""
NAME_CHARS_MAX = 100
DEFAULT_CHARS_MAX = 80

_TAKEN = frozenset(dir(builtins)) | frozenset(keyword.kwlist) | sys.stdlib_module_names
"""Names that mean something else in Python."""
_HEAD = "from typing import Any, Literal, Optional\nclass PermissionError(OSError): ...\n"
"""The interpreter has this error, and its type check does not know it."""


@dataclass(frozen=True, slots=True)
class Function:
    """A tool as a program calls it."""

    tool: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    """The tool's own name of each argument, by its name in Python."""

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments under the tool's own names."""
        return {self.parameters.get(name, name): value for name, value in given.items()}


@dataclass(frozen=True, slots=True)
class Stubs:
    """The functions that a program may call."""

    text: str
    functions: Mapping[str, Function]


def make_stubs(tools: Iterable[ToolDefinition]) -> Stubs:
    """Return a typed asynchronous function for each tool, in the order of their names."""
    ordered = sorted(tools, key=lambda tool: tool.name)
    functions: dict[str, Function] = {}
    texts = [_HEAD]
    names = python_names([tool.name for tool in ordered], taken=_TAKEN)
    for tool, name in zip(ordered, names, strict=True):
        properties = _properties(tool.input_schema)
        parameters = python_names(list(properties), taken=frozenset(keyword.kwlist))
        functions[name] = Function(tool.name, dict(zip(parameters, properties, strict=True)))
        texts.append(_function(tool, name, functions[name].parameters))
    return Stubs("\n".join(texts), functions)


def python_names(names: Sequence[str], *, taken: frozenset[str]) -> list[str]:
    """Return a legal name in Python for each; none twice, and none that is taken."""
    # A name that is legal already keeps its meaning, whatever others become.
    legal = {name for name in names if _legal(name, taken)}
    used, numbers = set(legal), Counter[str]()
    found: list[str] = []
    for name in names:
        if name in legal:
            legal.remove(name)
            found.append(name)
            continue
        base = re.sub(r"\W", "_", name, flags=re.ASCII)[:NAME_CHARS_MAX] or "_"
        if base[0].isdigit():
            base = f"_{base}"
        if base in taken:
            base = f"{base}_"
        unique = base
        while unique in used or unique in taken:
            # It goes on where it ended for the last name of this base: a server may have thousands of them.
            numbers[base] += 1
            unique = f"{base}_{numbers[base] + 1}"
        used.add(unique)
        found.append(unique)
    return found


def _legal(name: str, taken: frozenset[str]) -> bool:
    return name.isascii() and name.isidentifier() and name not in taken and len(name) <= NAME_CHARS_MAX


def _properties(schema: Mapping[str, Any]) -> dict[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def _function(tool: ToolDefinition, name: str, parameters: Mapping[str, str]) -> str:
    schema, properties = tool.input_schema, _properties(tool.input_schema)
    needed = required(schema)
    signature: list[str] = []
    about: list[str] = []
    for python, original in parameters.items():
        value = properties[original]
        signature.append(f"{python}: {annotation(value, schema)}{'' if original in needed else _default(value)}")
        about.append(f"    {python}: {_about(value, schema)}".rstrip())
    if schema.get("additionalProperties") or "properties" not in schema:
        signature.append("**others: Any")
    docstring = _quoted("\n".join([_text(tool.description) or tool.name, *about]))
    return f"async def {name}({'*, ' if parameters else ''}{', '.join(signature)}) -> Any:\n    {docstring}\n    ...\n"


def _default(value: Any) -> str:
    """Return what stands behind an argument that may be left out."""
    given = value.get("default") if isinstance(value, dict) else None
    return f" = {given!r}" if is_literal(given) and len(repr(given)) <= DEFAULT_CHARS_MAX else " = ..."


def _about(value: Any, schema: Mapping[str, Any]) -> str:
    if not isinstance(value, dict):
        return ""
    return " ".join(filter(None, (_text(value.get("description")), shape(value, schema))))


def _text(value: Any) -> str:
    return " ".join(value.split())[:DESCRIPTION_CHARS_MAX] if isinstance(value, str) else ""


def _quoted(text: str) -> str:
    """Return a text as a literal of Python, whatever it holds: a description is not ours."""
    return json.dumps(text)
