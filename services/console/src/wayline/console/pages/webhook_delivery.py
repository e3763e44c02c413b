"""One delivery of a webhook: the request as it was sent, and every answer."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

from wayline.console.access.visitor import VisitorDependency
from wayline.console.pages.frame import Frame, show
from wayline.console.pages.webhooks import Name, may_keep
from wayline.console.render.json_text import parsed

router = APIRouter()
TEMPLATE = "webhooks/delivery.html"


def readable(body: str) -> Any:
    """Return a request's body as what its JSON says, or as it is where it is cut or no JSON."""
    try:
        return parsed(body)
    except ValueError:
        return body


@router.get("/webhooks/{name}/deliveries/{delivery_id}")
async def delivery(
    request: Request,
    visitor: VisitorDependency,
    name: Name,
    delivery_id: Annotated[str, Path(pattern=r"^msg_[0-9a-f]{32}$")],
) -> Response:
    """Show a delivery."""
    found = await visitor.client.get(f"/v1/webhooks/{name}/deliveries/{delivery_id}")
    frame = Frame.of(request, visitor, title=f"Delivery to {name}", section="/webhooks")
    body = readable(found["request"]["body"])
    return await show(request, TEMPLATE, frame, delivery=found, body=body, may=may_keep(visitor.me))
