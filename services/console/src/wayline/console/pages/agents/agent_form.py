"""The configuration of an agent as a form, made of the API's own schema, and as a body again. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from wayline.console.pages.agents import answer_schema, pinned_rows
from wayline.console.pages.agents.answer_schema import AnswerForm
from wayline.console.pages.agents.pinned_rows import PinnedRow
from wayline.console.pages.agents.tool_lists import ToolLists, ToolsNow, chosen
from wayline.console.render.form_rows import Get
from wayline.console.render.formats import MARKED
from wayline.console.render.schema_form import ApiSchemas, SchemaField, WrongField, pick, put, value_of

SCHEMA: Final = "AgentConfig"
SETTINGS_SCHEMA: Final = "SettingsInForce"
SETTINGS_OF_TENANT: Final = "the tenant's settings"
TOOL_FIELDS: Final = ("tools", "tools_loading", "tools_off")
"""Filled in by lists and by single tools."""
SLOTS: Final = ("routing.fast", "routing.primary", "routing.escalation", "routing.reasoning")
MODEL_FIELDS: Final = ("model", *SLOTS)
SECTIONS: Final = (
    ("What it is", ("description", "instructions", "style", "language", "pinned")),
    (
        "Models",
        (
            *("model", "routing.mode", *SLOTS, "routing.confidence_min", "routing.budget_aware"),
            *("routing.fallbacks", "routing.on_refusal", "task_type", "classify", "temperature", "effort"),
        ),
    ),
    ("Tools", ("web_search", "memory", "images", "code", "agents", "tools_in_order")),
    ("Approvals and access", ("ask", "ask_tools", "ask_when_tainted", "ask_egress", "over_mcp")),
    ("Answer", ("output_schema", "assemble", "on_invalid", "show_reasoning")),
    (
        "Context",
        ("context", "summarize_results", "rerank", "rewrite_queries", "extract_memories", "summarize_memories"),
    ),
    ("Limits of a job", ("max_steps", "adapt_steps", "max_seconds", "max_output_tokens", "max_cost_usd")),
)
OTHER: Final = "More"
"""Fields that the API has and these sections do not know."""
NOTHING: Final = "null"
"""What is chosen where a field that could be left to the settings is to say nothing."""
LABELS: Final = {"routing.confidence_min": "Least confidence", "max_cost_usd": "Most that a job may cost, in dollars"}
HELP: Final = {"style": "When it uses tools; said at the head of the system prompt."}
"""In place of the API's own words, where these are about what JSON leaves out."""
MORE_HELP: Final = {
    "routing.reasoning": "Optional: used for inputs that need deep analysis, proofs in several steps or hard "
    "debugging.",
}


@dataclass(frozen=True, slots=True)
class Inherited:
    """What holds where a field is left empty."""

    value: str
    own: bool
    source: str = SETTINGS_OF_TENANT


@dataclass(frozen=True, slots=True)
class FormField:
    """One field with what it holds."""

    field: SchemaField
    value: str
    inherited: Inherited | None = None
    error: str = ""
    pinned: list[PinnedRow] | None = None
    """Of the field `pinned`: its rows."""
    answer: AnswerForm | None = None
    """Of the field `output_schema`: its table."""

    @property
    def name(self) -> str:
        return self.field.name

    @property
    def label(self) -> str:
        return LABELS.get(self.name, self.field.label)

    @property
    def help(self) -> str:
        return " ".join(part for part in (MORE_HELP.get(self.name, ""), HELP.get(self.name, self.field.said)) if part)

    @property
    def marked(self) -> str:
        """Return the characters of its value that hide or turn around what stands beside them, by name."""
        return ", ".join(sorted({f"U+{ord(one):04X}" for one in self.value if ord(one) in MARKED}))

    @property
    def is_model(self) -> bool:
        return self.name in MODEL_FIELDS


@dataclass(frozen=True, slots=True)
class Section:
    """Fields that belong together."""

    title: str
    fields: list[FormField]


