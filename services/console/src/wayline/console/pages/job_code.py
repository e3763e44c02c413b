"""Fenced blocks of a job's answer and of its tools' results, as files."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, HTTPException, Path
from fastapi.responses import PlainTextResponse

from wayline.console.access.visitor import VisitorDependency
from wayline.console.pages import job_calls
from wayline.console.pages.job import JobId
from wayline.console.render.fenced_text import BLOCKS_MAX, block_of

router = APIRouter(prefix="/jobs/{job_id}")

Number: TypeAlias = Annotated[int, Path(ge=1, le=BLOCKS_MAX)]


@router.get("/answer/code/{number}")
async def of_answer(visitor: VisitorDependency, job_id: JobId, number: Number) -> PlainTextResponse:
    """Answer with a block of a job's answer."""
    return _file_of((await visitor.client.job(job_id))["answer"], number, of="answer")


@router.get("/calls/{step}/{call}/code/{number}")
async def of_call(
    *, visitor: VisitorDependency, job_id: JobId, step: job_calls.Step, call: job_calls.Call, number: Number
) -> PlainTextResponse:
    """Answer with a block of a call's result."""
    found = (await job_calls.read(visitor.client, job_id, step, call)).call
    return _file_of(found.whole or found.output, number, of="result")


def _file_of(text: Any, number: int, *, of: str) -> PlainTextResponse:
    block = block_of(text or "", number)
    if block is None:
        raise HTTPException(404)
    named = {"Content-Disposition": f'attachment; filename="{of}-{block.file}"'}
    return PlainTextResponse(block.text.encode("utf-8", "replace"), headers=named)
