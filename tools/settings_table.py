"""Write the tables of docs/operating.md and the settings of docker-compose.yml; `--check` fails when they are stale."""

from __future__ import annotations

import json
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from pydantic_settings import BaseSettings

PAGE = Path(__file__).parents[1] / "docs" / "operating.md"
COMPOSE = Path(__file__).parents[1] / "docker-compose.yml"
BEGIN, END = "<!-- settings: written by `make proto` -->", "<!-- /settings -->"
CLASSES = (
    ("Every service", "wayline.chassis.settings", "BusSettings"),
    ("The `wayline` command", "wayline.standalone.settings", "Settings"),
    ("gateway", "wayline.gateway.settings", "Settings"),
    ("Models: router and executor", "wayline.llm.endpoints", "EndpointSettings"),
    ("router", "wayline.router.settings", "Settings"),
    ("executor", "wayline.executor.settings", "Settings"),
    ("retrieval", "wayline.retrieval.settings", "Settings"),
    ("tool-registry", "wayline.tool_registry.settings", "Settings"),
    ("tracing", "wayline.tracing.settings", "Settings"),
    ("console", "wayline.console.settings", "Settings"),
    ("notifier", "wayline.notifier.settings", "Settings"),
)


def variables() -> dict[str, FieldInfo]:
    """Return every setting by its environment variable."""
    return {name: field for _, module, kind in CLASSES for name, field in _fields(module, kind).items()}


def _fields(module: str, kind: str) -> dict[str, FieldInfo]:
    settings: type[BaseSettings] = getattr(import_module(module), kind)
    prefix = settings.model_config.get("env_prefix", "")
    return {
        str(field.validation_alias or f"{prefix}{name.upper()}"): field for name, field in settings.model_fields.items()
    }


def tables() -> str:
    """Return one table for each class, without the settings of the tables above it."""
    parts: list[str] = []
    listed: set[str] = set()
    for title, module, kind in CLASSES:
        fields = {name: field for name, field in _fields(module, kind).items() if name not in listed}
        listed |= fields.keys()
        rows = [f"| `{name}` | {_default(field)} | {field.description or ''} |" for name, field in fields.items()]
        parts.append("\n".join([f"### {title}", "", "| variable | default | what it is |", "|---|---|---|", *rows]))
    return "\n\n".join(parts)


def _default(field: FieldInfo) -> str:
    value: Any = None if field.default is PydanticUndefined else field.default
    if value is None or value in ("", ()):
        return "none"
    return f"`{json.dumps(value)}`" if isinstance(value, tuple) else f"`{value}`"


def page(text: str) -> str:
    """Return the page with its tables as they must be."""
    between = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    return between.sub(lambda _: f"{BEGIN}\n\n{tables()}\n\n{END}", text)


def compose(text: str) -> str:
    """Return the containers with every setting of their services: without a value, passed on where it is set."""
    for title, module, kind in CLASSES:
        begin = f"      # settings of {title}: written by `make proto`\n"
        before, found, rest = text.partition(begin)
        if not found:
            continue
        _, end, after = rest.partition("      # /settings\n")
        by_hand = set(re.findall(r"^      (WAYLINE_\w+):", before.rpartition("\n  " + title)[2], re.MULTILINE))
        prefix = f"WAYLINE_{title.upper().replace('-', '_')}_"
        names = [name for name in _fields(module, kind) if name.startswith(prefix) and name not in by_hand]
        text = before + begin + "".join(f"      {name}:\n" for name in names) + end + after
    return text


def main() -> None:
    for path, written in ((PAGE, page), (COMPOSE, compose)):
        text = path.read_text()
        if "--check" not in sys.argv[1:]:
            path.write_text(written(text))
        elif written(text) != text:
            sys.exit(f"the settings in {path.name} are stale; run `make proto`")


if __name__ == "__main__":
    main()
