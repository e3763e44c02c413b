"""Our bodies have no key and no form that the SDKs' own parameter types do not know."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import pytest
from pydantic import TypeAdapter

from wayline.contracts.chat import FilePart, ImagePart, TextPart, UserMessage, Verbatim
from wayline.contracts.models import CacheRules
from wayline.llm import File, ModelRequest
from wayline.llm.anthropic import request as anthropic_request
from wayline.llm.inputs import encoded
from wayline.llm.openai import request as openai_request

from .cards import CITY, LOOK, MARKS, calling, card, note, request, result, user

KINDS = {
    "anthropic": (anthropic_request.body, "anthropic.types.message_create_params", "MessageCreateParamsStreaming"),
    "openai": (openai_request.body, "openai.types.responses.response_create_params", "ResponseCreateParamsStreaming"),
}
FILES = {
    "i": File("cat.png", "image/png", encoded("image/png", b"png")),
    "p": File("a.pdf", "application/pdf", encoded("application/pdf", b"pdf")),
}
BLOCKS = {
    "anthropic": (
        {"type": "thinking", "thinking": "hm", "signature": "s=="},
        {"type": "tool_use", "id": "a", "name": "look", "input": {"at": 1}},
    ),
    "openai": (
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
        {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
    ),
}


def everything(provider: str, cache: CacheRules, reasoning: str) -> ModelRequest:
    asked = UserMessage(
        parts=(TextPart(text="hi"), ImagePart(document_id="i"), FilePart(document_id="p")), style="terse"
    )
    kept = Verbatim(provider=provider, model="m", blocks=BLOCKS[provider])
    able = {"images": True, "files": True, "system_messages": True, "structured_output": True}
    return request(
        *(asked, calling("a", verbatim=kept), result("1", "cat", failed=True), note("rain"), calling("b", text="so")),
        user("go on"),
        model=card(provider=provider, model="m", cache=cache, reasoning=reasoning, **able),
        tools=(LOOK,),
        effort="high",
        thinking_tokens=2_000,
        output_schema=CITY,
        breakpoints=(0, 3),
        files=FILES,
        cache_key="k",
    )


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return value if isinstance(value, str | int | float | None) else [plain(each) for each in value]


@cache
def parameters(module: str, name: str) -> TypeAdapter[Any]:
    """Return the parameter type of an SDK, which takes seconds to import."""
    return TypeAdapter(getattr(import_module(module), name))


@pytest.mark.parametrize("provider", KINDS)
@pytest.mark.parametrize("marks", [MARKS, CacheRules()])
@pytest.mark.parametrize("reasoning", ["adaptive", "budget", "effort"])
def test_the_sdk_knows_every_part_of_what_is_asked(provider, marks, reasoning):
    body, *params = KINDS[provider]
    wire = body(everything(provider, marks, reasoning))

    assert plain(parameters(*params).validate_python(wire)) == wire
