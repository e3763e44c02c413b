"""Anthropic's Messages: reads requests, writes answers and streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from wayline.simulator.checks import media
from wayline.simulator.checks.messages import blocks_of, check
from wayline.simulator.models import Facts
from wayline.simulator.prompt import binding, blocks
from wayline.simulator.prompt.blocks import Block, Section
from wayline.simulator.refusals import Refusal
from wayline.simulator.request import Body, Envelope, check_window, named_results, texts
from wayline.simulator.scripts.script import Asked, Call, Offered, Turn
from wayline.simulator.wires.replies import Part, Prompt, Reply, pieces
from wayline.simulator.wires.writing import Frame

STOPS = {"end": "end_turn", "tools": "tool_use", "max_tokens": "max_tokens", "refused": "refusal"}
PING = b'event: ping\ndata: {"type": "ping"}\n\n'


def read(body: Body, facts: Facts, envelope: Envelope, *, counting: bool = False) -> Prompt:
    """Check a request and take it apart. Raises Refusal."""
    check(body, facts, counting=counting)
    reader = _Reader(body, facts)
    prompt = tuple(reader.blocks)
    total = sum(block.tokens for block in prompt)
    check_window(facts, total, f"prompt is too long: {total} tokens > {facts.window} maximum")
    thinking = body.get("thinking") or {}
    form = (body.get("output_config") or {}).get("format") or {}
    asked = Asked(
        number=envelope.number,
        attempt=envelope.attempt,
        wire="anthropic",
        model=facts.name,
        body=dict(body),
        system=texts(body.get("system")),
        turns=named_results(reader.turns),
        tools=tuple(_offered(tool) for tool in reader.tools if "input_schema" in tool),
        schema=form.get("schema"),
        thinks=thinking.get("type", "adaptive" if facts.always_thinks else "") in ("adaptive", "enabled"),
        stream=bool(body.get("stream")),
        output_limit=body.get("max_tokens"),
    )
    settings = [body.get("tool_choice"), {key: thinking[key] for key in sorted(thinking)}, reader.images]
    return Prompt(
        asked,
        facts,
        prompt,
        settings=orjson.dumps(settings),
        shows_thinking=thinking.get("display") != "omitted",
    )


class _Reader:
    """Walks a request in the order that the provider reads it: tools, system prompt, messages."""

    def __init__(self, body: Body, facts: Facts) -> None:
        self._facts = facts
        self._deferred = {tool["name"]: tool for tool in body.get("tools") or () if tool.get("defer_loading")}
        self.blocks: list[Block] = []
        self.turns: list[Turn] = []
        self.images = False
        """Whether there are any: the first one changes what its messages are kept under."""
        self.tools = [tool for tool in body.get("tools") or () if not tool.get("defer_loading")]
        """Those that the model knows of: a deferred one only once a tool_reference has named it."""
        for tool in self.tools:
            self._add(_tool_block(tool), tool)
        schema = ((body.get("output_config") or {}).get("format") or {}).get("schema")
        if schema is not None:
            self.blocks.append(blocks.schema(schema))
        for block in blocks_of({"content": body.get("system")}):
            self._add(blocks.text("system", "system", block.get("text") or ""), block)
        for at, message in enumerate(body["messages"]):
            self._read_message(message, at)
        if body.get("cache_control"):
            self._mark_last(_ttl(body["cache_control"]))

    def _add(self, block: Block, raw: Body) -> None:
        marker = raw.get("cache_control")
        self.blocks.append(block.kept(_ttl(marker)) if marker else block)

    def _mark_last(self, ttl: str) -> None:
        """Put the automatic marker on the last block that can bear one."""
        for at in range(len(self.blocks) - 1, -1, -1):
            block = self.blocks[at]
            if block.kind == "thinking" or not (block.text or block.kind in ("image", "document")):
                continue
            self.blocks[at] = block.kept(block.keep or ttl)
            return

    def _read_message(self, message: Body, at: int) -> None:
        role, text = message["role"], ""
        calls: list[Call] = []
        for n, block in enumerate(blocks_of(message)):
            kind = block.get("type")
            if kind == "text":
                text += block.get("text") or ""
                self._add(blocks.text("messages", role, block.get("text") or ""), block)
            elif kind == "thinking":
                self._read_thinking(block, f"messages.{at}.content.{n}")
            elif kind == "tool_use":
                calls.append(Call(block["id"], block["name"], block["input"]))
                self._add(blocks.call(block["id"], block["name"], orjson.dumps(block["input"]).decode()), block)
            elif kind == "tool_result":
                self._read_result(block)
            elif kind == "image":
                self.images = True
                self._add(blocks.image(role, block.get("source"), media.claude_tokens(block, self._facts)), block)
            elif kind == "document" and (block.get("source") or {}).get("type") == "base64":
                bare = {key: value for key, value in block.items() if key != "cache_control"}
                self._add(blocks.document(role, bare, media.claude_tokens(block, self._facts)), block)
            else:
                bare = {key: value for key, value in block.items() if key != "cache_control"}
                self._add(blocks.other("messages", role, bare), block)
        if text or calls or role == "assistant":
            self.turns.append(Turn(role, text, tuple(calls)))

    def _read_thinking(self, block: Body, at: str) -> None:
        thought, proof = block.get("thinking") or "", block.get("signature") or ""
        facts = self._facts
        if binding.belongs(thought, proof, self.blocks, model=facts.name, bound=facts.bound_thinking, at=at):
            self.blocks.append(blocks.thinking(thought, proof))

    def _read_result(self, block: Body) -> None:
        content = block.get("content")
        parts = content if isinstance(content, list) else []
        call_id, failed = block.get("tool_use_id") or "", bool(block.get("is_error"))
        shown = (part for part in parts if part.get("type") == "image")
        images = [(part.get("source"), media.claude_tokens(part, self._facts)) for part in shown]
        self.images = self.images or bool(images)
        text = texts(content)
        self._add(blocks.result(call_id, text, failed, images), block)
        self.turns.append(Turn("tool", text, call_id=call_id, failed=failed))
        for part in parts:
            if part.get("type") == "tool_reference":
                self._load(part.get("tool_name"))

    def _load(self, name: Any) -> None:
        """Read a deferred tool's definition, in the place where it was found."""
        tool = self._deferred.get(name) or next((tool for tool in self.tools if tool["name"] == name), None)
        if tool is None:
            raise Refusal(f"Tool reference '{name}' not found in available tools")
        self.blocks.append(blocks.other("messages", "tool_reference", _definition(tool)))
        if tool not in self.tools:
            self.tools.append(tool)


