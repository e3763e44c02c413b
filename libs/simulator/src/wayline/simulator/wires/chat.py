"""Chat Completions, as OpenAI and those that are compatible with it speak it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from wayline.simulator.checks import media
from wayline.simulator.checks.google import signature
from wayline.simulator.checks.openai import check_chat
from wayline.simulator.models import Facts
from wayline.simulator.prompt import blocks
from wayline.simulator.prompt.blocks import Block, Section
from wayline.simulator.request import Body, Envelope, arguments, check_window, named_results, texts
from wayline.simulator.scripts.script import Asked, Call, Offered, Turn
from wayline.simulator.wires.replies import Prompt, Reply, pieces
from wayline.simulator.wires.writing import Frame

STOPS = {"end": "stop", "tools": "tool_calls", "max_tokens": "length", "refused": "content_filter"}


def read(body: Body, facts: Facts, envelope: Envelope) -> Prompt:
    """Check a request and take it apart. Raises Refusal."""
    check_chat(body, facts)
    reader = _Reader(body, facts)
    total = sum(block.tokens for block in reader.blocks)
    limit = f"This model's maximum context length is {facts.window} tokens."
    message = f"{limit} However, your messages resulted in {total} tokens."
    check_window(facts, total, message, "context_length_exceeded")
    form = body.get("response_format") or {}
    options = body.get("prompt_cache_options") or {}
    # OpenAI's own models keep their thinking to themselves here; a local one shows it, where it is asked to think.
    local = facts.provider == "local"
    asked = Asked(
        number=envelope.number,
        attempt=envelope.attempt,
        wire="openai_chat",
        model=facts.name,
        body=dict(body),
        system="\n".join(turn.text for turn in reader.turns if turn.role == "system"),
        turns=named_results(reader.turns),
        tools=tuple(_offered(tool["function"]) for tool in body.get("tools") or ()),
        schema=(form.get("json_schema") or {}).get("schema") if form.get("type") == "json_schema" else None,
        thinks=facts.reasons and (body.get("reasoning_effort") or ("none" if local else "medium")) != "none",
        stream=bool(body.get("stream")),
        output_limit=body.get("max_completion_tokens") or body.get("max_tokens"),
    )
    return Prompt(
        asked,
        facts,
        tuple(reader.blocks),
        cache_key=body.get("prompt_cache_key") or "",
        implicit_cache=options.get("mode", "implicit") == "implicit",
        cache_ttl=options.get("ttl") or "30m",
        shows_thinking=local,
    )


class _Reader:
    """Walks a request in the order that the provider reads it: tools, schema, messages."""

    def __init__(self, body: Body, facts: Facts) -> None:
        self._facts = facts
        self.turns: list[Turn] = []
        tools = [tool["function"] for tool in body.get("tools") or ()]
        self.blocks: list[Block] = [
            blocks.tool(tool["name"], tool.get("description") or "", tool.get("parameters")) for tool in tools
        ]
        form = body.get("response_format") or {}
        if form.get("type") == "json_schema":
            self.blocks.append(blocks.schema((form.get("json_schema") or {}).get("schema")))
        section: Section = "system"
        for message in body["messages"]:
            role = "system" if message["role"] == "developer" else message["role"]
            section = section if role == "system" else "messages"
            self._read(message, role, section)

    def _read(self, message: Body, role: Any, section: Section) -> None:
        content = message.get("content")
        text = texts(content)
        if role == "tool":
            self.blocks.append(blocks.result(message["tool_call_id"], text))
            self.turns.append(Turn("tool", text, call_id=message["tool_call_id"]))
            return
        parts: Sequence[Body] = [{"type": "text", "text": content}] if isinstance(content, str) else content or ()
        for part in parts:
            mark = part.get("prompt_cache_breakpoint")
            self.blocks.append(
                _part(section, role, part, self._facts).kept((mark.get("ttl") or "30m") if mark else None)
            )
        calls: list[Call] = []
        for call in message.get("tool_calls") or ():
            written = call["function"].get("arguments") or ""
            self.blocks.append(blocks.call(call["id"], call["function"]["name"], written))
            calls.append(Call(call["id"], call["function"]["name"], arguments(written)))
        self.turns.append(Turn(role, text, tuple(calls)))


def _part(section: Section, role: str, part: Body, facts: Facts) -> Block:
    if part.get("type") == "image_url":
        image = part.get("image_url") or {}
        return blocks.image(role, image, media.gpt_image(image.get("url"), image.get("detail") or "auto", facts))
    if part.get("type") == "file":
        return blocks.document(role, part.get("file"), media.gpt_file(part.get("file") or {}))
    if part.get("type") in ("text", "refusal"):
        return blocks.text(section, role, part.get("text") or part.get("refusal") or "")
    return blocks.other(section, role, {key: value for key, value in part.items() if key != "prompt_cache_breakpoint"})


def _offered(function: Body) -> Offered:
    return Offered(function["name"], function.get("description") or "", function.get("parameters") or {})


def body_of(reply: Reply) -> dict[str, Any]:
    """Return the answer in one piece."""
    texts_ = [part.text for part in reply.parts if part.kind == "text"]
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts_) if texts_ else None}
    if reply.prompt.facts.provider == "openai":
        message |= {"refusal": None, "annotations": []}
    for part in reply.parts:
        if part.kind == "call":
            function = {"name": part.name, "arguments": part.text}
            called = {"id": f"call_{part.id}", "type": "function", "function": function}
            message.setdefault("tool_calls", [])
            message["tool_calls"].append(called | _proof(reply, called, first=not message["tool_calls"]))
        elif part.kind == "thinking" and reply.prompt.shows_thinking:
            message["reasoning"] = part.text
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": STOPS.get(reply.stop, "stop")}
    whole = {**_head(reply, "chat.completion"), "choices": [choice]}
    return whole if reply.fault.no_usage else {**whole, "usage": _usage(reply)}


def frames(reply: Reply) -> Iterator[Frame]:
    """Yield the answer as chunks."""
    spoken = any(part.kind == "text" for part in reply.parts)
    hidden = "" if reply.prompt.shows_thinking else "".join(p.text for p in reply.parts if p.kind == "thinking")
    opening = {"role": "assistant", "content": "" if spoken else None, "refusal": None}
    yield _chunk(reply, opening, unseen=hidden)
    calls = 0
    for at, part in enumerate(reply.parts):
        if part.kind == "call":
            function: dict[str, Any] = {"name": part.name, "arguments": ""}
            begun = {"index": calls, "id": f"call_{part.id}", "type": "function", "function": function}
            proof = _proof(reply, {"function": {"name": part.name, "arguments": part.text}}, first=calls == 0)
            yield _chunk(reply, {"tool_calls": [begun | proof]}, part=at, text=part.name)
            for piece in pieces(part.text):
                more = {"index": calls, "function": {"arguments": piece}}
                yield _chunk(reply, {"tool_calls": [more]}, part=at, text=piece)
            calls += 1
        elif part.kind == "text":
            for piece in pieces(part.text):
                yield _chunk(reply, {"content": piece}, part=at, text=piece)
        elif reply.prompt.shows_thinking:
            for piece in pieces(part.text):
                yield _chunk(reply, {"reasoning": piece}, part=at, text=piece)
    counts = _include_usage(reply) and not reply.fault.no_usage
    google = _is_google(reply)
    yield _chunk(reply, {}, finish=STOPS.get(reply.stop, "stop"), usage=_usage(reply) if counts and google else None)
    if counts and not google:
        value = {**_head(reply, "chat.completion.chunk"), "choices": [], "usage": _usage(reply)}
        yield Frame(_line(value), usage=True)
    yield Frame(b"data: [DONE]\n\n")


def _is_google(reply: Reply) -> bool:
    return reply.prompt.facts.provider == "google"


def _include_usage(reply: Reply) -> bool:
    return bool((reply.prompt.asked.body.get("stream_options") or {}).get("include_usage"))


def _proof(reply: Reply, call: Body, *, first: bool) -> dict[str, Any]:
    if not first or not _is_google(reply):
        return {}
    return {"extra_content": {"google": {"thought_signature": signature(call)}}}


def trouble(number: int) -> bytes:
    """Make the error that ends a stream whose status was 200."""
    message = "The server is currently overloaded. Please try again later."
    return _line({"error": {"message": message, "type": "server_error", "param": None, "code": None}})


def _chunk(
    reply: Reply,
    delta: dict[str, Any],
    *,
    finish: str | None = None,
    part: int = 0,
    text: str = "",
    unseen: str = "",
    usage: dict[str, Any] | None = None,
) -> Frame:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    value: dict[str, Any] = {**_head(reply, "chat.completion.chunk"), "choices": [choice]}
    if _include_usage(reply):
        value["usage"] = usage
        if usage is None and _is_google(reply) and not reply.fault.no_usage:
            # Google counts in every chunk, what it has read from the first on.
            read = reply.usage.input
            value["usage"] = {"prompt_tokens": read, "completion_tokens": 0, "total_tokens": read}
    return Frame(_line(value), part=part, text=text, unseen=unseen, usage=usage is not None)


def _head(reply: Reply, kind: str) -> dict[str, Any]:
    head = {"id": f"chatcmpl-{reply.id}", "object": kind, "created": reply.at_s, "model": reply.prompt.asked.model}
    if reply.prompt.facts.provider == "openai":
        head |= {"service_tier": "default", "system_fingerprint": None}
    return head


def _usage(reply: Reply) -> dict[str, Any]:
    used = reply.usage
    if _is_google(reply):
        # What it thought is in no count but the sum.
        written = used.output - used.reasoning
        return {
            "prompt_tokens": used.input,
            "completion_tokens": written,
            "total_tokens": used.input + used.output,
        }
    usage: dict[str, Any] = {
        "prompt_tokens": used.input,
        "completion_tokens": used.output,
        "total_tokens": used.input + used.output,
        "completion_tokens_details": {"reasoning_tokens": used.reasoning},
    }
    if reply.prompt.facts.provider == "openai":
        read = {"cached_tokens": used.cache_read, "cache_write_tokens": used.cache_write_5m}
        usage["prompt_tokens_details"] = read
    return usage


def _line(value: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"
