"""A difference of 5 MB, as the page of a tool's call shows it."""

from __future__ import annotations

from datetime import UTC, datetime
from time import process_time

from wayline.console.pages.compressed_page import compressed
from wayline.console.pages.frame import Frame
from wayline.console.pages.job_calls import TEMPLATE as CALL_TEMPLATE
from wayline.console.pages.job_calls import CallPage, diff_of
from wayline.console.render.environment import Templates
from wayline.console.render.steps import ToolCall

from .look import Measured, window_of
from .stored_jobs import Bench

DIFF_BYTES = 5_000_000
ME = {"tenant": "default", "name": "bench", "scopes": ["read"], "open": True, "version": "0"}


def large_diff() -> str:
    """Return a difference of many files."""
    lines, size, number = list[str](), 0, 0
    while size < DIFF_BYTES:
        number += 1
        part = [f"--- a/part{number}.py", f"+++ b/part{number}.py", "@@ -1,400 +1,400 @@"]
        for line in range(200):
            part += [f" kept = value_{line}  # as it was", f"-old = call({line}, retries=3)"]
            part += [f"+old = call({line}, retries=5)", f" more = other_{line}"]
        lines += part
        size += sum(len(one) + 1 for one in part)
    return "\n".join(lines) + "\n"


async def show_diff(bench: Bench, into: Measured, cpu_ms: list[float]) -> None:
    """Show a large difference as its page does: rendered here, painted by the browser."""
    frame = Frame("difference", "/jobs", ME, "token", "light", "/jobs", now=datetime.now(UTC))
    call = ToolCall("git_diff", {}, "read", "completed", large_diff())
    began = process_time()
    shown = CallPage("j1", 1, "1", call, diff_of(call))
    html = Templates().render(CALL_TEMPLATE, page=shown, frame=frame, view="diff", split=False)
    cpu_ms.append((process_time() - began) * 1_000)
    async with window_of(bench.browser) as window:
        path = "/jobs/j1/calls/1/1/diff"
        await window.page.route(f"**{path}", lambda route: route.fulfill(body=html, content_type="text/html"))
        await window.loaded(f"{bench.url}{path}", into)
        await window.scrolled(into)
    into.sent[-1] += len(compressed(html) or html)
