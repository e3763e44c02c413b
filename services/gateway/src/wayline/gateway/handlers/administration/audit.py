"""Who changed what."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from wayline.gateway.handlers.shared.dependencies import Admin, GatewayDependency
from wayline.gateway.openapi import fails
from wayline.gateway.paging import PageCursor, PageLimit, after_number, first_page
from wayline.gateway.shapes.audit import AuditEntry, AuditPage, AuditQuery
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1/audit", tags=["audit"], route_class=StrictRoute)


@router.get("", responses=fails(400))
async def list_audit(
    gateway: GatewayDependency,
    caller: Admin,
    query: Annotated[AuditQuery, Query()],
    limit: PageLimit = 50,
    cursor: PageCursor = None,
) -> AuditPage:
    """Page through who changed agents, settings, keys, budgets, servers, memories and the like, and who approved calls.

    The newest first, of 400 days. A change is written down before it is made: one without an outcome may have been
    made.
    """
    before = None if cursor is None else after_number(cursor)
    rows = await gateway.audit.page(caller.tenant, query, limit=limit + 1, before=before)
    page = first_page(rows, limit=limit, key=lambda row: str(row["id"]))
    entries = tuple(AuditEntry.model_validate(dict(row)) for row in page.items)
    return AuditPage(entries=entries, next_cursor=page.next_cursor)
