"""The page of samples: every component in every state, for the eye and for tests."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from wayline.console.access.visitor import VisitorDependency
from wayline.console.pages.frame import Frame, show
from wayline.console.render.steps import Step, ToolCall
from wayline.console.render.waterfall import waterfall

router = APIRouter()
TEMPLATE = "kit.html"
STATUSES: Final = ("queued", "running", "parked", "completed", "failed", "cancelled")
AMOUNTS: Final = ("0", "0.0000042", "0.0123", "1.5", "12345.678", None)
PROGRAM: Final = (
    'found = await search(query="refund")  # all of them\nfor one in found[:3]:\n    print(one["id"], 3.5)\n'
)
BEFORE: Final = "# Terms\n\nRefunds take seven days.\nWrite to us.\n"
AFTER: Final = "# Terms\n\nRefunds take ten days.\nWrite to us.\nOr call.\n"
MARKDOWN: Final = (
    "An **answer** with `code`, a [link](https://example.com/page) and an image ![chart](https://example.com/x.png).\n\n"
    "- first\n- second\n\n| item | price |\n|---|---|\n| tea | 3 |\n\n```python\nprint('hello')  # twice\n```\n\n"
    "```diff\n--- a/terms\n+++ b/terms\n@@ -1 +1 @@\n-Refunds take seven days.\n+Refunds take ten days.\n```\n\n"
    "<script>alert(1)</script> is only text, and \u202eso is this\u202c."
)


@router.get("/kit")
async def kit(request: Request, visitor: VisitorDependency) -> HTMLResponse:
    """Show every component."""
    frame = Frame.of(request, visitor, title="Components", section="")
    begun = frame.now - timedelta(seconds=9)

    def span(
        name: str, after_s: float, ms: float | None, status: str = "ok", *children: dict[str, Any]
    ) -> dict[str, Any]:
        at = (begun + timedelta(seconds=after_s)).isoformat()
        return {
            "name": name,
            "service": "executor",
            "start": at,
            "duration_ms": ms,
            "status": status,
            "usage": {"input": 1200, "output": 80},
            "cost_usd": "0.0031",
            "attributes": {},
            "children": list(children),
        }

    failed = span("execute_tool refund", 1.4, 300, "error")
    tree = span(
        "invoke_agent support", 0, None, "ok", span("chat small", 0.1, 1200), failed, span("chat small", 2, None)
    )
    found = ToolCall("search_knowledge", {"query": "refund"}, "read", "completed", "[1] Refunds take ten days.", 6.2)
    refused = ToolCall("refund", {"amount": 7}, "once", "failed", "the bank did not answer", 300)
    under_way = ToolCall("send_mail", {"to": "ann@example.com"}, "once", program="4")
    program = ToolCall("run_code", {"code": PROGRAM}, "read", "completed", "3", 41.0)
    edit = ToolCall("edit", {"path": "terms.md", "before": BEFORE, "after": AFTER}, "once", "completed", "ok", 3.0)
    calls = {"1": found, "2": refused, "4": program, "3": under_way, "5": edit}
    return await show(
        request,
        TEMPLATE,
        frame,
        statuses=STATUSES,
        amounts=AMOUNTS,
        text=MARKDOWN,
        trace=waterfall(tree, now=frame.now),
        step=Step(1, "I am looking it up.", "The user asks for money back.", calls),
        ages=[(frame.now - timedelta(seconds=s)).isoformat() for s in (5, 400, 9_000, 400_000)],
    )
