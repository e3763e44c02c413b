"""Take a server's secrets out of what a call of a tool has ended with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wayline.tool_registry.calls.asked_input import is_question
from wayline.tool_registry.secrets.server_secrets import ServerSecrets

if TYPE_CHECKING:
    from mcp_types import CallToolResult, InputRequiredResult
    from pydantic import BaseModel

TEXTS = ("text", "uri", "mime_type", "name", "title", "description")
"""Of a content block or its resource: what of it a model or a person can read."""


def redacted_result(
    result: CallToolResult | InputRequiredResult, secrets: ServerSecrets
) -> CallToolResult | InputRequiredResult:
    """Return a result without secrets: its content, structured content and `_meta`, or the questions that it asks."""
    if is_question(result):
        asked = {key: _redacted_question(one, secrets) for key, one in (result.input_requests or {}).items()}
        state = getattr(result, "request_state", None)
        # A state with a secret in it goes to the log, and comes back to the server as it is here: it may refuse it.
        kept = {"request_state": secrets.without_secrets_in_result(state)} if state is not None else {}
        return result.model_copy(update={"input_requests": asked, **kept})
    hide = secrets.without_secrets_in_result
    return result.model_copy(
        update={
            "content": [_redacted_block(block, secrets) for block in result.content],
            "structured_content": hide(result.structured_content),
            "meta": hide(result.meta),
        }
    )


def _redacted_block(block: Any, secrets: ServerSecrets) -> Any:
    changed = _changed_texts(block, secrets)
    if block.type == "resource" and (inner := _changed_texts(block.resource, secrets)):
        changed["resource"] = block.resource.model_copy(update=inner)
    return block.model_copy(update=changed) if changed else block


def _changed_texts(model: BaseModel, secrets: ServerSecrets) -> dict[str, Any]:
    texts = {name: text for name in TEXTS if isinstance(text := getattr(model, name, None), str)}
    hidden = {name: secrets.without_secrets_in_result(text) for name, text in texts.items()}
    changed: dict[str, Any] = {name: text for name, text in hidden.items() if text is not texts[name]}
    if meta := getattr(model, "meta", None):
        changed["meta"] = secrets.without_secrets_in_result(meta)
    return changed


def _redacted_question(question: Any, secrets: ServerSecrets) -> Any:
    """Return a question without secrets; its schema as a definition is shown, because the answer has its names."""
    schema = getattr(question.params, "requested_schema", None)
    if schema is None:
        return question
    about = {
        "message": secrets.without_secrets(question.params.message),
        "requested_schema": secrets.without_secrets(schema),
    }
    return question.model_copy(update={"params": question.params.model_copy(update=about)})
