"""Files and folders become documents."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from wayline.standalone.client import Api, ApiError

KINDS = frozenset({".md", ".markdown", ".txt", ".rst", ".html", ".htm", ".pdf"})
AT_ONCE = 4
POLL_S = 0.2
WAIT_EACH_S = 30


@dataclass(frozen=True)
class File:
    """A file to ingest; `name` is what citations will call it."""

    path: Path
    name: str

    @property
    def document_id(self) -> str:
        """The same for the same name: ingesting a file again replaces its document."""
        return f"file_{sha256(self.name.encode()).hexdigest()[:24]}"


def find_files(paths: Iterable[Path]) -> Iterator[File]:
    """The files named, and those of a kind we read in the folders named; hidden folders are passed over."""
    for path in paths:
        if path.is_dir():
            for found in sorted(path.rglob("*")):
                inside = found.relative_to(path)
                if found.is_file() and found.suffix.lower() in KINDS and not _hidden(inside):
                    yield File(found, f"{_label(path)}/{inside.as_posix()}")
        else:
            yield File(path, _label(path))


def _label(path: Path) -> str:
    """A path as it was given, where that says something to others; its last part otherwise."""
    said = path.as_posix()
    return path.resolve().name if path.is_absolute() or ".." in path.parts or said == "." else said


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


async def ingest(
    api: Api, files: Iterable[File], *, done: Callable[[File, dict[str, Any]], None]
) -> list[tuple[File, dict[str, Any]]]:
    """Send files and wait until each is ready or has failed; `done` hears of each, the answer holds all in order."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(file: File) -> tuple[File, dict[str, Any]]:
        async with gate:
            document = await _ingest_one(api, file)
        done(file, document)
        return file, document

    return list(await asyncio.gather(*(one(file) for file in files)))


async def as_parts(api: Api, paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Upload files and name them as parts of a job's input. Raises ApiError for one that no job can be given."""
    return list(await asyncio.gather(*(_as_part(api, path) for path in paths)))


async def _as_part(api: Api, path: Path) -> dict[str, Any]:
    content = await asyncio.to_thread(path.read_bytes)
    # By its content too: a job keeps what it was given, and the same file again is no second document.
    digest = sha256(path.name.encode() + b"\0" + content).hexdigest()
    document = await _ingest_one(api, File(path, path.name), document_id=f"given_{digest[:24]}")
    if document.get("sha256") is None:
        raise ApiError(f"{path}: {document['error']}", code="document_unusable")
    kind = "file" if document["width"] is None else "image"
    return {"type": kind, "document_id": document["document_id"], "sha256": document["sha256"]}


async def _ingest_one(api: Api, file: File, *, document_id: str | None = None) -> dict[str, Any]:
    try:
        content = await asyncio.to_thread(file.path.read_bytes)
    except OSError as error:
        return _failed(file, error.strerror or str(error))
    fields = {"name": file.name, "document_id": document_id or file.document_id}
    try:
        document = await api.post("/v1/documents", fields, file=(file.path.name, content), params={"wait": WAIT_EACH_S})
        while document["status"] not in ("ready", "failed"):
            await asyncio.sleep(POLL_S)
            document = await api.get(f"/v1/documents/{document['document_id']}")
    except ApiError as error:
        # Without a status nothing answered at all: the other files would fare no better.
        if error.status is None:
            raise
        return _failed(file, str(error))
    return document


def _failed(file: File, reason: str) -> dict[str, Any]:
    return {"document_id": file.document_id, "name": file.name, "status": "failed", "error": reason, "chunks_done": 0}
