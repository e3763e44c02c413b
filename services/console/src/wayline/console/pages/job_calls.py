"""One call of a job's tools by itself: its whole result, and the difference that it holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

from fastapi import APIRouter, HTTPException, Path, Query, Request
from fastapi.responses import HTMLResponse, PlainTextResponse

from wayline.client.client import Client
from wayline.console.access.visitor import VisitorDependency
from wayline.console.pages.frame import Frame, show
from wayline.console.pages.job import JobId
from wayline.console.render.diffs.card import DiffCard, card_of
from wayline.console.render.steps import ToolCall, steps_of

router = APIRouter(prefix="/jobs/{job_id}/calls/{step}/{call}")
TEMPLATE = "job_call.html"
LINES_SHOWN: Final = 2_000
"""Of a difference on its own page; the rest is in its file."""
RESULT_MAX_CHARS: Final = 500_000

Step: TypeAlias = Annotated[int, Path(ge=0, le=100_000)]
Call: TypeAlias = Annotated[str, Path(min_length=1, max_length=128)]


@dataclass(frozen=True, slots=True)
class CallPage:
    """What the page shows."""

    job_id: str
    step: int
    key: str
    call: ToolCall
    diff: DiffCard | None
    lines: int = LINES_SHOWN
    result_max_chars: int = RESULT_MAX_CHARS

    @property
    def at(self) -> str:
        return f"/jobs/{self.job_id}/calls/{self.step}/{self.key}"


async def read(client: Client, job_id: str, step: int, key: str) -> CallPage:
    """Find a call in a job's log. Raises HTTPException where there is none."""
    for found in steps_of(await client.log(job_id)):
        call = found.calls.get(key) if found.number == step else None
        if call is not None:
            return CallPage(job_id, step, key, call, diff_of(call))
    raise HTTPException(404)


def diff_of(call: ToolCall) -> DiffCard | None:
    """Return the difference that a call's result or arguments hold."""
    return card_of(call.whole) or card_of(call.output) or card_of(call.input)


def _frame(request: Request, visitor: Any, page: CallPage) -> Frame:
    return Frame.of(request, visitor, title=f"{page.call.tool} of {page.job_id}", section="/jobs")


@router.get("/result")
async def result(request: Request, visitor: VisitorDependency, job_id: JobId, step: Step, call: Call) -> HTMLResponse:
    """Show a call with its whole result."""
    page = await read(visitor.client, job_id, step, call)
    return await show(request, TEMPLATE, _frame(request, visitor, page), page=page, view="result", split=False)


@router.get("/diff")
async def diff(
    *,
    request: Request,
    visitor: VisitorDependency,
    job_id: JobId,
    step: Step,
    call: Call,
    split: Annotated[bool, Query()] = False,
) -> HTMLResponse:
    """Show the difference that a call holds, its lines beneath each other or side by side."""
    page = await read(visitor.client, job_id, step, call)
    if page.diff is None:
        raise HTTPException(404)
    return await show(request, TEMPLATE, _frame(request, visitor, page), page=page, view="diff", split=split)


@router.get("/diff.patch")
async def patch(visitor: VisitorDependency, job_id: JobId, step: Step, call: Call) -> PlainTextResponse:
    """Answer with the difference as a file."""
    found = (await read(visitor.client, job_id, step, call)).diff
    if found is None:
        raise HTTPException(404)
    named = {"Content-Disposition": 'attachment; filename="changes.patch"'}
    return PlainTextResponse(found.raw.encode("utf-8", "replace"), headers=named)
