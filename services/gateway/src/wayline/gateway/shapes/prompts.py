"""Bodies about prompts: messages with places for arguments, which users of MCP clients choose by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Final, Literal, Self
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from wayline.contracts.errors import Reject
from wayline.gateway.paging import Paged
from wayline.gateway.shapes.body import ONE_LINE, TEXT_WITHOUT_NUL, Body

ARGUMENTS_MAX: Final = 32
MESSAGES_MAX: Final = 32
TEXT_MAX_CHARS: Final = 64 * 1024
"""Of one message."""
VALUES_MAX: Final = 100
_PLACE = re.compile(r"\{\{\s*([A-Za-z0-9_-]{1,64})\s*\}\}")

ArgumentName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Line = Annotated[str, StringConstraints(max_length=1_000, pattern=ONE_LINE)]
Template = Annotated[str, StringConstraints(min_length=1, max_length=TEXT_MAX_CHARS, pattern=TEXT_WITHOUT_NUL)]


class PromptParameter(Body):
    """A value that a prompt is completed with."""

    name: ArgumentName
    description: Line = ""
    required: bool = Field(default=True, description="Left out, an optional one is empty.")
    values: tuple[Line, ...] = Field(
        default=(),
        max_length=VALUES_MAX,
        description="What a client proposes while its user types; others are taken too.",
    )


class PromptMessage(Body):
    """One message: a text, or a resource that is embedded."""

    role: Literal["user", "assistant"] = "user"
    text: Template | None = Field(default=None, description="With `{{name}}` where the value of an argument goes.")
    resource: Template | None = Field(
        default=None,
        description="Or the URI of a document or job, such as `document://{{id}}`, whose text is put in its place.",
    )

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if (self.text is None) == (self.resource is None):
            raise ValueError("a message has either `text` or `resource`")
        return self

    @property
    def template(self) -> str:
        return self.text or self.resource or ""


class PromptBody(Body):
    """A prompt to save."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "description": "Check a text against our rules.",
                    "arguments": [{"name": "text"}, {"name": "rules", "values": ["style", "law"]}],
                    "messages": [{"text": "Check this against our rules of {{rules}}:\n\n{{text}}"}],
                }
            ]
        }
    )

    title: Line = ""
    description: Line = ""
    arguments: tuple[PromptParameter, ...] = Field(default=(), max_length=ARGUMENTS_MAX)
    messages: tuple[PromptMessage, ...] = Field(min_length=1, max_length=MESSAGES_MAX)

    @model_validator(mode="after")
    def _names_its_arguments(self) -> Self:
        names = [argument.name for argument in self.arguments]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"arguments must differ; twice: {', '.join(sorted(twice))}")
        used = {name for message in self.messages for name in _PLACE.findall(message.template)}
        if unknown := used - set(names):
            raise ValueError(f"`arguments` lacks what the messages use: {', '.join(sorted(unknown))}")
        return self


class Prompt(BaseModel):
    """A saved prompt."""

    name: str
    prompt: PromptBody
    saved_at: datetime


class PromptPage(Paged):
    """A page of a tenant's prompts, by name."""

    prompts: tuple[Prompt, ...]


class PromptDeleted(BaseModel):
    """Whether there was such a prompt."""

    deleted: bool


def completed(prompt: PromptBody, given: Mapping[str, str]) -> list[PromptMessage]:
    """Return a prompt's messages with the values in their places. Raises Reject for values it does not take."""
    known = {argument.name: argument for argument in prompt.arguments}
    missing = [name for name, argument in known.items() if argument.required and not given.get(name)]
    unknown = sorted(given.keys() - known.keys())
    if missing or unknown:
        wrong = f"lacks {', '.join(missing)}" if missing else f"has no argument {', '.join(unknown)}"
        raise Reject(f"the prompt {wrong}; it takes: {', '.join(known) or 'none'}", code="invalid_arguments")
    return [
        message.model_copy(
            update={
                "text": _filled(message.text, given, str),
                # A value is one part of the URI, whatever is in it.
                "resource": _filled(message.resource, given, lambda value: quote(value, safe="")),
            }
        )
        for message in prompt.messages
    ]


def proposals(prompt: PromptBody, argument: str, begun: str) -> list[str]:
    """Return the proposed values of an argument that begin with what was typed."""
    values = next((one.values for one in prompt.arguments if one.name == argument), ())
    return [value for value in values if value.casefold().startswith(begun.casefold())]


def _filled(template: str | None, given: Mapping[str, str], written: Callable[[str], str]) -> str | None:
    # In one pass: a value that looks like a place is none.
    return None if template is None else _PLACE.sub(lambda found: written(given.get(found[1], "")), template)
