"""The catalogue and the page of one tool, as the API's answers make them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import pytest

from wayline.console.pages.frame import Frame
from wayline.console.pages.tools.argument_form import arguments_of
from wayline.console.pages.tools.catalogue import DAYS, EFFECTS, TABS, Catalogue
from wayline.console.pages.tools.one_tool import OneTool, Trial, arguments_to_send
from wayline.console.render.environment import Templates

PAYLOAD = '"><img src=x onerror=alert(1)><script>alert(2)</script></textarea>\u202e\x1b[2J'
TOOL: dict[str, Any] = {
    **{"name": "bank__pay", "description": "Pay a bill.", "effect": "once", "server": "bank", "ask": "never"},
    **{"input_schema": {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}},
    **{"timeout_s": 60.0, "untrusted": True, "in_order": False, "charge": None},
}
VIEW: dict[str, Any] = {
    **{"definition": TOOL, "agents_total": 120, "agents": [{"name": "banker", "version": 3}], "days": 30},
    **{"figures": {"calls": 12, "jobs": 4, "failed": {"timeout": 2}, "p50_ms": 12.0, "p95_ms": 1_500.0}},
    **{"cost_usd": "0.25", "calls_unknown": 1},
}
RESULT: dict[str, Any] = {
    **{"status": "success", "tool": "bank__pay", "effect": "once", "text": "paid", "content": [], "structured": None},
    **{"images": [], "citations": [], "error": None, "untrusted": True, "cost_usd": None, "repeated": False},
    "duration_ms": 8.0,
}


def frame_of(*scopes: str) -> Frame:
    me = {"tenant": "acme", "name": "ann", "scopes": list(scopes), "open": False, "version": "1"}
    return Frame("Tools", "/tools", me, "token", "system", "/tools", now=datetime(2026, 5, 1, tzinfo=UTC))


def listed(page: Catalogue, agents: tuple[str, ...] = ("banker",)) -> str:
    values = {"agents": agents, "tabs": TABS, "effects": EFFECTS, "days": DAYS}
    return Templates().render("tools/catalogue.html", page=page, frame=frame_of("read"), **values).decode()


def one(
    tool: dict[str, Any] | None = None, *, trial: Trial | None = None, scopes: tuple[str, ...] = ("tools", "write")
) -> str:
    view = {**VIEW, "definition": {**TOOL, **(tool or {})}}
    page = OneTool(view, trial or Trial("key"), arguments_of(view["definition"]["input_schema"]))
    values = {"page": page, "effects": EFFECTS, "days": DAYS}
    return Templates().render("tools/one_tool.html", frame=frame_of(*scopes), **values).decode()


def test_the_catalogue_shows_calls_failures_times_and_dollars():
    figures = {"bank__pay": {"tool": "bank__pay", "calls": 1_200, "failed": 7, "p50_ms": 1.0, "p95_ms": 2_500.0}}
    shown = listed(Catalogue([TOOL], figures=figures, costs={"bank__pay": {"cost_usd": "1.5"}}))

    assert all(text in shown for text in ("1,200", "2.5 s", "$1.50", 'class="number failed-text">7<', "/tools/named/"))


def test_the_catalogue_is_shown_without_figures():
    assert "/tools/named/bank__pay" in listed(Catalogue([TOOL]))
    assert 'class="empty"' in listed(Catalogue([]))


def test_calls_that_nobody_knows_are_not_shown_as_none():
    none, unknown = (listed(Catalogue([TOOL], figures=figures)) for figures in ({}, None))

    assert ">0</td>" in none and ">0</td>" not in unknown and "how many calls there were is not known" in unknown


def test_servers_that_are_away_are_one_notice():
    away = [{"name": f"s{n}", "why": f"refused {n}", "known": n == 1} for n in range(12)]

    assert "s0</a> is away: refused 0.</p>" in listed(Catalogue([], away=away[:1]))
    many = listed(Catalogue([], away=away))
    assert many.count('class="problem"') == 1 and "12 servers are away: " in many
    assert many.count('title="refused ') == 12 and "Tools that they had are listed as they were." in many


def test_a_search_names_what_the_agent_may_not_use():
    found = {
        **{"tools": [{"tool": TOOL, "score": 0.5}], "disabled": ["wire"], "searched": 9, "cost_usd": None},
        "unusable": [{"name": "web_search", "why": "is not configured", "how": "Set its key."}],
    }
    shown = listed(Catalogue([TOOL], query="send money", agent="banker", found=found))

    assert "banker may not use them" in shown and "Set its key." in shown and "score 0.50" in shown


def test_a_tool_shows_its_users_and_how_its_calls_went():
    shown = one()

    assert all(text in shown for text in ("1.5 s", "timeout", "and 119 more", "/agents/banker", "1 calls of unknown"))


def test_a_tool_that_acts_warns_and_wants_a_word():
    assert "This is a real call" in one() and 'name="acts"' in one()
    assert "This is a real call" not in one({"effect": "read"}) and 'name="acts"' not in one({"effect": "read"})


@pytest.mark.parametrize(
    ("scopes", "effect", "title"),
    [
        (("read",), "read", "Your key lacks the scope tools."),
        (("read",), "once", "Your key lacks the scope tools and write."),
        (("tools",), "once", "Your key lacks the scope write."),
    ],
)
def test_a_call_is_disabled_with_the_scope_that_a_key_lacks(scopes: tuple[str, ...], effect: str, title: str):
    assert f'disabled title="{title}"' in one({"effect": effect}, scopes=scopes)
    assert "disabled" not in one({"effect": effect})


@pytest.mark.parametrize("tool", [{"ask": "always"}, {"ask": "writes"}, {"name": "run_agent"}])
def test_a_tool_that_only_jobs_may_call_has_no_form(tool: dict[str, Any]):
    assert "/call" not in one(tool)


def test_a_result_is_shown_as_what_became_of_the_call():
    failed = {**RESULT, "status": "failed", "error": {"code": "timeout", "message": "too slow"}, "text": ""}

    assert "paid" in one(trial=Trial("k", result=RESULT)) and "words of strangers" in one()
    assert "timeout: too slow" in one(trial=Trial("k", result=failed))
    assert "send the same form again" in one(trial=Trial("k", result={**RESULT, "status": "in_progress"}))


def test_a_free_schema_is_called_with_json():
    trial = Trial("k", {"argument:a": "1"}, '{"b": 2}')

    assert arguments_to_send(trial, None) == {"b": 2}
    assert 'id="as-fields"' not in one({"input_schema": {"type": "object"}})


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.handlers: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


def _with(words: str) -> str:
    schema = {
        "properties": {
            words: {"type": "string", "description": words, "default": words},
            f"{words}2": {"enum": [words]},
        },
        "required": [words],
    }
    tool = {"name": "n", "description": words, "server": words, "input_schema": schema}
    result = {**RESULT, "text": words, "structured": {words: words}, "content": [{"text": words}]}
    result |= {"error": {"code": words, "message": words}, "citations": [{"quote": words}]}
    values = {f"argument:{words}": "mine"}
    return one(tool, trial=Trial("k", values, "{}", result=result, problem=words)) + listed(
        Catalogue([{**TOOL, **tool}], server=words, away=[{"name": words, "why": words, "known": True}]), (words,)
    )


def test_strangers_words_change_no_page_of_tools():
    found = _Tags(_with(PAYLOAD))

    assert (found.found, found.handlers) == (_Tags(_with("said")).found, [])
    # What a field sends back, nobody sees.
    shown = re.sub(r'(name|value)="[^"]*"', "", _with(PAYLOAD))
    assert "\x1b" not in shown and "\u202e" not in shown
