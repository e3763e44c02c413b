"""Turn a tool's result into the reply that its caller gets."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from wayline.contracts.chat import Citation, ToolImage
from wayline.contracts.images import seen
from wayline.contracts.money import usd
from wayline.contracts.reranking import FoundPassages
from wayline.contracts.tool_details import ResultForm
from wayline.contracts.tools import Effect, ToolError, ToolReply
from wayline.contracts.working_context import ENTITIES_PER_RESULT_MAX, ENTITY_NAME_MAX, Entity
from wayline.llm.tokens import estimate
from wayline.tool_registry.calls.server_answers import UNREAD, text_in, unread, whole_characters
from wayline.tool_registry.calls.structured_content import ENTITIES, json_object_in, with_structured
from wayline.tool_registry.calls.whole_result import value_text, whole_result
from wayline.tool_registry.images.image_bytes import decoded, decoded_head

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ImageContent

KEY = "wayline/key"
TENANT = "wayline/tenant"
"""Sent to built-in tools only."""
USER = "wayline/user"
ORIGIN = "wayline/origin"
"""Sent to built-in tools only: whom the call is for, and what the log of its job proves of it."""
DIRECT = "wayline/direct"
"""Sent to built-in tools only: the call is of no job."""
RECONCILE = "wayline/reconcile"
COST = "wayline/cost_usd"
CITATIONS = "wayline/citations"
STRANGERS = "wayline/strangers"
"""Names in a call's `_meta`: we send the first four, a tool may answer with the others. With the last a tool that
is trusted says that this result holds the words of strangers all the same."""
RERANK = "wayline/rerank"
"""Sent to built-in tools only: the job ranks again what a search finds."""
FOUND = "wayline/found"
"""Of a built-in tool's answer: what a search found, for the job to rank."""

IMAGES_MAX = 4
"""Images of one result that a model can be shown; the others are named."""
IMAGE_MAX_BYTES = 2 * 1024 * 1024
"""Of one image; a larger one is named."""
IMAGE_HEAD_CHARS = 64 * 1024
"""In base64, of an image that is too large: enough to say what it is."""

TEXT_TYPES = frozenset({"application/json", "application/xml", "application/yaml", "application/javascript"})
"""Of resources whose bytes are text, beside `text/*`."""
LINE_READ_MAX = 1_000
"""Characters of an entity's name or id that are looked at."""

_CITATIONS = TypeAdapter(tuple[Citation, ...])


def reply_of(
    result: CallToolResult,
    *,
    effect: Effect,
    trusted: bool,
    max_bytes: int,
    attempts: int = 1,
    duration_ms: float = 0,
    form: ResultForm = "text",
    untrusted: bool | None = None,
) -> ToolReply:
    """Return the reply for a tool's result; citations count only from a server that is trusted.

    `untrusted`: whether it holds the words of strangers where it does not say so itself; None: nobody has said.
    """
    content, images = _read(result)
    if form == "value" and not result.is_error and (value := value_text(result)) is not None:
        content, images = value, ()
    meta = result.meta or {}
    cut: str | None = None
    size = len(content.encode())
    always: dict[str, Any] = {
        "effect": effect,
        "cost_usd": cost_of(meta),
        "attempts": attempts,
        "duration_ms": duration_ms,
        "strangers": True if trusted and meta.get(STRANGERS) is True else untrusted,
    }
    if effect is Effect.READ and (why := meta.get(UNREAD)) and not result.is_error:
        return failed("tool_failed", f"the tool's answer could not be read whole: {why}; ask it for less", **always)
    if size > max_bytes:
        reason = f"the tool's answer of {size} bytes is above the limit of {max_bytes}"
        if effect is Effect.READ:
            return failed("tool_failed", f"{reason}; ask it for less", **always)
        # It has acted: to be told of a failure a model would do it again.
        content = cut = unread(content, reason, most_bytes=max_bytes)["content"][0]["text"]
        size = len(content.encode())
    always |= {"size_bytes": size, "tokens": estimate(content)}
    if form == "whole":
        always["whole"], images = whole_result(result, content=cut), ()
    if result.is_error:
        return failed("tool_failed", content or "the tool failed without saying why", **always)
    citations = citations_of(meta) if trusted else ()
    entities = entities_of(result)
    found = found_in(meta) if trusted else None
    said: dict[str, Any] = {"images": images, "citations": citations, "entities": entities, "found": found}
    return ToolReply(status="success", content=content, **said, **always)


def text_of(result: CallToolResult) -> str:
    """Return everything a model can read in a result, in order; what it cannot is named."""
    return _read(result)[0]


def _read(result: CallToolResult) -> tuple[str, tuple[ToolImage, ...]]:
    """Read the text of a result, in which images are named, and those of them that a model can be shown."""
    images: list[ToolImage] = []
    parts = [_image(block, images) if block.type == "image" else _part(block) for block in result.content]
    if result.structured_content is not None:
        texts = [block.text for block in result.content if block.type == "text"]
        others = [part for part, block in zip(parts, result.content, strict=True) if block.type != "text"]
        parts = with_structured(texts, result.structured_content, others=others)
    return whole_characters("\n".join(parts)), tuple(images)


