"""A long tool result in a shorter form, made once, before it enters the history: a message is never edited later."""

from __future__ import annotations

import json
from typing import Any

from wayline.contracts.chat import IMAGES, ToolImage
from wayline.contracts.framed_words import framed
from wayline.contracts.tools import RECALL, ToolReply
from wayline.journal import Job, words_of
from wayline.llm.tokens import BYTES_PER_TOKEN, width

JOB_IMAGES_MAX = 20
"""Images in one conversation, with those that the job itself was given; providers take larger ones only up to so many.

What a tool returns beyond it is named in words."""
JOB_IMAGES_MAX_BYTES = 8 * 1024 * 1024
"""Of all images that tools returned in one conversation: they are in memory while the job is held."""
RESULT_TOKENS_MAX = 4_000
"""Estimated; what a model is shown of one result, where nobody says otherwise."""
DEPTH_MAX = 12
"""Levels of nested JSON that are looked into; what lies deeper is shown as text."""
HEAD_SHARE = 0.7
"""How much of a long text's room is its beginning; the rest is its end."""
MARKER_BYTES = 80
"""Room for saying what was left out."""

_LADDER = ((2, 80), (4, 120), (8, 200), (15, 400), (30, 800), (60, 2_000))
"""Items of an array and bytes of a text that stay, more at each rung."""


def shown(job: Job, tool: str, reply: ToolReply, *, step: int, call: str, tokens_max: int) -> dict[str, Any]:
    """Return what the model is shown of a reply and what is kept beside it, as fields of `ToolCompleted`."""
    texts = _texts(job, tool, reply, step=step, call=call, tokens_max=tokens_max)
    fields = _framed(job, tool, texts, strangers=reply.strangers)
    if not reply.images:
        return fields
    images = _fitting(job, reply)
    content: str = fields["content"]
    # Where the words for an image were left out with the text around them.
    content += "".join(f"\n{image.note}" for image in images if image.note not in content)
    if len(images) < len(reply.images):
        most = f"a conversation holds at most {JOB_IMAGES_MAX} images and {JOB_IMAGES_MAX_BYTES} bytes of them"
        content += f"\n[Not shown: {len(reply.images) - len(images)} of {len(reply.images)} images; {most}]"
    return {**fields, "content": content, "images": images}


def _framed(job: Job, tool: str, fields: dict[str, Any], *, strangers: bool | None) -> dict[str, Any]:
    """Say before the words of strangers that they are data, where they enter the history: later no message changes.

    Whatever the status and the code: an error is as much a text of its tool as a result.
    """
    words = words_of(job.tools.definition(tool), strangers=strangers)
    if words is not None:
        fields = {**fields, "words": words}
    if words != "strangers":
        return fields
    error = fields["error"]
    if error is None:
        return {**fields, "content": framed(tool, fields["content"])}
    return {**fields, "error": error.model_copy(update={"message": framed(tool, error.message)})}


def _fitting(job: Job, reply: ToolReply) -> tuple[ToolImage, ...]:
    """Return the images of a reply for which the conversation has room."""
    held = [image for message in job.conversation.prompted if message.role == "tool" for image in message.images]
    held += [image for call in job.tools.calls if call.done for image in call.done.images]
    count = len(held) + sum(one.media_type in IMAGES for one in job.conversation.attachments)
    size = sum(image.size_bytes for image in held)
    fitting: list[ToolImage] = []
    for image in reply.images:
        if count < JOB_IMAGES_MAX and size + image.size_bytes <= JOB_IMAGES_MAX_BYTES:
            fitting.append(image)
            count, size = count + 1, size + image.size_bytes
    return tuple(fitting)


def _texts(job: Job, tool: str, reply: ToolReply, *, step: int, call: str, tokens_max: int) -> dict[str, Any]:
    error = reply.error
    text = reply.content if error is None else error.message
    # What nobody could read back stays whole, and so does what was read back.
    readable = job.tools.definition(RECALL) is not None and tool != RECALL
    how = recall_hint(job, step=step, call=call)
    short = condense(text, tokens_max=tokens_max, how=how) if readable else None
    if short is None:
        return {"content": reply.content, "error": error}
    if error is None:
        return {"content": short, "full": text, "error": None}
    return {"content": reply.content, "full": text, "error": error.model_copy(update={"message": short})}


