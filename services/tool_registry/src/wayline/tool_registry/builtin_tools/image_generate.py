"""The built-in tool `image_generate`."""

# No `from __future__ import annotations`: the MCP library evaluates the tools' annotations where it finds them.

import json
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Annotated, Any

from pydantic import Field

from wayline.contracts.errors import Reject, Retry
from wayline.contracts.image_models import ImageQuality, ImageShape
from wayline.tool_registry.builtin_tools.call_meta import key_of_call, tenant_of_call
from wayline.tool_registry.builtin_tools.image_tools import ImageTools
from wayline.tool_registry.calls.results import COST
from wayline.tool_registry.connection.failures import AWAY
from wayline.tool_registry.images.image_prices import PLAIN, PROMPT_BYTES_MAX
from wayline.tool_registry.images.images_api import ImageFailed, ImageRequest, ImagesAway

FILES_PATH = "/v1/files/"


def image_generate_tool(images: ImageTools) -> Callable[..., Awaitable[Any]]:
    """Return the tool, making images with the configured model."""
    from mcp import MCPError
    from mcp_types import CallToolResult, TextContent

    def result(text: str, cost_usd: Decimal | None, *, is_error: bool = False) -> CallToolResult:
        meta = {} if cost_usd is None else {COST: str(cost_usd)}
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=is_error, _meta=meta)

    async def image_generate(
        *,
        prompt: Annotated[
            str,
            Field(min_length=1, max_length=PROMPT_BYTES_MAX, description="What the image shows, and in which style."),
        ],
        shape: Annotated[ImageShape, Field(description="1024x1024, 1536x1024 or 1024x1536 pixels.")] = "square",
        quality: Annotated[ImageQuality, Field(description="Better is slower and costs more.")] = PLAIN,
    ) -> CallToolResult:
        """Make one image from words. It is stored, and you get its id and its path, not the image itself.

        Show it to the user as Markdown: ![what it shows](path).
        """
        tenant = tenant_of_call()
        if len(prompt.encode()) > PROMPT_BYTES_MAX:
            return result(f"the prompt is longer than {PROMPT_BYTES_MAX} bytes: shorten it", Decimal(0), is_error=True)
        if wait_s := images.limit.take(tenant):
            message = f"too many images in a minute: make the next one in {wait_s:.0f} s, or go on without"
            return result(message, Decimal(0), is_error=True)
        try:
            image = await images.api.make(ImageRequest(prompt, shape, quality))
        except ImageFailed as error:
            return result(str(error), error.cost_usd, is_error=True)
        except ImagesAway as error:
            raise MCPError(AWAY, str(error)) from error
        try:
            document_id = await images.store.put(tenant, key_of_call(), image, prompt=prompt, model=images.api.model)
        except (Retry, Reject) as error:
            return result(f"the image was made and could not be stored: {error}", image.cost_usd, is_error=True)
        stored = {
            "document_id": document_id,
            "path": f"{FILES_PATH}{document_id}",
            "media_type": image.kind.media_type,
            "width": image.kind.width,
            "height": image.kind.height,
            "size_bytes": len(image.content),
        }
        revised = {"revised_prompt": image.revised_prompt} if image.revised_prompt else {}
        return result(json.dumps(stored | revised, ensure_ascii=False), image.cost_usd)

    return image_generate
