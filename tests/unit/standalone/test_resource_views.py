"""Resources and prompts of servers on a terminal, with what their servers wrote shown as it is."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from rich.console import Console, RenderableType
from typer.testing import CliRunner

from wayline.standalone.commands import mcp_resources
from wayline.standalone.terminal.server_views import contents, messages, prompts_table, resources_table

ABOUT = {"name": "n", "title": "", "description": "Of [the] sea.", "mime_type": "text/plain"}


def drawn(what: RenderableType) -> str:
    console = Console(file=StringIO(), width=200)
    console.print(what)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_resources_and_templates_are_rows_of_one_table():
    page = {"resources": [{"uri": "note://tides", **ABOUT}], "templates": [{"uri_template": "pixel://{name}", **ABOUT}]}

    text = drawn(resources_table(page))

    assert "note://tides" in text and "pixel://{name}" in text and "Of [the] sea." in text


def test_texts_are_shown_whole_and_bytes_by_their_size():
    parts = [
        {"uri": "note://tides", "mime_type": "", "text": "High [bold]at[/bold] noon.", "base64": None},
        {"uri": "pixel://red", "mime_type": "image/png", "text": None, "base64": "cmVk"},
    ]

    text = drawn(contents({"contents": parts}))

    assert "High [bold]at[/bold] noon." in text
    assert "pixel://red: image/png, 4 characters of base64" in text


def test_an_argument_that_may_be_left_out_is_in_brackets():
    arguments = [{"name": "length", "required": True}, {"name": "tone", "required": False}]

    text = drawn(prompts_table({"prompts": [{**ABOUT, "arguments": arguments}]}))

    assert "length [tone]" in text


def test_messages_of_a_prompt_are_shown_with_their_roles():
    page = {"messages": [{"role": "user", "content": {"type": "text", "text": "Sum [it] up."}}]}

    assert "user: Sum [it] up." in drawn(messages(page))


HOSTILE = "High\x1b]0;title\x07 at noon.\n"


@pytest.mark.parametrize(
    ("words", "page"),
    [
        (["read", "files", "note://tides"], {"contents": [{"uri": "", "mime_type": "", "text": HOSTILE}]}),
        (["prompts", "files", "sum"], {"messages": [{"role": "user", "content": {"text": HOSTILE}}]}),
    ],
)
def test_a_terminal_is_sent_no_control_characters_of_a_server(words: list[str], page: dict[str, Any], monkeypatch):
    drawn_pages: list[str] = []

    def answer(work: Any, *, as_json: bool, draw: Any) -> None:
        drawn_pages.append(drawn(draw(page)))

    monkeypatch.setattr(mcp_resources, "answer", answer)
    for is_terminal in (True, False):
        monkeypatch.setattr(mcp_resources, "_is_terminal", lambda is_terminal=is_terminal: is_terminal)
        CliRunner().invoke(mcp_resources.app, words)

    on_terminal, in_file = drawn_pages
    assert "\x1b" not in on_terminal and "High\\u001b]0;title\\u0007 at noon." in on_terminal
    assert "High\x1b]0;title" in in_file
