"""Six MCP servers that others wrote: how each is started, and a few calls whose answers are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..npm import installed, node

Call = tuple[str, dict[str, Any], str]
"""A tool, its arguments, and words that its answer has."""


@dataclass(frozen=True)
class Reference:
    """A server, with `{dir}` where a test's own directory goes."""

    argv: tuple[str, ...]
    calls: tuple[Call, ...]
    env: dict[str, str] = field(default_factory=dict)
    answer: dict[str, Any] | None = None
    """Of a person, to what the server asks during its only call."""

    def config(self, directory: Path) -> dict[str, Any]:
        """Return what is saved of it."""
        command, *args = (part.format(dir=directory) for part in self.argv)
        env = {name: value.format(dir=directory) for name, value in self.env.items()}
        return {"command": command, "args": args, "env": env}

    def script(self, server: str, directory: Path) -> list[tuple[str, dict[str, Any]]]:
        """Return the calls as a model makes them."""
        return [(f"{server}__{tool}", _in(arguments, directory)) for tool, arguments, _ in self.calls]


def _in(arguments: Any, directory: Path) -> Any:
    if isinstance(arguments, dict):
        return {name: _in(value, directory) for name, value in arguments.items()}
    return arguments.format(dir=directory) if isinstance(arguments, str) else arguments


def of_npm(name: str, *args: str) -> tuple[str, ...]:
    """Return how a server from npm is started."""
    return (node(), str(npm_file(name)), *args)


def npm_file(name: str) -> Path:
    return installed("reference_servers/node_modules/@modelcontextprotocol", name, "dist/index.js")


def of_python(name: str, *args: str) -> tuple[str, ...]:
    """Return how a server from PyPI is started."""
    return (str(installed("python/bin/python")), "-m", name, *args)


ENTITY = {"name": "Wayline", "entityType": "program", "observations": ["runs agents as jobs"]}
THOUGHT = {"thought": "Look first.", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
NOON = {"source_timezone": "Europe/Zurich", "time": "12:00", "target_timezone": "Asia/Tokyo"}
NAMES: Sequence[str] = ("everything", "filesystem", "memory", "thinking", "time", "git")


def reference(name: str) -> Reference:
    """Return a server by the name under which it is saved."""
    match name:
        case "everything":
            calls: tuple[Call, ...] = (("get-sum", {"a": 2, "b": 3}, "5"), ("echo", {"message": "hello"}, "hello"))
            return Reference(of_npm("server-everything"), calls)
        case "asking":
            calls = (("trigger-elicitation-request", {}, "Name: Ada Lovelace"),)
            return Reference(of_npm("server-everything"), calls, answer={"name": "Ada Lovelace", "check": True})
        case "filesystem":
            calls = (
                ("write_file", {"path": "{dir}/note.txt", "content": "kept"}, "note.txt"),
                ("read_text_file", {"path": "{dir}/note.txt"}, "kept"),
                ("read_text_file", {"path": "/etc/hostname"}, "outside allowed directories"),
            )
            return Reference(of_npm("server-filesystem", "{dir}"), calls)
        case "memory":
            calls = (("create_entities", {"entities": [ENTITY]}, "Wayline"), ("read_graph", {}, "runs agents as jobs"))
            return Reference(of_npm("server-memory"), calls, {"MEMORY_FILE_PATH": "{dir}/memory.jsonl"})
        case "thinking":
            return Reference(of_npm("server-sequential-thinking"), (("sequentialthinking", THOUGHT, "thoughtNumber"),))
        case "time":
            return Reference(of_python("mcp_server_time"), (("convert_time", NOON, "Asia/Tokyo"),))
        case "git":
            calls = (("git_status", {"repo_path": "{dir}"}, "No commits yet"),)
            return Reference(of_python("mcp_server_git", "--repository", "{dir}"), calls)
        case _:
            raise KeyError(name)
