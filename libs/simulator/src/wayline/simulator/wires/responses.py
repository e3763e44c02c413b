"""OpenAI's Responses: reads requests, writes answers. Stateless: nothing is looked up by an earlier response's id."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any

import orjson

from wayline.simulator.checks import media
from wayline.simulator.checks.openai import check_responses
from wayline.simulator.models import Facts
from wayline.simulator.prompt import blocks
from wayline.simulator.prompt.blocks import Block
from wayline.simulator.refusals import Refusal
from wayline.simulator.request import Body, Envelope, arguments, check_window, merged, named_results, texts
from wayline.simulator.scripts.script import Asked, Call, Offered, Turn
from wayline.simulator.wires.replies import Part, Prompt, Reply

SEARCH = "tool_search"
FAILED = {"code": "server_error", "message": "The model failed to generate a response."}


def read(body: Body, facts: Facts, envelope: Envelope) -> Prompt:
    """Check a request and take it apart. Raises Refusal."""
    check_responses(body, facts, verified=envelope.verified)
    reader = _Reader(body, facts)
    message = "Your input exceeds the context window of this model. Please adjust your input and try again."
    check_window(facts, sum(block.tokens for block in reader.blocks), message, "context_length_exceeded")
    form = (body.get("text") or {}).get("format") or {}
    reasoning = body.get("reasoning") or {}
    options = body.get("prompt_cache_options") or {}
    asked = Asked(
        number=envelope.number,
        attempt=envelope.attempt,
        wire="openai",
        model=facts.name,
        body=dict(body),
        system="\n".join(reader.system),
        turns=named_results(merged(reader.turns)),
        tools=tuple(_offered(tool) for tool in reader.tools if tool.get("type") in ("function", SEARCH)),
        schema=form.get("schema") if form.get("type") == "json_schema" else None,
        thinks=facts.reasons and (reasoning.get("effort") or "medium") != "none",
        stream=bool(body.get("stream")),
        output_limit=body.get("max_output_tokens"),
    )
    return Prompt(
        asked,
        facts,
        tuple(reader.blocks),
        cache_key=body.get("prompt_cache_key") or "",
        implicit_cache=options.get("mode", "implicit") == "implicit",
        cache_ttl=options.get("ttl") or "30m",
        shows_thinking=bool(reasoning.get("summary")),
        hands_back_thinking="reasoning.encrypted_content" in (body.get("include") or ()),
    )


class _Reader:
    """Walks a request in the order that the provider reads it: tools, schema, instructions, input."""

    def __init__(self, body: Body, facts: Facts) -> None:
        self._facts = facts
        self.turns: list[Turn] = []
        self.system: list[str] = []
        self.tools = [tool for tool in body.get("tools") or () if not tool.get("defer_loading")]
        self.blocks: list[Block] = [_tool_block(tool) for tool in self.tools]
        form = (body.get("text") or {}).get("format") or {}
        if form.get("type") == "json_schema":
            self.blocks.append(blocks.schema(form.get("schema")))
        if body.get("instructions"):
            self.system.append(body["instructions"])
            self.blocks.append(blocks.text("system", "system", body["instructions"]))
        items = body["input"]
        for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
            self._read(item)

    def _read(self, item: Body) -> None:
        kind = item.get("type", "message")
        if kind == "message":
            self._read_message(item)
        elif kind == "function_call":
            call_id, name, written = item["call_id"], item["name"], item.get("arguments") or ""
            self.blocks.append(blocks.call(call_id, name, written))
            self.turns.append(Turn("assistant", calls=(Call(call_id, name, arguments(written)),)))
        elif kind == "function_call_output":
            output = item.get("output")
            text, parts = texts(output), output if isinstance(output, list) else []
            images = [self._image(part) for part in parts if part.get("type") == "input_image"]
            block = blocks.result(item["call_id"], text, images=images)
            self.blocks.append(block.kept(_kept_in(item.get("output"))))
            self.turns.append(Turn("tool", text, call_id=item["call_id"]))
        elif kind == "reasoning":
            self._read_reasoning(item)
        elif kind == "tool_search_call":
            call_id, given = item["call_id"], item["arguments"]
            self.blocks.append(blocks.call(call_id, SEARCH, orjson.dumps(given).decode()))
            self.turns.append(Turn("assistant", calls=(Call(call_id, SEARCH, given),)))
        else:
            self.blocks.append(blocks.other("messages", "", {k: v for k, v in item.items() if k != "id"}))
            if kind in ("tool_search_output", "additional_tools"):
                self.tools += [tool for tool in item.get("tools") or () if tool not in self.tools]
            if kind == "tool_search_output":
                found = ", ".join(tool["name"] for tool in item["tools"])
                self.turns.append(Turn("tool", found, call_id=item["call_id"]))

    def _read_message(self, item: Body) -> None:
        role = "system" if item["role"] == "developer" else item["role"]
        content = item.get("content")
        parts: Sequence[Body] = [{"type": "input_text", "text": content}] if isinstance(content, str) else content or []
        for part in parts:
            if part.get("type") == "input_image":
                self._add(blocks.image(role, *self._image(part)), part)
            elif part.get("type") == "input_file":
                bare = {key: value for key, value in part.items() if key != "prompt_cache_breakpoint"}
                self._add(blocks.document(role, bare, media.gpt_file(part)), part)
            else:
                self._add(blocks.text("messages", role, part.get("text") or part.get("refusal") or ""), part)
        text = texts(content)
        if role == "system":
            self.system.append(text)
        self.turns.append(Turn(role, text))

    def _image(self, part: Body) -> tuple[Any, int]:
        url = part.get("image_url") or part.get("file_id")
        return url, media.gpt_image(url, part.get("detail") or "auto", self._facts)

    def _add(self, block: Block, part: Body) -> None:
        self.blocks.append(block.kept(_kept(part)))

    def _read_reasoning(self, item: Body) -> None:
        sealed = item.get("encrypted_content")
        if sealed is None:
            return
        self.blocks.append(blocks.thinking(_unseal(sealed, str(item.get("id"))), sealed))


def _kept(part: Body) -> str | None:
    mark = part.get("prompt_cache_breakpoint")
    # No lifetime of its own: the request's, which the cache is told.
    return (mark.get("ttl") or "30m") if mark else None


def _kept_in(output: Any) -> str | None:
    marks = [_kept(part) for part in output if isinstance(part, dict)] if isinstance(output, list) else []
    return marks[-1] if marks else None


def _tool_block(tool: Body) -> Block:
    if tool.get("type") != "function":
        return blocks.other("tools", "", dict(tool))
    return blocks.tool(tool["name"], tool.get("description") or "", tool.get("parameters"))


def _offered(tool: Body) -> Offered:
    return Offered(tool.get("name", SEARCH), tool.get("description") or "", tool.get("parameters") or {})


def seal(thought: str, model: str) -> str:
    """Seal thinking in the form that is handed back unread."""
    return base64.b64encode(orjson.dumps([model, thought])).decode()


def _unseal(sealed: str, item: str) -> str:
    try:
        return str(orjson.loads(base64.b64decode(sealed, validate=True))[1])
    except (binascii.Error, orjson.JSONDecodeError, IndexError, TypeError):
        message = f"The encrypted content for item {item} could not be verified."
        raise Refusal(message, code="invalid_encrypted_content") from None


def body_of(reply: Reply) -> dict[str, Any]:
    """Return the answer in one piece, with its shown thinking as a summary."""
    output = [item(reply, at, part, summary=True) for at, part in enumerate(reply.parts)]
    return response(reply, output=output, ended=True, streamed=False)


def item(reply: Reply, at: int, part: Part, *, summary: bool) -> dict[str, Any]:
    """Return one complete item of the output; `summary` says how shown thinking is written."""
    if part.kind == "thinking":
        made: dict[str, Any] = {"id": item_id(reply, at, part), "type": "reasoning", "summary": []}
        shown = reply.prompt.shows_thinking
        if shown and summary:
            made["summary"] = [{"type": "summary_text", "text": part.text}]
        elif shown:
            made["content"] = [{"type": "reasoning_text", "text": part.text}]
        if reply.prompt.hands_back_thinking:
            made["encrypted_content"] = seal(part.text, reply.prompt.facts.name)
        return made
    made = {"id": item_id(reply, at, part), "type": "message", "status": status(reply), "role": "assistant"}
    if part.kind == "text":
        return {**made, "content": [content(reply, part.text)]}
    if part.name == SEARCH and any(tool.get("type") == SEARCH for tool in reply.prompt.asked.body.get("tools") or ()):
        search = {"call_id": f"call_{part.id}", "execution": "client", "arguments": orjson.loads(part.text)}
        return {"id": made["id"], "type": "tool_search_call", "status": made["status"], **search}
    call = {"call_id": f"call_{part.id}", "name": part.name, "arguments": part.text}
    return {"id": made["id"], "type": "function_call", "status": made["status"], **call}


def content(reply: Reply, text: str) -> dict[str, Any]:
    if reply.stop == "refused":
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}


def item_id(reply: Reply, at: int, part: Part) -> str:
    prefix = {"thinking": "rs", "text": "msg", "call": "fc"}[part.kind]
    return f"{prefix}_{reply.id}_{at}"


def status(reply: Reply) -> str:
    return "incomplete" if reply.stop == "max_tokens" else "completed"


def response(reply: Reply, *, output: list[Any], ended: bool, streamed: bool) -> dict[str, Any]:
    """Return the response object, begun or ended. The request is echoed as far as recordings echo it."""
    asked = reply.prompt.asked
    reasoning = asked.body.get("reasoning") or {}
    text = (asked.body.get("text") or {}).get("format") or {"type": "text"}
    choice = asked.body.get("tool_choice") or "auto"
    stopped = ended and reply.stop == "max_tokens"
    return {
        "id": f"resp_{reply.id}",
        "object": "response",
        "created_at": reply.at_s,
        "status": "in_progress" if not ended else "failed" if reply.failed else status(reply),
        "background": False,
        "completed_at": reply.at_s if ended else None,
        "error": FAILED if ended and reply.failed else None,
        "frequency_penalty": 0.0,
        "incomplete_details": {"reason": "max_output_tokens"} if stopped else None,
        "instructions": asked.body.get("instructions"),
        "max_output_tokens": None,
        "max_tool_calls": None,
        "metadata": {},
        "model": asked.model,
        "output": output,
        "parallel_tool_calls": asked.body.get("parallel_tool_calls") is not False,
        "presence_penalty": 0.0,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "reasoning": {"effort": reasoning.get("effort"), "summary": None},
        "safety_identifier": None,
        "service_tier": "default",
        "store": asked.body.get("store") is not False,
        "temperature": 1.0,
        "text": {"format": {"type": text.get("type", "text")} if streamed else _format(text), "verbosity": "medium"},
        "tool_choice": choice if isinstance(choice, str) else "required" if streamed else choice,
        "tools": [_echoed(tool) for tool in asked.body.get("tools") or ()],
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": _usage(reply) if ended and not reply.fault.no_usage else None,
        "user": None,
    }


def _format(form: Body) -> dict[str, Any]:
    if form.get("type") != "json_schema":
        return {"type": form.get("type", "text")}
    described = {"name": form.get("name"), "schema": form.get("schema"), "strict": bool(form.get("strict"))}
    return {"type": "json_schema", "description": None, **described}


def _echoed(tool: Body) -> dict[str, Any]:
    if tool.get("type") != "function":
        return {"type": tool.get("type")}
    strict = tool.get("strict") is not False
    described = {"description": tool.get("description"), "parameters": tool.get("parameters")}
    return {"type": "function", "name": tool["name"], "strict": strict, **described}


def _usage(reply: Reply) -> dict[str, Any]:
    """Return the usage; input includes what was read from and written to the cache."""
    used = reply.usage
    return {
        "input_tokens": used.input,
        "input_tokens_details": {"cached_tokens": used.cache_read, "cache_write_tokens": used.cache_write_5m},
        "output_tokens": used.output,
        "output_tokens_details": {"reasoning_tokens": used.reasoning},
        "total_tokens": used.input + used.output,
    }
