"""What all request bodies have in common: unknown fields refused, text that can be stored."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints

METADATA_MAX_BYTES = 16 * 1024


TEXT_WITHOUT_NUL = r"^[^\x00]*$"


ONE_LINE = r"^[^\x00-\x1f\x7f]*$"


Label = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=ONE_LINE)]


Text = Annotated[str, StringConstraints(pattern=TEXT_WITHOUT_NUL)]


def _storable(value: dict[str, Any]) -> dict[str, Any]:
    try:
        encoded = orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError) as error:
        raise ValueError(f"this is not plain JSON: {error}") from None
    if b"\\u0000" in encoded:
        raise ValueError("a NUL character cannot be stored")
    if len(encoded) > METADATA_MAX_BYTES:
        raise ValueError(f"{len(encoded)} bytes are too many; {METADATA_MAX_BYTES} are allowed")
    return value


Metadata = Annotated[dict[str, Any], AfterValidator(_storable)]


class Body(BaseModel):
    """A request body; an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
