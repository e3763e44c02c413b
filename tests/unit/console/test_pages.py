"""Pages and regions keep to the policy that browsers are told: nothing in a template needs more."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest
from starlette.routing import Match

from wayline.console.access.guard import POLICY
from wayline.console.app import create_app
from wayline.console.render.environment import static_address
from wayline.console.settings import Settings
from wayline.console.static_files import _names

ROOT = Path(str(files("wayline.console")))
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
SCRIPTS = sorted((ROOT / "static").glob("*.js"))
OWN_SCRIPTS_MAX_BYTES = 12 * 1024
OF_ONE_PAGE_MAX_BYTES = {"upload.js": 5_100, "drop.js": 1_000, "later.js": 1_600}
"""Scripts that one or two pages alone load."""


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
@pytest.mark.parametrize(
    "needs",
    [
        r"\shx-on",
        r"\son\w+\s*=",
        r"=\s*[\"']\s*js:",
        r"hx-trigger=[\"'][^\"']*\[",
        r"\sstyle\s*=",
        r"javascript:",
        r"<style",
        r"<script(?![^>]*src=)",
        r"https?://(?!www\.w3\.org)[a-z]",
    ],
)
def test_no_template_has_what_the_policy_forbids(template: Path, needs: str):
    assert re.findall(needs, template.read_text()) == []


def test_the_policy_lets_no_page_reach_elsewhere():
    assert set(re.findall(r"'[a-z-]+'|https?:|\*", POLICY)) == {"'none'", "'self'"}


def test_own_scripts_are_small_and_compile_no_code():
    text = "".join(path.read_text() for path in SCRIPTS)
    pages = {path.name: path.stat().st_size for path in SCRIPTS if path.name in OF_ONE_PAGE_MAX_BYTES}

    assert len(text.encode()) - sum(pages.values()) < OWN_SCRIPTS_MAX_BYTES
    assert [name for name, size in pages.items() if size > OF_ONE_PAGE_MAX_BYTES[name]] == []
    assert re.findall(r"\beval\(|new Function|innerHTML|setTimeout\(['\"]|document\.write", text) == []


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_every_form_that_changes_something_has_its_token(template: Path):
    forms = re.findall(r"<form method=\"post\"(.*?)</form>", template.read_text(), re.DOTALL)

    assert [
        form for form in forms if "c.token(" not in form and "token(frame.token)" not in form and "/sign-in" not in form
    ] == []


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_what_is_wider_than_its_place_is_reached_by_keys(template: Path):
    assert [code for code in re.findall(r"<pre[^>]*>", template.read_text()) if "tabindex" not in code] == []


DECIDES = re.compile(r'<button[^>]*(?:name="(?:decision|label)" value="\w|formaction=|name="propose")')


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_enter_in_a_field_decides_nothing(template: Path):
    forms = re.findall(r"<form\b.*?</form>", template.read_text(), re.DOTALL)
    typed = [form for form in forms if DECIDES.search(form) and re.search(r"<input (?!type=\"hidden)|f\.text", form)]
    firsts = [re.search(r"no_default\(\)|<button[^>]*>", form) for form in typed]

    assert [first[0] for first in firsts if first and DECIDES.match(first[0])] == []


APP = create_app(Settings())
OF_METHOD = {"href": "GET", "hx-get": "GET", "hx-post": "POST", "action": ""}


def leads_somewhere(address: str, method: str) -> bool:
    scope = {"type": "http", "path": address, "root_path": "", "method": method}
    found = {route.matches(scope)[0] for route in APP.routes}
    return Match.FULL in found or (not method and Match.PARTIAL in found)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_every_link_leads_to_a_page(template: Path):
    text = re.sub(r"\{%.*?%\}|\{\{ part \}\}", "", template.read_text())
    filled = re.sub(r"\{\{.*?\}\}", "x", re.sub(r"\{\{ '([a-z]+)' if .*?\}\}", r"\1", text))
    found = re.findall(r'\s(href|action|hx-get|hx-post)="(/[^"]*)"', filled)
    wrong = [address for kind, address in found if not leads_somewhere(re.split("[?#]", address)[0], OF_METHOD[kind])]

    assert wrong == []


def test_every_file_has_an_address_with_its_hash():
    assert {"charts.js", "vendor/uplot-1.6.32.min.css", "vendor/uplot-1.6.32.min.js"} <= _names()
    assert {"console.css", "live.js", "keys.js", "vendor/htmx-4.0.1.min.js"} <= _names()
    assert re.fullmatch(r"/static/[0-9a-f]{12}/console\.css", static_address("console.css"))