def _image(block: ImageContent, images: list[ToolImage]) -> str:
    """Name an image in words, and add it to `images` where a model can be shown it."""
    large = len(block.data) > IMAGE_MAX_BYTES * 4 // 3 + 4
    try:
        content = decoded_head(block.data[:IMAGE_HEAD_CHARS]) if large else decoded(block.data)
    except ValueError:
        content = b""
    found = seen(content)
    if found is None:
        return f"[image {block.mime_type}]"
    image = ToolImage(
        media_type=found.media_type,
        sha256=sha256(content).hexdigest(),
        size_bytes=len(content),
        width=found.width,
        height=found.height,
        content_base64=b64encode(content).decode(),
    )
    if large or len(content) > IMAGE_MAX_BYTES:
        return f"{image.note[:-1]}, not shown: it is above the limit of {IMAGE_MAX_BYTES} bytes]"
    if len(images) >= IMAGES_MAX:
        return f"{image.note[:-1]}, not shown: a result may show {IMAGES_MAX} images]"
    images.append(image)
    return image.note


def _part(block: Any) -> str:
    match block.type:
        case "text":
            return block.text
        case "resource" if hasattr(block.resource, "text"):
            return block.resource.text
        case "resource":
            named = f"[{block.resource.mime_type or 'binary'} resource {block.resource.uri}]"
            text = _text_of_blob(block.resource.blob, block.resource.mime_type or "")
            return named if text is None else f"{named}\n{text}"
        case "resource_link":
            about = [block.title or block.name, block.description, block.mime_type]
            words = "; ".join(" ".join(one.split()) for one in about if one and one != str(block.uri))
            return f"[resource {block.uri}{f': {words}' if words else ''}]"
        case kind:
            return f"[{kind} {block.mime_type}]"


def _text_of_blob(blob: str, mime_type: str) -> str | None:
    """Return the text of a resource that is sent as bytes; None: it is no text."""
    kind = mime_type.partition(";")[0].strip().lower()
    if not (kind.startswith("text/") or kind in TEXT_TYPES or kind.endswith(("+json", "+xml"))):
        return None
    try:
        return text_in(decoded(blob))
    except ValueError:
        return None


def cost_of(meta: Mapping[str, Any]) -> Decimal | None:
    """Return the cost that the tool's result states; an unreadable one counts as none."""
    try:
        charged = Decimal(str(meta[COST]))
    except (KeyError, InvalidOperation):
        return None
    return usd(charged) if charged.is_finite() and 0 <= charged < 1_000_000 else None


def citations_of(meta: Mapping[str, Any]) -> tuple[Citation, ...]:
    """Return the passages that a tool's answer rests on."""
    if CITATIONS not in meta:
        return ()
    try:
        return _CITATIONS.validate_python(meta[CITATIONS])
    except ValidationError:
        return ()


def found_in(meta: Mapping[str, Any]) -> FoundPassages | None:
    """Return what a search found of which a model is to choose; None: nothing is to be chosen."""
    if FOUND not in meta:
        return None
    try:
        return FoundPassages.model_validate(meta[FOUND])
    except ValidationError:
        return None


def entities_of(result: CallToolResult) -> tuple[Entity, ...]:
    """Return the entities that a result declares; what cannot be one is passed over, long names are cut.

    They are in its structured content; where a server sends none, as for a function that returns any `dict`, in its
    one text, where that is a JSON object.
    """
    structured = result.structured_content
    if structured is None and len(result.content) == 1 and result.content[0].type == "text":
        structured = json_object_in(result.content[0].text)
    declared = structured.get(ENTITIES) if isinstance(structured, dict) else None
    if not isinstance(declared, list):
        return ()
    found: list[Entity] = []
    for one in declared[:ENTITIES_PER_RESULT_MAX]:
        if not isinstance(one, dict) or not isinstance(one.get("id"), str | int):
            continue
        name = _plain(one.get("name"))
        with suppress(ValidationError):
            entity = Entity(type=one.get("type", ""), id=_plain(str(one["id"])), name=name[:ENTITY_NAME_MAX])
            found.append(entity)
    return tuple(found)


def _plain(text: Any) -> str:
    """Return text on one line, without what no text has; empty where it is none."""
    if not isinstance(text, str):
        return ""
    line = " ".join("".join(one if one.isprintable() else " " for one in text[:LINE_READ_MAX]).split())
    return whole_characters(line)


def reconciled(result: CallToolResult) -> tuple[bool, str]:
    """Return what a tool reports of a key: whether it was done, and its content. Raises ValueError."""
    if result.is_error:
        raise ValueError(f"it cannot say what became of the call: {text_of(result)}")
    outcome = result.structured_content
    if not isinstance(outcome, dict) or "found" not in outcome:
        outcome = json.loads("\n".join(block.text for block in result.content if block.type == "text"))
    if not isinstance(outcome, dict) or not isinstance(outcome.get("found"), bool):
        raise ValueError("a reconcile answer is {found: true or false, content}")
    content = outcome.get("content")
    return outcome["found"], content if isinstance(content, str) else json.dumps(content)


def failed(code: Any, message: str, **more: Any) -> ToolReply:
    """Build the reply of a call that did not succeed, and why, with what else there is to say of it."""
    return ToolReply(status="failed", error=ToolError(code=code, message=message), **more)