def _ttl(marker: Body) -> str:
    ttl = marker.get("ttl") or "5m"
    if ttl not in ("5m", "1h"):
        raise Refusal("cache_control.ephemeral.ttl: Input should be '5m' or '1h'")
    return ttl


def _tool_block(tool: Body) -> Block:
    section: Section = "tools"
    if "input_schema" not in tool:
        return blocks.other(section, "", _definition(tool))
    return blocks.tool(tool["name"], tool.get("description") or "", tool["input_schema"])


def _definition(tool: Body) -> dict[str, Any]:
    return {key: value for key, value in tool.items() if key not in ("cache_control", "defer_loading")}


def _offered(tool: Body) -> Offered:
    return Offered(tool["name"], tool.get("description") or "", tool["input_schema"])


def body_of(reply: Reply) -> dict[str, Any]:
    """Return the answer in one piece."""
    content = [_whole(reply, part) for part in reply.parts]
    return _message(reply, content=content, stop=_stop(reply), usage=_usage(reply, reply.usage.output))


def frames(reply: Reply) -> Iterator[Frame]:
    """Yield the answer as a stream."""
    first = min(1, reply.usage.output)
    opening = _message(reply, content=[], stop=None, usage=_usage(reply, first, opening=True))
    yield _event("message_start", {"message": opening}, at_least=first)
    for index, part in enumerate(reply.parts):
        block = _begun(part)
        yield _event("content_block_start", {"index": index, "content_block": block}, part=index, text=part.name)
        if index == 0:
            yield Frame(PING)
        for delta, words in _deltas(reply, part):
            yield _event("content_block_delta", {"index": index, "delta": delta}, part=index, **words)
        yield _event("content_block_stop", {"index": index})
    delta = {"stop_reason": _stop(reply), "stop_sequence": None, "stop_details": None}
    ending: dict[str, Any] = {"delta": delta}
    usage = _usage(reply, reply.usage.output)
    if usage is not None:
        told = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
        ending["usage"] = {name: usage[name] for name in (*told, "output_tokens_details")}
    yield _event("message_delta", ending, usage=usage is not None)
    yield _event("message_stop", {})


