"""What stands around every page: who is signed in, where one can go, what was just done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse

from wayline.console.access.visitor import Visitor
from wayline.console.pages.compressed_page import compressed, may_compress
from wayline.console.render.environment import Templates
from wayline.console.render.formats import utc_now

SECTIONS: Final = (
    (("/", "Home", "h"), ("/jobs", "Jobs", "j"), ("/approvals", "Approvals", "a")),
    (("/costs", "Costs", "c"), ("/models", "Models", "m")),
    (
        ("/agents", "Agents", "g"),
        ("/tools", "Tools", "t"),
        ("/knowledge", "Knowledge", "k"),
        ("/sessions", "Sessions", "s"),
    ),
    (
        ("/schedules", "Schedules", "e"),
        ("/webhooks", "Webhooks", "w"),
        ("/dead-letters", "Dead letters", "d"),
        ("/settings", "Settings", "o"),
    ),
)
"""Groups of pages, each with its address, its title, and the key that goes there after `g`."""
DONE: Final = {
    "cancelled": "The job was asked to stop.",
    "raised": "The job may spend more now.",
    "decided": "The decision was sent: a call stands here until its job has taken it.",
    "answered": "The answer was sent to the job.",
    "redriven": "They go on: below is how far each job is.",
    "dismissed": "It was dismissed.",
    "saved": "It is saved.",
    "deleted": "It is deleted.",
    "enabled": "It is enabled.",
    "disabled": "It is disabled; what it is like is kept.",
    "approved": "The definitions are approved: their tools can be called.",
    "removed": "It is removed.",
    "revoked": "The key is revoked: every gateway refuses it within seconds.",
    "agent-saved": "The agent is saved. Its next jobs go by it.",
    "agent-deleted": "The agent is deleted. Jobs that began with it go on.",
    "agent-restored": "The agent is back.",
    "judged": "Thank you: the feedback is kept with the job.",
    "reindexing": "It is being read once more.",
    "remembered": "It is remembered.",
    "known": "That was known already: it was said once more.",
    "quarantined": "It waits until a person releases it.",
    "released": "It counts from now on.",
    "rejected": "It is refused for good.",
    "forgotten": "It is forgotten, with all of its versions.",
    "redelivered": "It is sent again.",
    "drained": "It takes no more work, and finishes what it has.",
    "undrained": "It takes work again.",
}
"""What a page says after an action, by the word in its address: nobody's own words, as anybody can make a link."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The surroundings of a page."""

    title: str
    section: str
    me: dict[str, Any]
    token: str
    theme: str
    here: str
    """The page's own address, to return to; of an answer to a form that of its section, as forms are only sent."""
    now: datetime = field(default_factory=utc_now)
    done: str = ""

    @classmethod
    def of(cls, request: Request, visitor: Visitor, *, title: str, section: str) -> Frame:
        """Return the surroundings of the page that a request asks for."""
        here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        here = here if request.method == "GET" else section
        done = DONE.get(request.query_params.get("done", ""), "")
        return cls(title, section, visitor.me, visitor.session.token, visitor.theme, here, done=done)

    @property
    def groups(self) -> tuple[tuple[tuple[str, str, str], ...], ...]:
        return SECTIONS

    def may(self, scope: str) -> bool:
        """Return whether the visitor's key has a scope."""
        return scope in self.me["scopes"]

    @property
    def only_reads(self) -> bool:
        """Return whether every button that changes something is off."""
        return set(self.me["scopes"]) <= {"read"}


async def show(request: Request, template: str, frame: Frame, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Answer with a page. A thread renders it: what strangers wrote may take long, and others wait for theirs."""
    templates: Templates = request.app.state.templates
    return await _answer(request, partial(templates.render, template, frame=frame, **values), status)


async def show_region(request: Request, template: str, block: str, frame: Frame, **values: Any) -> HTMLResponse:
    """Answer with one region of a page, which a browser puts in the place of the one that it has."""
    templates: Templates = request.app.state.templates
    return await _answer(request, partial(templates.region, template, block, frame=frame, **values))


async def _answer(request: Request, render: Callable[[], bytes], status: int = 200) -> HTMLResponse:
    def packed() -> tuple[bytes, bytes | None]:
        page = render()
        return page, compressed(page) if may_compress(request) else None

    page, small = await asyncio.to_thread(packed)
    return HTMLResponse(page if small is None else small, status, {"Content-Encoding": "gzip"} if small else None)


def go(address: str, *, done: str = "") -> RedirectResponse:
    """Lead a browser on after a form: a reload sends nothing again."""
    joined = "&" if "?" in address else "?"
    return RedirectResponse(f"{address}{joined}done={done}" if done else address, 303)


def own_address(address: str) -> str:
    """Return an address of ours that a form named; anything else leads home, never to another host."""
    is_ours = address.startswith("/") and not address.startswith(("//", "/\\")) and "\n" not in address
    return address if is_ours else "/"
