"""Fields of forms, the page that asks once more, and the navigation around both."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from starlette.datastructures import FormData

from wayline.console.pages.confirm import TEMPLATE, Confirmation, fields_of, is_confirmed
from wayline.console.pages.frame import SECTIONS, Frame
from wayline.console.render.environment import Templates

ME = {"tenant": "acme", "name": "ann", "scopes": ["read"], "open": False, "version": "1"}
FRAME = Frame("Confirm", "/agents", ME, "token", "system", "/agents", now=datetime(2026, 5, 1, tzinfo=UTC))
PAYLOAD = '"><script>alert(1)</script>'


def field(macro: str, *args: Any, **more: Any) -> str:
    environment = Templates()._environment
    return str(getattr(environment.globals["f"], macro)(*args, **more))


def test_a_refused_field_names_its_help_and_its_error():
    html = field("text", "name", "Name", "a b", help="No spaces.", error="This has one.", maxlength="64")

    assert 'aria-describedby="help-name error-name" aria-invalid="true" maxlength="64"' in html
    assert 'id="error-name">This has one.' in html and 'for="f-name"' in html


def test_an_own_value_can_be_given_back_for_the_inherited():
    inherited = {"value": "5", "source": "the tenant's settings"}
    own = field("text", "steps", "Steps", "7", inherited={**inherited, "own": True})
    empty = field("text", "steps", "Steps", "", inherited={**inherited, "own": False})

    assert 'name="inherit" value="steps"' in own and "Go back to 5" in own
    assert 'name="inherit"' not in empty and "Left empty: 5, from the tenant&#39;s settings." in empty


def test_no_field_runs_what_a_value_says():
    inherited = {"value": PAYLOAD, "source": "x", "own": False}
    made = [
        field("text", "a", "A", PAYLOAD, error=PAYLOAD, inherited=inherited, placeholder=PAYLOAD),
        field("area", "a", "A", f"</textarea>{PAYLOAD}"),
        field("select", "a", "A", [(PAYLOAD, PAYLOAD)], PAYLOAD),
        field("inheriting_switch", "a", "A", "", inherited),
        field("pick", "a", "A", [(PAYLOAD, PAYLOAD, PAYLOAD)], PAYLOAD),
        field("slider", "a", "A", PAYLOAD, 1, 10),
    ]

    assert not [html for html in made if "<script" in html]


def test_the_page_that_asks_sends_the_form_again_with_its_consent():
    sent = FormData([("token", "t"), ("names", "a"), ("names", PAYLOAD), ("confirmed", "")])
    page = Confirmation(
        "Delete two?", "Delete them", "/agents/delete", "/agents", fields=fields_of(sent), listed=("a",)
    )
    html = Templates().render(TEMPLATE, page=page, frame=FRAME).decode()

    assert re.findall(r'name="names" value="([^"]*)"', html)[0] == "a"
    assert '<input type="hidden" name="confirmed" value="1">' in html and "<script>alert" not in html
    assert "the scope write" in html and 'href="/agents" autofocus' in html
    assert (is_confirmed(sent), is_confirmed(FormData([("confirmed", "1")]))) == (False, True)


def test_every_page_in_the_menu_has_its_own_key():
    keys = [key for group in SECTIONS for _, _, key in group]
    html = Templates().render(TEMPLATE, page=Confirmation("?", "Do", "/a", "/"), frame=FRAME).decode()

    assert len(keys) == len(set(keys)) == 13
    assert html.count('href="/agents" data-go="g" aria-current="page"') == 2
    assert '<details class="menu">' in html
