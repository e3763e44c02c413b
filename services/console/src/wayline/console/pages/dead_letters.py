"""Dead letters: what could not be handled, by cause; letting all of one cause go on, or dismissing it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, TypeAlias

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse, Response

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import PostedForm, Visitor, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages.frame import Frame, go, show, show_region
from wayline.console.pages.live_events import stream_of
from wayline.console.pages.redrive_plan import Plan, read_plan, there, told_of_forks
from wayline.console.pages.refusal import reason_of
from wayline.console.render.json_text import parsed

router = APIRouter(prefix="/dead-letters")
TEMPLATE = "dead_letters/list.html"
CAUSE_TEMPLATE = "dead_letters/cause.html"
LETTER_TEMPLATE = "dead_letters/letter.html"
SCOPE: Final = "admin"
PAGE_SIZE = 50
LETTERS_READ = 200
"""Of the newest letters, those that are looked at for one cause."""
PAST_READ = 200
REDRIVE_DEFAULT, REDRIVE_MAX = 100, 1_000

LISTS: Final = {
    "": ("Causes", "/v1/dead-letters/groups", "groups"),
    "letters": ("Messages", "/v1/dead-letters", "dead_letters"),
    "redrives": ("Redrives", "/v1/dead-letters/redrives", "redrives"),
    "dismissed": ("Dismissed", "/v1/dead-letters/dismissed", "dismissed"),
}
"""The end of a list's address, its title, where the API has it, and its name there."""

Fingerprint: TypeAlias = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")]
Sequence: TypeAlias = Annotated[int, Path(ge=1, le=2**53)]
Limit: TypeAlias = Annotated[int, Query(ge=1, le=REDRIVE_MAX)]


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """One of the lists: what failed by cause, single messages, or what was done about them."""

    view: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    next_cursor: str | None = None

    @property
    def address(self) -> str:
        return f"/dead-letters/{self.view}".rstrip("/")

    @property
    def tabs(self) -> list[tuple[str, str, bool]]:
        """Return address, title and whether it is shown, of each list."""
        return [
            (f"/dead-letters/{view}".rstrip("/"), title, view == self.view) for view, (title, _, _) in LISTS.items()
        ]


@dataclass(frozen=True, slots=True)
class Cause:
    """All that failed of one cause."""

    fingerprint: str
    group: dict[str, Any] | None
    """None: everything that failed of it goes on already, or was dismissed."""
    job: dict[str, Any] | None
    letter: dict[str, Any] | None
    letters: list[dict[str, Any]]
    past: list[dict[str, Any]]
    plan: Plan | None = None
    problem: str = ""

    @property
    def address(self) -> str:
        return f"/dead-letters/causes/{self.fingerprint}"


