"""Public sets of tools with tasks, and for each task the tools that people judged right."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from typing import Any

from wayline.contracts.tools import ToolDefinition

from ..shared import needed, rows

TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object"}
"""The sets' own words for types, in JSON Schema. Others, such as `Tuple[int]`, are left out."""

BEST_BM25: dict[str, dict[int, float]] = {
    "tools-metatool-dev": {1: 0.444, 3: 0.587, 5: 0.643, 10: 0.717},
    "tools-seal-dev": {1: 0.435, 3: 0.689, 5: 0.796, 10: 0.872},
    "tools-toolret-apigen": {1: 0.609, 3: 0.769, 5: 0.824, 10: 0.877},
}
"""Recall of bm25s 0.3.16 (k1 1.5, b .75): of each figure the best with and without stems, names whole and in parts."""
BEST_BM25_COMPLETE = {"tools-metatool-dev": 0.672, "tools-seal-dev": 0.657, "tools-toolret-apigen": 0.828}
"""The share of tasks all of whose right tools are among its first ten, from the same runs."""
CUTS = (1, 3, 5, 10)
CALLS = "calls-bfcl-dev"
"""A set of functions with their whole schemas, and no tasks to search with."""


@dataclass(frozen=True)
class ToolSet:
    """Tools, tasks, and the names of the tools that each task needs."""

    tools: tuple[ToolDefinition, ...]
    tasks: dict[str, str]
    right: dict[str, frozenset[str]]


def load(name: str) -> ToolSet:
    """Read a set; skips the test where it is not there."""
    tools = tuple(_tool(row) for row in rows(name, "corpus.jsonl.gz"))
    right: dict[str, set[str]] = {}
    with gzip.open(needed(name, "qrels.tsv.gz"), "rt", encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            task, tool, grade = line.rstrip("\n").split("\t")
            if int(grade) > 0:
                right.setdefault(task, set()).add(tool)
    tasks = {row["_id"]: row["text"] for row in rows(name, "queries.jsonl.gz") if row["_id"] in right}
    return ToolSet(tools, tasks, {task: frozenset(names) for task, names in right.items()})


def _tool(row: dict[str, Any]) -> ToolDefinition:
    """Return a row as a tool. Its id is the server's name, because several tools of a set share a name."""
    about = json.loads(row["text"]) if row["text"].startswith("{") else {**row, "description": row["text"]}
    schema: dict[str, Any] = {"type": "object", "properties": _properties(about.get("parameters") or {})}
    if about.get("required"):
        schema["required"] = about["required"]
    return ToolDefinition(name=f"{row['_id']}__{row['title']}", description=about["description"], input_schema=schema)


def _properties(parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: _property(about) for name, about in parameters.items()}


def _property(about: dict[str, Any]) -> dict[str, Any]:
    kind = TYPES.get(str(about.get("type", "")).split(",")[0].strip())
    annotations = {key: about[key] for key in ("description", "default") if key in about}
    return {**({"type": kind} if kind else {}), **annotations}


def id_of(tool: ToolDefinition) -> str:
    """Return the set's id of a tool."""
    return tool.name.split("__")[0]
