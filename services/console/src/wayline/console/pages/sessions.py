"""Sessions: conversations of which each job is a turn; one is gone on with, steered, interrupted or forgotten."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Final, TypeAlias
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import PostedForm, Visitor, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages.confirm import Confirmation, ask, is_confirmed
from wayline.console.pages.form_values import key_of, new_key
from wayline.console.pages.frame import Frame, go, show
from wayline.console.pages.job_log import forget_logs
from wayline.console.pages.refusal import reason_of
from wayline.console.render.addresses import query_of
from wayline.console.render.formats import one_line

router = APIRouter()
LIST_TEMPLATE = "sessions/list.html"
TEMPLATE = "sessions/one.html"
PAGE_SIZE = 50
TURNS_SHOWN = 20
WHEN_BUSY: Final = (
    ("steer", "Steer it", "The job that runs takes these words into account with its next step."),
    ("interrupt", "Interrupt it", "The jobs that run or wait are cancelled, and this one goes on from what was said."),
    ("wait", "Wait", "The new job waits until those before it have ended."),
)
"""What a new job does while another one runs: the value of `when_busy`, a title, and a sentence."""

SessionId: TypeAlias = Annotated[str, Query(alias="id", min_length=1, max_length=128)]
TurnCursor: TypeAlias = Annotated[str | None, Query(pattern=r"^[1-9][0-9]{0,9}$")]


@dataclass(frozen=True, slots=True)
class Sessions:
    """What the list shows."""

    sessions: list[dict[str, Any]]
    next_cursor: str | None
    agent: str = ""
    user: str = ""
    problem: str = ""

    @property
    def next_address(self) -> str | None:
        """Return the address of the next page; None: this is the last."""
        if self.next_cursor is None:
            return None
        kept = {name: value for name, value in (("agent", self.agent), ("user", self.user)) if value}
        return f"/sessions?{query_of({**kept, 'cursor': self.next_cursor})}"


@dataclass(frozen=True, slots=True)
class SessionPage:
    """What the page of one session shows."""

    session: dict[str, Any]
    problem: str = ""
    typed: dict[str, str] = field(default_factory=dict)
    cursor: str | None = None
    key: str = field(default_factory=new_key)
    """Of the next job: a form that is sent twice is one."""

    @property
    def address(self) -> str:
        return address_of(self.session["session_id"])

    @property
    def query(self) -> str:
        return query_of({"id": self.session["session_id"]})

    @property
    def entities(self) -> dict[str, list[dict[str, Any]]]:
        """Return what the session is about by type, the newest first."""
        found: dict[str, list[dict[str, Any]]] = {}
        for entity in reversed(self.session["context"]["entities"]):
            found.setdefault(entity["type"], []).append(entity)
        return found


def address_of(session_id: str) -> str:
    """Return the address of a session's page."""
    return f"/sessions/one?{query_of({'id': session_id})}"


def path_of(session_id: str) -> str:
    """Return where the gateway has a session."""
    return f"/v1/sessions/{quote(session_id, safe='')}"


async def read(client: Client, *, agent: str = "", user: str = "", cursor: str | None = None) -> Sessions:
    """Ask the API for one page of sessions; a refused question is shown beside the form that asked it."""
    try:
        page = await client.get(
            "/v1/sessions", agent=agent or None, user_id=user or None, limit=PAGE_SIZE, cursor=cursor
        )
    except ApiError as error:
        return Sessions([], None, agent, user, reason_of(error))
    return Sessions(page["sessions"], page["next_cursor"], agent, user)


@router.get("/sessions")
async def sessions(
    request: Request,
    visitor: VisitorDependency,
    agent: Annotated[str, Query(max_length=64)] = "",
    user: Annotated[str, Query(max_length=128)] = "",
    cursor: Annotated[str | None, Query()] = None,
) -> HTMLResponse:
    """Show the sessions, the last used first."""
    frame = Frame.of(request, visitor, title="Sessions", section="/sessions")
    found = await read(visitor.client, agent=agent, user=user, cursor=cursor)
    return await show(request, LIST_TEMPLATE, frame, status=422 if found.problem else 200, page=found)


@router.get("/sessions/one")
async def session(
    request: Request, visitor: VisitorDependency, session_id: SessionId, cursor: TurnCursor = None
) -> Response:
    """Show a session and its turns, the newest first."""
    found = await visitor.client.get(path_of(session_id), limit=TURNS_SHOWN, cursor=cursor)
    return await _show(request, visitor, SessionPage(found, cursor=cursor))


async def _show(request: Request, visitor: Visitor, page: SessionPage) -> Response:
    title = f"Session {one_line(page.session['session_id'], 60)}"
    frame = Frame.of(request, visitor, title=title, section="/sessions")
    return await show(request, TEMPLATE, frame, status=422 if page.problem else 200, page=page, when_busy=WHEN_BUSY)


def submission_of(session: dict[str, Any], *, text: str, when_busy: str) -> dict[str, Any]:
    """Return the job that goes on with a session, by the agent and for the user of its newest turn."""
    body = {"agent": session["agent"], "input": text, "session_id": session["session_id"]}
    body |= {"user_id": session["user_id"]} if session["user_id"] else {}
    return body | {"options": {"when_busy": when_busy}}


@router.post("/sessions/one/continue")
async def go_on(request: Request, visitor: VisitorDependency, session_id: SessionId, form: PostedForm) -> Response:
    """Submit a job that goes on with a session, and lead to it."""
    client = visitor.client
    found = await client.get(path_of(session_id), limit=TURNS_SHOWN)
    text, when_busy = field_of(form, "input"), field_of(form, "when_busy") or "wait"
    if not text:
        return await _show(request, visitor, SessionPage(found, "Say what it shall do."))
    try:
        accepted = await client.submit(submission_of(found, text=text, when_busy=when_busy), key=key_of(form))
    except ApiError as error:
        typed = {"input": text, "when_busy": when_busy}
        return await _show(request, visitor, SessionPage(found, reason_of(error), typed))
    return go(f"/jobs/{accepted['job_id']}")


@router.post("/sessions/one/forget")
async def forget(request: Request, visitor: VisitorDependency, session_id: SessionId, form: PostedForm) -> Response:
    """Forget a session, once that was asked."""
    client = visitor.client
    if not is_confirmed(form):
        lost = (
            "Its next job begins a new conversation.",
            "Its jobs and their logs stay, and so does what was remembered.",
        )
        thing = f"the session {one_line(session_id, 80)}"
        question = Confirmation.of("forget", thing, at=address_of(session_id), sentences=lost)
        return await ask(request, visitor, question, section="/sessions")
    try:
        await client.delete(path_of(session_id))
        forget_logs()
    except ApiError as error:
        if error.status == 404:
            raise
        found = await client.get(path_of(session_id), limit=TURNS_SHOWN)
        return await _show(request, visitor, SessionPage(found, reason_of(error)))
    return go("/sessions", done="deleted")