def in_lines(letter: dict[str, Any]) -> str:
    """Return the body of a message, as indented JSON where it is JSON."""
    text = letter["text"]
    if text is None:
        return str(letter["base64"] or "")
    try:
        return json.dumps(parsed(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return str(text)


async def read_list(client: Client, view: str, cursor: str | None) -> DeadLetters:
    """Ask the API for one page of a list."""
    _, path, name = LISTS[view]
    page = await client.get(path, limit=PAGE_SIZE, cursor=cursor)
    return DeadLetters(view, page[name], page["next_cursor"])


async def read_cause(client: Client, fingerprint: str, *, limit: int | None = None, problem: str = "") -> Cause:
    """Ask the API for what failed of one cause; with a limit for what a redrive would do as well."""
    groups, letters, past = await asyncio.gather(
        client.whole("/v1/dead-letters/groups", "groups"),
        client.get("/v1/dead-letters", limit=LETTERS_READ),
        client.get("/v1/dead-letters/redrives", limit=PAST_READ),
    )
    group = next((one for one in groups["groups"] if one["fingerprint"] == fingerprint), None)
    of_cause = [letter for letter in letters["dead_letters"] if letter["fingerprint"] == fingerprint]
    example = group["example"] if group else None
    return Cause(
        fingerprint,
        group,
        await there(client, f"/v1/jobs/{example}") if example else None,
        await there(client, f"/v1/dead-letters/{of_cause[0]['sequence']}") if of_cause else None,
        of_cause,
        [one for one in past["redrives"] if one["fingerprint"] == fingerprint],
        await read_plan(client, fingerprint, limit) if limit else None,
        problem,
    )


def _frame(request: Request, visitor: Visitor, title: str = "Dead letters") -> Frame:
    return Frame.of(request, visitor, title=title, section="/dead-letters")


async def _show_list(request: Request, visitor: Visitor, view: str, cursor: str | None) -> HTMLResponse:
    may = visitor.may(SCOPE)
    page = await read_list(visitor.client, view, cursor) if may else DeadLetters(view)
    return await show(request, TEMPLATE, _frame(request, visitor), page=page, scope=SCOPE)


@router.get("")
async def causes(request: Request, visitor: VisitorDependency, cursor: str | None = None) -> HTMLResponse:
    """Show what failed, by cause."""
    return await _show_list(request, visitor, "", cursor)


@router.get("/letters")
async def letters(request: Request, visitor: VisitorDependency, cursor: str | None = None) -> HTMLResponse:
    """Show the messages that could not be handled."""
    return await _show_list(request, visitor, "letters", cursor)


@router.get("/redrives")
async def redrives(request: Request, visitor: VisitorDependency, cursor: str | None = None) -> HTMLResponse:
    """Show who let what go on."""
    return await _show_list(request, visitor, "redrives", cursor)


@router.get("/dismissed")
async def dismissed(request: Request, visitor: VisitorDependency, cursor: str | None = None) -> HTMLResponse:
    """Show what was dismissed, and why."""
    return await _show_list(request, visitor, "dismissed", cursor)


@router.get("/causes/{fingerprint}")
async def cause(
    request: Request, visitor: VisitorDependency, fingerprint: Fingerprint, plan: Limit | None = None
) -> HTMLResponse:
    """Show what failed of one cause; with `plan` what a redrive of at most so many would do."""
    page = await read_cause(visitor.client, fingerprint, limit=plan)
    return await _show_cause(request, visitor, page)


@router.get("/causes/{fingerprint}/region")
async def region(
    request: Request, visitor: VisitorDependency, fingerprint: Fingerprint, plan: Limit = REDRIVE_DEFAULT
) -> HTMLResponse:
    """Show the part of a cause's page that changes while jobs go on."""
    found = await read_plan(visitor.client, fingerprint, plan)
    page = Cause(fingerprint, None, None, None, [], [], found)
    return await show_region(request, CAUSE_TEMPLATE, "progress", _frame(request, visitor), page=page, scope=SCOPE)


@router.get("/causes/{fingerprint}/live")
async def live(visitor: VisitorDependency, fingerprint: Fingerprint, plan: Limit = REDRIVE_DEFAULT) -> Response:
    """Stream that jobs of a redrive have gone on; 204 ends it, as a browser then asks no more."""
    found = await read_plan(visitor.client, fingerprint, plan)
    if not found.open:
        return Response(status_code=204)
    return stream_of(told_of_forks(visitor.client, found.open))


async def _show_cause(request: Request, visitor: Visitor, page: Cause) -> HTMLResponse:
    status = 422 if page.problem else 200
    frame = _frame(request, visitor, "Dead letters of one cause")
    values = {"scope": SCOPE, "default_limit": REDRIVE_DEFAULT, "most": REDRIVE_MAX, "in_lines": in_lines}
    return await show(request, CAUSE_TEMPLATE, frame, status=status, page=page, **values)


@router.post("/causes/{fingerprint}/redrive")
async def redrive(request: Request, visitor: VisitorDependency, form: PostedForm, fingerprint: Fingerprint) -> Response:
    """Let all that failed of one cause go on, at most as many as are named."""
    given = field_of(form, "limit")
    limit = min(max(int(given), 1), REDRIVE_MAX) if given.isdecimal() else REDRIVE_DEFAULT
    try:
        done = await visitor.client.post("/v1/dead-letters/redrive", {"fingerprint": fingerprint, "limit": limit})
        problem = f"It stopped before its limit: {done['stopped']}" if done["stopped"] else ""
    except ApiError as error:
        problem = reason_of(error)
    if not problem:
        return go(f"/dead-letters/causes/{fingerprint}?plan={limit}", done="redriven")
    page = await read_cause(visitor.client, fingerprint, limit=limit, problem=problem)
    return await _show_cause(request, visitor, page)


@router.post("/causes/{fingerprint}/dismiss")
async def dismiss_all(
    request: Request, visitor: VisitorDependency, form: PostedForm, fingerprint: Fingerprint
) -> Response:
    """Dismiss the messages of one cause that its page showed, and no younger ones."""
    newest = field_of(form, "newest")
    page = await read_cause(visitor.client, fingerprint)
    shown = [one["sequence"] for one in page.letters if newest.isdecimal() and one["sequence"] <= int(newest)]
    try:
        for sequence in shown:
            await visitor.client.post(
                f"/v1/dead-letters/{sequence}/dismiss", {"reason": " ".join(field_of(form, "reason").split())}
            )
    except ApiError as error:
        page = await read_cause(visitor.client, fingerprint, problem=reason_of(error))
        return await _show_cause(request, visitor, page)
    return go("/dead-letters", done="dismissed")


@router.get("/letters/{sequence}")
async def letter(request: Request, visitor: VisitorDependency, sequence: Sequence) -> HTMLResponse:
    """Show one message whole."""
    return await _show_letter(request, visitor, sequence)


async def _show_letter(request: Request, visitor: Visitor, sequence: int, problem: str = "") -> HTMLResponse:
    found = await visitor.client.get(f"/v1/dead-letters/{sequence}")
    frame = _frame(request, visitor, f"Dead letter {sequence}")
    status = 422 if problem else 200
    values = {"scope": SCOPE, "problem": problem, "in_lines": in_lines}
    return await show(request, LETTER_TEMPLATE, frame, status=status, letter=found, **values)


@router.post("/letters/{sequence}/dismiss")
async def dismiss(request: Request, visitor: VisitorDependency, form: PostedForm, sequence: Sequence) -> Response:
    """Dismiss one message: it needs nothing more."""
    reason = " ".join(field_of(form, "reason").split())
    try:
        await visitor.client.post(f"/v1/dead-letters/{sequence}/dismiss", {"reason": reason})
    except ApiError as error:
        return await _show_letter(request, visitor, sequence, reason_of(error))
    return go("/dead-letters/letters", done="dismissed")
