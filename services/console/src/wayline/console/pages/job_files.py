"""Files that are given to a job with its text: uploaded as documents once, and named by the form from then on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import Annotated, Any, Final, TypeAlias

from fastapi import Depends, Request
from starlette.datastructures import FormData, UploadFile

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.client.uploads import AT_ONCE, upload_part
from wayline.console.access.visitor import VisitorDependency, require_token

FILES_MAX: Final = 20
"""Of one job."""
FIELDS_MAX: Final = 40
TEXT_MAX_BYTES: Final = 1024 * 1024
"""Of what is typed, each."""
NAME_MAX_CHARS: Final = 500
KINDS: Final = ("image", "file")


@dataclass(frozen=True, slots=True)
class GivenFile:
    """A file that was uploaded for a job."""

    name: str
    type: str
    document_id: str
    sha256: str

    @property
    def part(self) -> dict[str, str]:
        """Return it as a part of a job's input."""
        return {"type": self.type, "document_id": self.document_id, "sha256": self.sha256}

    @property
    def written(self) -> str:
        """Write it as a form keeps it."""
        return json.dumps(asdict(self))


def read_back(form: FormData) -> list[GivenFile]:
    """Return the files that a form names from an earlier time; what is none of them is left out."""
    found = list[GivenFile]()
    for value in form.getlist("given")[:FILES_MAX]:
        try:
            given = GivenFile(**json.loads(value if isinstance(value, str) else ""))
        except (ValueError, TypeError, RecursionError):
            continue
        if given.type in KINDS and all(isinstance(one, str) for one in asdict(given).values()):
            found.append(given)
    return found


def files_in(form: FormData) -> list[UploadFile]:
    """Return the files that a form sends."""
    # A field without a file is sent all the same, as one without a name.
    return [one for one in form.getlist("file") if isinstance(one, UploadFile) and one.filename]


async def upload_all(client: Client, files: Sequence[UploadFile]) -> tuple[list[GivenFile], list[ApiError]]:
    """Upload files side by side; return those that a job can be given, in their order, and why others cannot."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def upload(file: UploadFile) -> GivenFile:
        name = PurePosixPath(file.filename or "").name[-NAME_MAX_CHARS:]
        async with gate:
            return GivenFile(name, **await upload_part(client, name, file.file))

    ended = await asyncio.gather(*map(upload, files), return_exceptions=True)
    for one in ended:
        if isinstance(one, BaseException) and not isinstance(one, ApiError):
            raise one
    return [one for one in ended if isinstance(one, GivenFile)], [one for one in ended if isinstance(one, ApiError)]


async def _sent(request: Request, visitor: VisitorDependency) -> AsyncIterator[FormData]:
    """Yield a form with files, which are on disk and not in memory. Raises ForeignForm."""
    async with request.form(max_files=FILES_MAX, max_fields=FIELDS_MAX, max_part_size=TEXT_MAX_BYTES) as form:
        require_token(form, visitor.session)
        yield form


FormWithFiles: TypeAlias = Annotated[FormData, Depends(_sent)]


def input_of(text: str, files: Sequence[GivenFile]) -> str | list[dict[str, Any]]:
    """Return a job's input: its text, after its files where it has some."""
    return [*(one.part for one in files), {"type": "text", "text": text}] if files else text
