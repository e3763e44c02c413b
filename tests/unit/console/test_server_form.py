"""An MCP server as a form: what it holds reads back as the configuration that it was made of."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.datastructures import FormData

from wayline.console.pages.tools.server_form import MASK, ServerForm, WrongServer, of_config, written

PROGRAM: dict[str, Any] = {
    **{"url": None, "sse": False, "headers": {}, "oauth": None, "command": "npx", "args": ["-y", "x@1"]},
    **{"env": {"TOKEN": MASK}, "limits": {"memory_mb": 128}, "hosts": ["api.example.com"], "effects": {"pay": "once"}},
    **{"trusted": True, "ask": "writes", "untrusted": False, "timeout_s": 30.0, "in_order": True},
    **{"reconcile_tool": None, "tools": {"pay": {"in_order": True}}},
}
ADDRESS: dict[str, Any] = {
    **{"url": "https://bank.example/mcp", "sse": True, "headers": {"X-Key": MASK}, "command": None, "args": []},
    "oauth": {"credentials": "user", "client_id": "c", "client_secret": MASK, "issuer": "https://a", "scope": None},
    **{"env": {}, "effects": {}, "trusted": False, "ask": "never", "untrusted": None, "timeout_s": 60.0},
}


def sent(form: ServerForm) -> ServerForm:
    """What a browser sends of the form when nobody has touched it."""
    items = [(name, getattr(form, name).replace("\n", "\r\n")) for name in ("args", "hosts")]
    items += [
        (name, getattr(form, name))
        for name in (
            *("name", "transport", "command", "url", "credentials", "client_id", "client_secret", "issuer", "scope"),
            *("ask", "untrusted", "timeout_s"),
        )
    ]
    items += [(name, "on") for name in ("oauth", "trusted") if getattr(form, name)]
    for name, rows in (("env", form.env_rows), ("header", form.header_rows)):
        items += [part for key, value in rows for part in ((f"{name}-name", key), (f"{name}-value", value))]
    items += [(f"effect:{tool}", effect) for tool, effect in form.effects.items()]
    return written(FormData(items))


@pytest.mark.parametrize("config", [PROGRAM, ADDRESS], ids=["program", "address"])
def test_an_untouched_form_saves_what_is_saved(config: dict[str, Any]):
    found = sent(of_config("bank", config)).config(config)

    wanted = {name: value for name, value in config.items() if value not in (None, False, {}, [])}
    wanted |= {"trusted": config["trusted"]}
    wanted |= {} if config["untrusted"] is None else {"untrusted": config["untrusted"]}
    if config["oauth"]:
        wanted["oauth"] = {name: value for name, value in config["oauth"].items() if value}
    assert found == wanted


def test_the_other_transports_fields_are_left_out():
    form = ServerForm("bank", "http", command="npx", args="-y", env=(("A", "1"),), url="https://bank.example")

    assert form.config() == {"url": "https://bank.example", "ask": "never", "trusted": False}


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r"), min_size=1, max_size=12), max_size=5))
def test_arguments_read_back_as_they_were(args: list[str]):
    form = sent(of_config("bank", {"command": "npx", "args": args}))

    assert form.config().get("args", []) == args


@pytest.mark.parametrize(
    ("form", "why"),
    [
        (ServerForm("bank"), "which program"),
        (ServerForm("bank", "http"), "which URL"),
        (ServerForm("bank", command="npx", args="[1]"), "JSON array"),
        (ServerForm("bank", command="npx", timeout_s="long"), "no number"),
    ],
)
def test_what_no_configuration_holds_is_said(form: ServerForm, why: str):
    with pytest.raises(WrongServer, match=why):
        form.config()


def test_a_row_without_a_name_is_left_out():
    form = written(FormData([("env-name", ""), ("env-value", "lost"), ("env-name", "A"), ("env-value", " 1 ")]))

    assert form.env == (("A", " 1 "),)
