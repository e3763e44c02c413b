"""The pages of MCP servers, as the API's answers make them: states, differences, impact, secrets masked."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import pytest

from wayline.console.pages.frame import Frame
from wayline.console.pages.tools.argument_form import PREFIX
from wayline.console.pages.tools.catalogue import TABS
from wayline.console.pages.tools.edit_server import EditServer, Import
from wayline.console.pages.tools.secrets import Secrets
from wayline.console.pages.tools.server_form import EFFECTS, TRANSPORTS, ServerForm, of_config
from wayline.console.pages.tools.server_offers import ServerOffers
from wayline.console.pages.tools.servers import STATES, OneServer, Servers
from wayline.console.render.environment import Templates

AT = "2026-05-01T10:00:00Z"
PAYLOAD = '"><img src=x onerror=alert(1)><script>alert(2)</script></textarea>\u202e\x1b[2J'
Json = dict[str, Any]


def change(words: str) -> Json:
    place = {"path": f"/{words}", "before": words, "after": None}
    return {"tool": words, "kind": "changed", "sha256": "a" * 64, "since": AT, "differences": [place]}


def server(words: str = "said", **fields: Any) -> Json:
    config = {"url": words, "headers": {"X-Key": "**********"}, "oauth": {"credentials": "user"}, "command": None}
    return {
        **{"name": "bank", "of": "tenant", "enabled": True, "state": "connected", "why": words, "tools": 2},
        **{"left_out": 1, "problems": [words], "quarantined": 1, "changes": [change(words)], "config": config},
        **{"saved_at": AT, "warnings": [], "service": None, "advice": words},
        "undeclared": [{"name": words, "proposed": None}],
        **fields,
    }


def report(words: str = "said", *, ok: bool = True) -> Json:
    tool = {"name": words, "description": words, "effect": "once", "proposed": "read", "tokens": 41}
    return {
        **{"ok": ok, "why": words, "errors": words, "server": words, "version": words, "protocol": words},
        **{"instructions": words, "tools": [tool], "problems": [words], "took_ms": 4.0, "sha256": "a" * 64},
        "counts": {"tools": 1, "resources": 0, "prompts": 0},
    }


def impact(words: str = "said") -> Json:
    tool = {"tool": words, "change": "changed", "calls": 5, "would_fail": 2, "unchecked": 0, "unusable": words}
    return {
        **{"name": "bank", "since": AT, "tools": [tool, {**tool, "change": "unchanged"}], "agents_total": 40},
        **{"agents": [{"name": words, "version": 1}], "parked_total": 1, "calls": 5, "jobs": 3, "would_fail": 2},
        **{"parked": [{"job_id": words}], "unchecked": 1},
        "failing": [{"job_id": words, "step": 1, "call": "1", "tool": words, "why": words}],
    }


def render(template: str, *scopes: str, **values: Any) -> str:
    me = {"tenant": "acme", "name": "ann", "scopes": list(scopes), "open": False, "version": "1"}
    frame = Frame("Servers", "/tools", me, "token", "system", "/tools", now=datetime(2026, 5, 1, 12, tzinfo=UTC))
    return Templates().render(f"tools/{template}.html", frame=frame, scope="admin", **values).decode()


def one(page: OneServer, *scopes: str) -> str:
    return render("one_server", *(scopes or ("admin", "write")), page=page, states=STATES)


def edit(page: EditServer, *scopes: str) -> str:
    more = {"transports": TRANSPORTS, "effect_names": EFFECTS}
    return render("edit_server", *(scopes or ("admin",)), page=page, **more)


def listed(*rows: Json) -> str:
    return render("servers", "admin", page=Servers(list(rows)), tabs=TABS, states=STATES)


def test_a_list_shows_states_and_what_waits():
    assert "needs authorization" in listed(server(state="needs_authorization"))
    assert "a service on the bus" in listed(server(service={"version": "1", "instances": 1, "last_seen": AT}))
    assert 'class="empty"' in listed()


def test_changed_definitions_show_what_approving_them_breaks():
    shown = one(OneServer(server(), impact()))

    assert f'name="sha256" value="{"a" * 64}" checked' in shown and "<del>said</del>" in shown
    assert "2 would fail" in shown and "What approving them would touch" in shown and "and 10 more" in shown


def test_only_ones_own_server_can_be_changed():
    own = one(OneServer(server()))
    installed = one(OneServer(server(of="installation", config=None, changes=[])))

    assert "/bank/remove" in own and "/bank/edit" in own
    assert "/bank/remove" not in installed and "/bank/edit" not in installed


def test_a_server_that_connects_can_be_looked_at_again():
    assert '<a href="/tools/servers/bank">Look again</a>' in one(OneServer(server(state="connecting")))
    assert "Look again" not in one(OneServer(server()))


def test_a_login_that_was_begun_goes_on_at_a_link():
    shown = one(OneServer(server(), logins=[], login_url="https://wayline.example/v1/mcp/oauth/start?state=s"))

    assert 'href="https://wayline.example/v1/mcp/oauth/start?state=s"' in shown and "Nobody is logged in" in shown


def test_a_key_that_may_write_may_forget_a_users_login():
    logins = [{"user_id": "ann", "logged_in_at": AT, "refused": False}]
    shown = one(OneServer(server(), logins=logins), "read", "write")

    assert 'name="user_id" value="ann"><button>Forget</button>' in shown
    assert shown.count("lacks the scope admin") == one(OneServer(server(), logins=[]), "read").count("the scope admin")


@pytest.mark.parametrize(
    "shown",
    [
        one(OneServer(server()), "read"),
        edit(EditServer(ServerForm()), "read"),
        render("import_servers", "read", page=Import()),
        render("secrets", "read", page=Secrets([]), tabs=TABS),
    ],
    ids=["server", "form", "import", "secrets"],
)
def test_what_a_key_may_not_do_is_disabled(shown: str):
    main = shown[shown.index("<main") : shown.index("</main>")]
    buttons = [found for found in re.findall(r"<button([^>]*)>", main) if 'value="rows"' not in found]

    assert buttons and all("disabled title=" in found for found in buttons)


def test_a_form_shows_no_saved_secret():
    config = {"url": "https://a", "headers": {"X-Key": "**********"}, "oauth": {"client_secret": "**********"}}
    shown = edit(EditServer(of_config("bank", config), is_new=False, tag='"t"'))

    assert shown.count('value="**********"') == 2 and 'value="&#34;t&#34;"' in shown


def test_a_test_shows_tools_with_their_tokens_or_why_it_failed():
    found = edit(EditServer(ServerForm("bank", command="npx", args="-y\nx y"), report=report(), impact=impact()))
    failed = edit(EditServer(ServerForm("bank"), report=report(ok=False)))

    assert "about 41 tokens" in found and "not declared, it proposes read" in found
    assert re.search(r"this program runs: <code[^>]*>npx -y x y <", found) and "What saving it would touch" in found
    assert "It cannot be connected to" in failed and "error stream" in failed


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.handlers: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


def offers(words: str) -> str:
    resource = {"uri": words, "name": words, "title": "", "description": words, "mime_type": words, "size_bytes": 3}
    template = {"uri_template": words, "description": words}
    argument = {"name": words, "description": words, "required": True}
    page = ServerOffers(
        "bank",
        {"resources": [resource], "templates": [template]},
        {"prompts": [{"name": words, "title": "", "description": words, "arguments": [argument]}]},
        (words,),
        words,
        [{"uri": words, "mime_type": words, "text": words, "base64": None}],
        words,
        {words: "mine"},
        {"messages": [{"role": "user", "content": {"text": words}}, {"role": "user", "content": {"x": words}}]},
        words,
    )
    return render("server_offers", "write", page=page, prefix=PREFIX)


def imported(words: str) -> str:
    row = {
        **{"name": "bank", "given": words, "saved": False, "problem": words, "exists": True, "disabled": True},
        **{"warnings": [words], "dropped": [words], "config": {"command": words, "args": [words]}},
    }
    return render("import_servers", "admin", page=Import("{}", report={"dry_run": True, "saved": 0, "servers": [row]}))


def everything(words: str) -> str:
    logins = [{"user_id": words, "logged_in_at": AT, "refused": True}]
    form = ServerForm("bank", command=words, args=words, effects={words: "once"})
    pages = (
        one(OneServer(server(words), impact(words), words, report(words, ok=False), logins, problem=words)),
        edit(EditServer(form, report=report(words), impact=impact(words), problem=words, told=words)),
        listed(server(words)),
        offers(words),
        imported(words),
        render("secrets", "admin", page=Secrets([{"name": words, "used_by": [words], "saved_at": AT}]), tabs=TABS),
    )
    return "".join(pages)


def test_strangers_words_change_no_page_of_servers():
    found = _Tags(everything(PAYLOAD))

    assert (found.found, found.handlers) == (_Tags(everything("said")).found, [])
    # What a field sends back, nobody sees; what is edited, its reader wrote.
    shown = re.sub(r'(name|value)="[^"]*"|<textarea.*?</textarea>', "", everything(PAYLOAD), flags=re.DOTALL)
    assert "\x1b" not in shown and "\u202e" not in shown