def trouble(number: int) -> bytes:
    """Make the error event that ends a stream whose status was 200."""
    error = {"type": "overloaded_error", "message": "Overloaded"}
    return _event("error", {"error": error, "request_id": f"req_{number:08d}"}).data


def _event(name: str, value: dict[str, Any], **words: Any) -> Frame:
    data = b"event: " + name.encode() + b"\ndata: " + orjson.dumps({"type": name, **value}) + b"\n\n"
    return Frame(data, **words)


def _begun(part: Part) -> dict[str, Any]:
    if part.kind == "call":
        return {"type": "tool_use", "id": f"toolu_{part.id}", "name": part.name, "input": {}, "caller": _CALLER}
    if part.kind == "thinking":
        return {"type": "thinking", "thinking": "", "signature": ""}
    return {"type": "text", "text": ""}


_CALLER = {"type": "direct"}


def _deltas(reply: Reply, part: Part) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    if part.kind == "call":
        yield {"type": "input_json_delta", "partial_json": ""}, {}
        for piece in pieces(part.text):
            yield {"type": "input_json_delta", "partial_json": piece}, {"text": piece}
    elif part.kind == "text":
        for piece in pieces(part.text):
            yield {"type": "text_delta", "text": piece}, {"text": piece}
    else:
        shown = pieces(part.text) if reply.prompt.shows_thinking else ()
        for text in shown:
            yield {"type": "thinking_delta", "thinking": text}, {"text": text}
        # Unshown thinking has been done all the same once its signature goes out.
        words = {} if reply.prompt.shows_thinking else {"unseen": part.text}
        yield {"type": "signature_delta", "signature": _signature(reply, part)}, words


def _whole(reply: Reply, part: Part) -> dict[str, Any]:
    block = _begun(part)
    if part.kind == "call":
        return {**block, "input": _input(part.text)}
    if part.kind == "thinking":
        shown = part.text if reply.prompt.shows_thinking else ""
        return {**block, "thinking": shown, "signature": _signature(reply, part)}
    return {**block, "text": part.text}


def _input(text: str) -> dict[str, Any]:
    """Return arguments as an object; the provider leaves out those that are no JSON."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _signature(reply: Reply, part: Part) -> str:
    return binding.signature(reply.prompt.facts.name, part.text, reply.prompt.blocks)


def _stop(reply: Reply) -> str:
    return STOPS.get(reply.stop, reply.stop)


def _message(reply: Reply, *, content: list[Any], stop: str | None, usage: dict[str, Any] | None) -> dict[str, Any]:
    message = {
        "id": f"msg_{reply.id}",
        "type": "message",
        "role": "assistant",
        "model": reply.prompt.facts.name,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "stop_details": None,
    }
    return message if usage is None else {**message, "usage": usage}


def _usage(reply: Reply, output: int, *, opening: bool = False) -> dict[str, Any] | None:
    """Return the usage; input is what is neither read from nor written to the cache."""
    if reply.fault.no_usage:
        return None
    used = reply.usage
    written = used.cache_write_5m + used.cache_write_1h
    by_ttl = {
        "ephemeral_5m_input_tokens": used.cache_write_5m,
        "ephemeral_1h_input_tokens": used.cache_write_1h,
    }
    usage: dict[str, Any] = {
        "input_tokens": used.input - used.cache_read - written,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": used.cache_read,
        "cache_creation": by_ttl,
        "output_tokens": output,
        "service_tier": "standard",
        "inference_geo": "global",
    }
    return usage if opening else {**usage, "output_tokens_details": {"thinking_tokens": used.reasoning}}