def recall_hint(job: Job, *, step: int, call: str) -> str:
    """Return the call by which a model reads the whole of a shortened result."""
    # The next jobs of the session are shown it too, and have calls of the same numbers.
    in_session = job.life.submitted is not None and job.life.submitted.session_id is not None
    source = f'"job": "{job.job_id}", ' if in_session else ""
    return f'{RECALL} {{{source}"step": {step}, "call": "{call}"}}'


def condense(content: str, *, tokens_max: int, how: str) -> str | None:
    """Return the shorter form of a result above `tokens_max`, and how to read the rest; None: it is short enough.

    Deterministic: the same result is shown the same way by every executor.
    """
    raw = content.encode()
    wide = width(raw)
    tokens = -(-wide // BYTES_PER_TOKEN)
    if tokens <= tokens_max:
        return None
    ending = f"\n[Shortened from about {tokens} tokens, {len(content)} characters. {how} reads the rest.]"
    room = max(0, tokens_max * BYTES_PER_TOKEN * len(raw) // wide - len(ending.encode()))
    sampled = _json(content, room)
    return (cut(content, room) if sampled is None else sampled) + ending


def _json(content: str, room: int) -> str | None:
    """Return JSON with its arrays sampled and its texts cut, still JSON; None: it is none, or too large even so."""
    if content.lstrip()[:1] not in ("{", "["):
        return None
    best = None
    try:
        # Not orjson: it would show a number of more than 64 bits as another number.
        value = json.loads(content)
        # From the least upwards: what that takes depends on the room, not on the size of the result.
        for items, size in _LADDER:
            sampled = _dumped(_sampled(value, items, size, DEPTH_MAX))
            if len(sampled.encode()) > room:
                return best
            best = sampled
    except (ValueError, RecursionError):
        return None
    return best


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _sampled(value: Any, items: int, size: int, depth: int) -> Any:
    if isinstance(value, str):
        return cut(value, size)
    if not isinstance(value, list | dict):
        return value
    if depth == 0:
        return cut(_dumped(value), size)
    if isinstance(value, dict):
        return _object(value, items, size, depth)
    if len(value) <= items:
        return [_sampled(one, items, size, depth - 1) for one in value]
    # The last item too: lists are often in order, and it says where they end.
    *first, last = (_sampled(one, items, size, depth - 1) for one in (*value[: items - 1], value[-1]))
    return [*first, f"… {len(value) - items} of {len(value)} items left out …", last]


def _object(value: dict[str, Any], items: int, size: int, depth: int) -> dict[str, Any]:
    # A record of many fields says more than a list of as many items.
    names = list(value)[: 4 * items]
    sampled = {name: _sampled(value[name], items, size, depth - 1) for name in names}
    if len(names) < len(value):
        sampled["…"] = f"{len(value) - len(names)} of {len(value)} fields left out"
    return sampled


def cut(text: str, size: int) -> str:
    """Return the beginning and the end of a text in at most `size` bytes, and which characters are missing between."""
    raw = text.encode()
    if len(raw) <= size:
        return text
    room = max(0, size - MARKER_BYTES)
    head_room = int(room * HEAD_SHARE)
    tail_room = room - head_room
    head = _to_line_end(raw[:head_room].decode(errors="ignore"))
    tail = _to_line_end(raw[len(raw) - tail_room :].decode(errors="ignore")[::-1])[::-1] if tail_room else ""
    return f"{head}\n[… characters {len(head)} to {len(text) - len(tail)} left out …]\n{tail}"


def _to_line_end(text: str) -> str:
    """Drop the piece of a line at the end of a text, where that costs little."""
    at = text.rfind("\n") + 1
    return text[:at] if at > 0.8 * len(text) else text
