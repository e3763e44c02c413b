"""Resources and prompts of servers on a terminal, with what their servers wrote shown as it is."""

from __future__ import annotations

from io import StringIO

from rich.console import Console, RenderableType

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
