"""What a browser is shown of a login to an MCP server, and the cookie by which it is known when it comes back."""

from __future__ import annotations

from hashlib import sha256
from html import escape
from importlib.resources import files
from secrets import token_urlsafe
from string import Template
from typing import Final

from fastapi.responses import HTMLResponse, Response

from wayline.contracts.server_logins import LoginView

COOKIE_S: Final = 600
"""As long as a login may take."""
NAME_CHARS: Final = 16
"""Of a state's hash in the name of its cookie: logins beside each other have cookies of their own."""
HEADERS: Final = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    # No page lays itself over the button. `form-action` is left out: browsers also hold redirects after a form to it,
    # and an authorization server may lead on to any other.
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
}


def start_page(login: LoginView, *, tenant: str, path: str, state: str, browser: str) -> HTMLResponse:
    """Return the page that says whose access goes where, with the button that goes on."""
    whose = f"user {login.user_id} of tenant {tenant}" if login.user_id else f"every user of tenant {tenant}"
    user = _row("User", login.user_id) if login.user_id else _row("User", "all of the tenant")
    at = escape(login.authorization_server)
    return _page(
        f"Log in to {login.name}",
        f"<dl>{_row('MCP server', login.name)}{_row('Tenant', tenant)}{user}"
        f"{_row('You log in at', login.authorization_server)}</dl>"
        f"<p>Jobs for {escape(whose)} will use the access that you give at {at}.</p>"
        "<p><strong>Go on only if you began this login yourself.</strong> If another person sent you this link, close "
        "this page: that person would use your account.</p>"
        f'<form method="post" action="{escape(path)}"><input type="hidden" name="state" value="{escape(state)}">'
        f'<input type="hidden" name="browser" value="{escape(browser)}">'
        f"<button>Continue to {at}</button></form>",
    )


def done_page(server: str, *, tenant: str, user_id: str | None) -> HTMLResponse:
    """Return the page that says who is logged in."""
    who = f"User {user_id} of tenant {tenant}" if user_id else f"Tenant {tenant}"
    said = f"{who} is logged in to the MCP server {server}. You can close this page."
    return _page("Logged in", f"<p>{escape(said)}</p>")


def refusal_page(detail: str, *, status: int) -> HTMLResponse:
    """Return the page that says why a login cannot go on."""
    return _page("This login cannot go on", f"<p>{escape(detail[:1].upper() + detail[1:])}.</p>", status=status)


def new_browser() -> str:
    """Return a secret for one browser."""
    return token_urlsafe(32)


def cookie_of(state: str, *, at: str) -> str:
    """Return the name of a login's cookie, which no other host can set where browsers reach us over TLS."""
    prefix = "__Host-" if _is_tls(at) else ""
    return f"{prefix}wayline-login-{sha256(state.encode()).hexdigest()[:NAME_CHARS]}"


def set_cookie(answer: Response, state: str, browser: str, *, at: str) -> None:
    """Have a browser send its secret when it comes back, by a link as well, and to nobody else."""
    answer.set_cookie(
        cookie_of(state, at=at),
        browser,
        max_age=COOKIE_S,
        path="/",
        secure=_is_tls(at),
        httponly=True,
        samesite="lax",
    )


def forget_cookie(answer: Response, state: str, *, at: str) -> None:
    """Have a browser forget the secret of a login that is over."""
    answer.delete_cookie(cookie_of(state, at=at), path="/", secure=_is_tls(at), httponly=True, samesite="lax")


def _is_tls(at: str) -> bool:
    return at.startswith("https://")


def _row(name: str, value: str) -> str:
    return f"<dt>{name}</dt><dd>{escape(value)}</dd>"


def _page(title: str, content: str, *, status: int = 200) -> HTMLResponse:
    template = Template(files("wayline.gateway").joinpath("login.html").read_text())
    heading = f"<h1>{escape(title)}</h1>\n"
    text = template.substitute(title=escape(title), content=heading + content)
    return HTMLResponse(text, status_code=status, headers=HEADERS)
