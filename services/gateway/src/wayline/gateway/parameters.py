"""Parameters that several routes share: ids in a path, waiting, paging."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import Path, Query

from wayline.contracts import ids
from wayline.gateway.shapes.body import ONE_LINE

JobPath: TypeAlias = Annotated[str, Path(pattern=ids.JOB_ID_PATTERN, examples=["job_1f2e3d4c5b6a79880011"])]
Wait: TypeAlias = Annotated[
    float | None,
    Query(ge=0, le=3_600, allow_inf_nan=False, description="Seconds to wait for the end, at most what is configured."),
]
Cursor: TypeAlias = Annotated[
    str | None, Query(max_length=500, pattern=ONE_LINE, description="`next_cursor` of the page before.")
]
