"""`POST /openai/v1/embeddings`: texts as vectors, by the embedder of the installation."""

from __future__ import annotations

import base64
import math
from array import array
from typing import Annotated, Any, Final, Literal

import orjson
from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from wayline.contracts.errors import Reject
from wayline.contracts.knowledge import EMBEDDED_MAX, EmbeddedTexts, EmbedTexts
from wayline.gateway.errors import UnsupportedParameter
from wayline.gateway.handlers.shared.dependencies import GatewayDependency, Reader
from wayline.gateway.openai.field_rules import refuse_unsupported
from wayline.gateway.openapi import fails_as_openai
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/openai/v1", tags=["openai"], route_class=StrictRoute)

TEXT_MAX_CHARS: Final = 10_000
BYTES_PER_TOKEN: Final = 4
EMBED_WITHIN_S: Final = 60.0
Text = Annotated[str, StringConstraints(min_length=1, max_length=TEXT_MAX_CHARS)]


class EmbeddingsBody(BaseModel):
    """Texts to embed."""

    model_config = ConfigDict(
        extra="allow", json_schema_extra={"examples": [{"model": "default", "input": "How high is the tide?"}]}
    )

    model: str = Field(
        min_length=1, max_length=265, description="Any: the installation has one, which the answer names."
    )
    input: Text | Annotated[list[Text], Field(min_length=1, max_length=EMBEDDED_MAX)]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(default=None, ge=1, description="The first so many, scaled to length 1.")
    user: str | None = Field(default=None, max_length=200)


@router.post(
    "/embeddings",
    response_class=Response,
    responses={
        200: {"description": "The vectors.", "content": {"application/json": {"schema": {"type": "object"}}}},
        **fails_as_openai(400, 413, 429),
    },
)
async def create_embeddings(body: EmbeddingsBody, gateway: GatewayDependency, caller: Reader) -> Response:
    """Embed texts. What it costs is the tenant's, outside of any job, within its hard budgets."""
    refuse_unsupported(body.model_extra or {})
    texts = (body.input,) if isinstance(body.input, str) else tuple(body.input)
    asked = EmbedTexts(tenant=caller.tenant, texts=texts, holds=True)
    embedded = await gateway.bus.ask(asked, EmbeddedTexts, timeout_s=EMBED_WITHIN_S)
    if embedded.model is None:
        why = "this installation compares words alone: an operator sets an embedding model (docs/search.md)"
        raise Reject(why, code="no_embedding_model")
    vectors = [_shortened(base64.b64decode(vector), body.dimensions) for vector in embedded.vectors]
    data = [
        {"object": "embedding", "index": place, "embedding": _encoded(vector, body.encoding_format)}
        for place, vector in enumerate(vectors)
    ]
    tokens = sum(math.ceil(len(text.encode()) / BYTES_PER_TOKEN) for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    made = {"object": "list", "model": embedded.model, "data": data, "usage": usage}
    return Response(orjson.dumps(made), media_type="application/json")


def _shortened(encoded: bytes, dimensions: int | None) -> array[float]:
    """Return a vector with no more than the dimensions asked for. Raises UnsupportedParameter for more than it has."""
    vector = array("f", encoded)
    if dimensions is None or dimensions == len(vector):
        return vector
    if dimensions > len(vector):
        raise UnsupportedParameter("dimensions", f"the embedder's vectors have {len(vector)}")
    first = vector[:dimensions]
    length = math.sqrt(sum(value * value for value in first)) or 1.0
    return array("f", (value / length for value in first))


def _encoded(vector: array[float], form: str) -> Any:
    return base64.b64encode(vector.tobytes()).decode() if form == "base64" else list(vector)
