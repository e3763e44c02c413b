"""Turn a question of a tool's server into a reply; refuse what no person may be asked, with what to do instead."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from typing_extensions import TypeIs

from wayline.contracts.tools import InputRequest, ToolReply
from wayline.tool_registry.calls.results import failed

if TYPE_CHECKING:
    from mcp_types import CallToolResult, InputRequiredResult

QUESTIONS_MAX = 8
MESSAGE_CHARS_MAX = 2_000
SCHEMA_MAX_BYTES = 16 * 1024
STATE_MAX_BYTES = 64 * 1024
AFTER_CANCEL = "wayline/after_cancel"
"""Of a question that came in the middle of a call: what the server said when it was cancelled."""

_SECRET = re.compile(
    r"(.*[_-])?(password|passphrase|passwd|secret|api[_-]?key|private[_-]?key|(access|auth|bearer)[_-]?token"
    r"|credentials?|cvv|cvc)",
    re.IGNORECASE,
)
"""Names of properties for which people would be asked for a secret."""


def is_question(result: CallToolResult | InputRequiredResult) -> TypeIs[InputRequiredResult]:
    """Return whether a result asks for input."""
    return result.result_type == "input_required"


def asked_input(result: InputRequiredResult, *, hide: Callable[[str], str] = str, **about: Any) -> ToolReply:
    """Return the reply for a result with which a server asks for input; `hide` takes its secrets out of its words."""
    questions: dict[str, Any] = dict(result.input_requests or {})
    why = why_not_asked(questions, result.request_state)
    after_cancel = (result.meta or {}).get(AFTER_CANCEL)
    if why is not None:
        return failed("refused", f"the tool's server {hide(why)[:MESSAGE_CHARS_MAX]}", **about)
    schemas = {key: _schema(one) for key, one in questions.items()}
    asked = InputRequest(
        message=hide("\n".join(str(one.params.message) for one in questions.values()))[:MESSAGE_CHARS_MAX],
        input_schema=next(iter(schemas.values())) if len(schemas) == 1 else _of_all(schemas),
        keys=tuple(schemas),
        state=result.request_state,
        after_cancel=after_cancel[:MESSAGE_CHARS_MAX] if isinstance(after_cancel, str) else None,
    )
    return failed("refused", f"the tool's server asks a person: {asked.message}", input=asked, **about)


def why_not_asked(questions: dict[str, Any], state: str | None) -> str | None:
    """Return why a person is not asked; None: one is."""
    if not questions:
        return "kept asking to be called again without asking for anything"
    if len(questions) > QUESTIONS_MAX:
        return f"asks {len(questions)} questions at once; at most {QUESTIONS_MAX} are put to a person"
    for one in questions.values():
        if one.method != "elicitation/create":
            return f"asks for {one.method}, which is not given to tools"
        if one.params.mode != "form":
            return f"wants a person to open {one.params.url}, for which nobody is asked: {one.params.message}"
        for name, schema in _properties(_schema(one)).items():
            if _SECRET.fullmatch(name) or (isinstance(schema, dict) and schema.get("format") == "password"):
                return f"asks a person for the secret {name!r}: give it in the server's `headers` or `env` instead"
    size = sum(len(json.dumps(_schema(one))) for one in questions.values())
    if size > SCHEMA_MAX_BYTES or len((state or "").encode()) > STATE_MAX_BYTES:
        return f"asks with a schema above {SCHEMA_MAX_BYTES} bytes or a state above {STATE_MAX_BYTES}"
    return None


def _schema(question: Any) -> dict[str, Any]:
    return question.params.requested_schema


def _properties(schema: dict[str, Any]) -> dict[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def _of_all(schemas: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return one schema for the answers to several questions."""
    return {"type": "object", "properties": schemas, "required": list(schemas), "additionalProperties": False}
