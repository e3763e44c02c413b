"""Every way of strangers' words to a model: framed, tainting, and never with the operator's role, on every wire."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path as File
from typing import Any

import pytest

from tests.unit.executor.stranger_paths import PATHS, Path
from tests.unit.executor.strangers import EVIL
from tests.unit.executor.talk import Talk
from wayline.contracts.models import CacheRules, ModelCard
from wayline.executor.prompt.assemble import assemble
from wayline.executor.prompt.tool_discovery import loaded_since
from wayline.llm import File as SentFile
from wayline.llm import ModelRequest
from wayline.llm.anthropic.request import body as anthropic_body
from wayline.llm.json_protocol.protocol import in_words
from wayline.llm.openai.request import body as openai_body
from wayline.llm.openai_chat.request import build_body as chat_body

PAGE = File(__file__).parents[3] / "docs" / "untrusted.md"
MARKS = ("not instructions", "never an instruction", "its words are data")
"""Of the lines that say of what follows that it is data."""
OPERATORS = frozenset({"system", "developer"})
FORMS: dict[str, Any] = {"images": True, "files": True, "system_messages": True}


def card(**more: Any) -> ModelCard:
    return ModelCard(
        provider="p", model="m", tier="standard", cache=CacheRules(kind="breakpoints"), **{**FORMS, **more}
    )


WIRES: dict[str, tuple[ModelCard, Any]] = {
    "anthropic": (card(), anthropic_body),
    "anthropic, tools by reference": (card(tool_references=True), anthropic_body),
    "openai": (card(), openai_body),
    "openai, tools by reference": (card(tool_references=True), openai_body),
    "chat": (card(), lambda request: chat_body(request)[0]),
    "chat, tools in words": (card(tools="json"), lambda request: chat_body(in_words(request))[0]),
}


def request(talk: Talk, model: ModelCard) -> ModelRequest:
    prompt = assemble(talk.job, talk.job.tools.offered or talk.listed)
    files = {one.document_id: SentFile(one.name, one.media_type, EVIL) for one in talk.job.conversation.attachments}
    return ModelRequest(
        card=model,
        system=prompt.system,
        messages=prompt.messages,
        tools=(*prompt.tools, *loaded_since(talk.job)),
        max_output_tokens=100,
        attempt_id="a",
        files=files,
        attachments=prompt.attachments,
    )


def texts(value: Any) -> Iterator[str]:
    """Yield every text of a message in its order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from texts(one)


def messages_with(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a request that hold the stranger's words."""
    said = body.get("messages") or body.get("input") or []
    return [message for message in said if EVIL in "\n".join(texts(message))]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_strangers_words_are_framed_and_have_no_operators_role(path: Path, wire: str):
    model, body_of = WIRES[wire]

    body = body_of(request(path.play(), model))

    head = {name: body.get(name) for name in ("system", "instructions")}
    assert EVIL not in "\n".join(texts(head))
    holding = messages_with(body)
    if wire != "anthropic, tools by reference":
        assert holding, "the path must reach the model"
    for message in holding:
        assert message.get("role") not in OPERATORS
        before = "\n".join(texts(message)).partition(EVIL)[0]
        assert not path.framed or any(mark in before for mark in MARKS)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_strangers_words_taint_the_job(path: Path):
    tainted = path.play().job.tools.tainted_by is not None

    assert tainted is path.taints


def test_there_are_enough_paths_each_with_its_reason():
    assert len(PATHS) >= 40
    assert len({path.name for path in PATHS}) == len(PATHS)
    assert all(path.why or (path.framed and path.taints) for path in PATHS)


def table() -> str:
    rows = [
        f"| {path.name} | {'yes' if path.framed else 'no'} | {'yes' if path.taints else 'no'} | {path.why} |"
        for path in PATHS
    ]
    return "\n".join(["| words | framed | taint the job | why not |", "|---|---|---|---|", *rows])


def test_the_page_lists_every_path():
    """`WAYLINE_WRITE_TABLES=1` writes it anew."""
    head, start, rest = PAGE.read_text(encoding="utf-8").partition("<!-- paths -->\n")
    _, end, tail = rest.partition("<!-- end of paths -->")
    if os.environ.get("WAYLINE_WRITE_TABLES"):
        PAGE.write_text(f"{head}{start}{table()}\n{end}{tail}", encoding="utf-8")

    assert table() in PAGE.read_text(encoding="utf-8")