@dataclass(frozen=True, slots=True)
class FormSchema:
    """The fields of an agent, and what it may leave to the settings of its tenant."""

    fields: list[SchemaField]
    settings: Mapping[str, Any]

    @classmethod
    def of(cls, schemas: ApiSchemas, settings: Mapping[str, Any]) -> FormSchema:
        """Return the form's fields; what an agent's schema does not say of one, the settings' schema does."""
        said = {field.name: field.help for field in schemas.fields(SETTINGS_SCHEMA)}
        fields = [
            field if field.help else replace(field, help=said.get(field.name, ""))
            for field in schemas.fields(SCHEMA, without=TOOL_FIELDS)
        ]
        return cls(fields, settings)

    def inherits(self, name: str) -> bool:
        """Return whether a field may be left to the settings."""
        return name in self.settings and name not in ("default_model", "defaults", "updated_at")

    def sections(
        self, config: Mapping[str, Any], problems: Mapping[str, str], typed: Get | None = None
    ) -> list[Section]:
        """Return the form with what a configuration holds, and with what was `typed` where it cannot be read."""
        left = {field.name: self._shown(field, config, problems, typed) for field in self.fields}
        found = [Section(title, [left.pop(name) for name in names if name in left]) for title, names in SECTIONS]
        return [*found, *([Section(OTHER, list(left.values()))] if left else [])]

    def _shown(
        self, field: SchemaField, config: Mapping[str, Any], problems: Mapping[str, str], typed: Get | None
    ) -> FormField:
        own = pick(config, field.name)
        error = problems.get(field.name, "")
        unread = typed if typed is not None and field.name in problems and field.name not in config else None
        if field.name == pinned_rows.NAME:
            return FormField(field, field.text(own), error=error, pinned=_pinned(own, unread, problems))
        if field.name == answer_schema.NAME:
            return FormField(field, field.text(own), error=error, answer=_answer(own, unread, typed))
        as_typed = None if unread is None else unread(field.name) or ""
        if not self.inherits(field.name):
            value = field.text(field.default if own is None else own)
            return FormField(field, value if as_typed is None else as_typed, error=error)
        left = field.text(self.settings[field.name])
        inherited = Inherited(dict(field.choices).get(left, left), own=field.name in config)
        value = NOTHING if own is None and field.name in config and field.nullable else field.text(own)
        return FormField(field, value if as_typed is None else as_typed, inherited, error)

    def read(self, get: Get, back: Iterable[str]) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the configuration that a form says, and what is wrong with single fields.

        `get`: a field's text, None where the form has none; `back`: the fields that go back to the settings.
        """
        config: dict[str, Any] = {}
        problems: dict[str, str] = {}
        gone = frozenset(back)
        for field in self.fields:
            text = get(field.name)
            if field.name in gone or (self.inherits(field.name) and not text):
                continue
            try:
                self._take(config, field, text, get)
            except WrongField as error:
                problems[field.name] = error.message
        return config, problems

    def _take(self, config: dict[str, Any], field: SchemaField, text: str | None, get: Get) -> None:
        if field.name == answer_schema.NAME and get(answer_schema.VIEW):
            config[field.name] = answer_schema.read_schema(get)
        elif field.name == pinned_rows.NAME and (rows := pinned_rows.read_rows(get)) is not None:
            config[field.name] = pinned_rows.parts_of(rows)
        elif field.kind == "switch":
            # What is off sends nothing.
            put(config, field.name, text is not None and value_of(field, text))
        elif text == NOTHING:
            put(config, field.name, None)
        elif text or field.kind in ("line", "text", "lines"):
            put(config, field.name, None if not text and field.nullable else value_of(field, text or ""))


def _pinned(parts: Any, unread: Get | None, problems: Mapping[str, str]) -> list[PinnedRow] | None:
    """Return the rows of what is pinned, each with what the API says of it."""
    if unread is not None:
        return pinned_rows.with_room(pinned_rows.read_rows(unread) or [])
    rows = pinned_rows.rows_of(parts)
    said = {name.split(".")[1]: message for name, message in problems.items() if name.startswith("pinned.")}
    return rows and [replace(row, error=said.get(str(number), "")) for number, row in enumerate(rows)]


def _answer(schema: Any, unread: Get | None, typed: Get | None) -> AnswerForm:
    if unread is not None:
        return answer_schema.typed_form(unread)
    return answer_schema.form_of(schema, view="table" if typed is None else answer_schema.next_view(typed))


def saved_config(agent: Mapping[str, Any]) -> dict[str, Any]:
    """Return an agent's configuration as it is saved: without what it leaves to the settings."""
    return {name: value for name, value in agent["config"].items() if name not in agent["inherits"]}


def read_tools(
    get: Get,
    names: Sequence[str],
    *,
    now: Callable[[ToolLists], ToolsNow] | None = None,
    inherited: Sequence[str],
) -> ToolLists:
    """Return the lists of tools that a form says, with its choices for single tools."""
    lists = ToolLists(
        tools=_lines(get("tools")) or None,
        always=_lines(get("tools_always")) if get("tools_loading") == "lists" else None,
        deferred=_lines(get("tools_deferred")) if get("tools_loading") == "lists" else (),
        off=_lines(get("tools_off")),
    )
    choices: Any = {name: state for name in names if (state := get(f"tool:{name}")) in ("always", "deferred", "off")}
    return lists if now is None or not choices else chosen(lists, choices, now=now(lists), inherited=inherited)


def _lines(text: str | None) -> tuple[str, ...]:
    return tuple(line.strip() for line in (text or "").splitlines() if line.strip())
