"""Upload files and folders as documents, or as parts of a job's input."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatch
from hashlib import sha256
from mimetypes import guess_type
from pathlib import Path
from typing import Any, BinaryIO, Literal

from wayline.client.client import Client
from wayline.client.documents import document_path
from wayline.client.errors import ApiError

KINDS = frozenset(
    ".md .markdown .txt .rst .html .htm .pdf .csv .tsv .docx .docm .pptx .pptm .xlsx .xlsm .xlsb .xls .odt .ods .odp "
    ".epub .rtf .eml .ipynb .srt .vtt .json .log".split()
)
"""Sent by their name alone: old encodings are read too, and a damaged one is an error. All else by its bytes."""
HEAD_BYTES = 8_192
IMAGES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF")
AT_ONCE = 4
BLOCK_BYTES = 1024 * 1024
POLL_S = 0.2
WAIT_EACH_S = 30


@dataclass(frozen=True)
class File:
    """A file to ingest; `name` is what citations will call it."""

    path: Path
    name: str

    @property
    def document_id(self) -> str:
        """Return an id that depends on the name only: ingesting a file again replaces its document."""
        return document_id_of(self.name)


def document_id_of(name: str) -> str:
    """Return the id of a file's document: a file of the same name takes its place."""
    return f"file_{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"


@dataclass(frozen=True)
class Skipped:
    """A file of a folder that is not sent, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Found:
    """The files to ingest, and those of the folders that are not."""

    files: list[File]
    skipped: list[Skipped]


def find_files(paths: Iterable[Path], *, include: Iterable[str] = (), exclude: Iterable[str] = ()) -> Found:
    """Return the named files, and the readable files of the named folders without hidden ones.

    Of folders only what matches one of `include`, where there is one, and none of `exclude`: patterns for the name of a
    file or folder, or with a slash for the path in the folder.
    """
    included, excluded = tuple(include), tuple(exclude)
    found = Found([], [])
    for path in paths:
        if not path.is_dir():
            found.files.append(File(path, _label(path)))
            continue
        for file in sorted(path.rglob("*")):
            inside = file.relative_to(path)
            if not file.is_file() or _hidden(inside):
                continue
            if (included and not _matches(inside, included)) or _matches(inside, excluded):
                continue
            name = f"{_label(path)}/{inside.as_posix()}"
            reason = _unreadable(file)
            if reason is None:
                found.files.append(File(file, name))
            else:
                found.skipped.append(Skipped(name, reason))
    return found


def _matches(path: Path, patterns: Iterable[str]) -> bool:
    """Return whether a path in a folder, or one of the folders that it is in, matches one of the patterns."""
    whole = path.as_posix()
    return any(
        fnmatch(whole, pattern) if "/" in pattern else any(fnmatch(part, pattern) for part in path.parts)
        for pattern in patterns
    )


def _unreadable(path: Path) -> str | None:
    """Return why nothing could be found in a file, by its name and its first bytes; None where it can be read."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        return error.strerror or str(error)
    if not head:
        return "it is empty"
    if path.suffix.lower() in KINDS or head.startswith(b"%PDF-"):
        return None
    if head.startswith(IMAGES):
        return "an image, and search finds nothing in images; name it by itself to keep it for jobs"
    return None if _is_text(head) else "binary data of no kind that is read"


def _is_text(head: bytes) -> bool:
    """Return whether the beginning of a file is text: with a byte order mark, or UTF-8 without a NUL."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return True
    try:
        # The last character may be cut in two.
        return "\0" not in codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False


def _label(path: Path) -> str:
    """Return a relative path as it was given, and only the last part of any other path."""
    given = path.as_posix()
    return path.resolve().name if path.is_absolute() or ".." in path.parts or given == "." else given


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


async def upload_documents(
    client: Client,
    files: Iterable[File],
    *,
    done: Callable[[File, dict[str, Any]], None],
    trust: Literal["trusted", "untrusted"] | None = None,
) -> list[tuple[File, dict[str, Any]]]:
    """Upload files and wait until each is ready or has failed; `done` is called with each.

    `trust`: whether they hold the words of strangers; None leaves that to the gateway.
    """
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(file: File) -> tuple[File, dict[str, Any]]:
        async with gate:
            document = await _upload(client, file, trust=trust)
        done(file, document)
        return file, document

    return list(await asyncio.gather(*(one(file) for file in files)))


async def add_urls(
    client: Client,
    urls: Iterable[str],
    *,
    done: Callable[[str, dict[str, Any]], None],
    trust: Literal["trusted", "untrusted"] | None = None,
) -> list[dict[str, Any]]:
    """Have documents fetched from addresses, and wait until each is ready or has failed; `done` is called with each."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(url: str) -> dict[str, Any]:
        body = {"url": url} | ({} if trust is None else {"trust": trust})
        async with gate:
            try:
                document = await _ended(client, await client.post("/v1/documents", body, params={"wait": WAIT_EACH_S}))
            except ApiError as error:
                if error.status is None:
                    raise
                document = {"document_id": "", "name": url, "status": "failed", "error": str(error), "chunks_done": 0}
        done(url, document)
        return document

    return list(await asyncio.gather(*map(one, urls)))


async def _ended(client: Client, document: dict[str, Any]) -> dict[str, Any]:
    """Return a document once it is ready or has failed."""
    while document["status"] not in ("ready", "failed"):
        await asyncio.sleep(POLL_S)
        document = await client.get(document_path(document["document_id"]))
    return document


async def upload_parts(client: Client, paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Upload files and name them as parts of a job's input. Raises ApiError for one that no job can be given."""
    return list(await asyncio.gather(*(_upload_part(client, path) for path in paths)))


async def _upload_part(client: Client, path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return await upload_part(client, path.name, file)


async def upload_part(client: Client, name: str, file: BinaryIO) -> dict[str, Any]:
    """Upload an open file and name it as a part of a job's input. Raises ApiError for one that no job can be given."""
    # By its content too: a job keeps what it was given, and the same file again is no second document.
    fields = {"name": name, "document_id": f"given_{(await asyncio.to_thread(_digest, name, file))[:24]}"}
    kept = (name, file, guess_type(name)[0] or "application/octet-stream")
    try:
        document = await client.post("/v1/documents", fields, file=kept, params={"wait": WAIT_EACH_S})
        document = await _ended(client, document)
    except ApiError as error:
        if error.status is None:
            raise
        raise ApiError(f"{name}: {error}", code=error.code, status=error.status) from None
    if document.get("sha256") is None:
        raise ApiError(f"{name}: {document['error']}", code="document_unusable", status=422)
    kind = "file" if document["width"] is None else "image"
    return {"type": kind, "document_id": document["document_id"], "sha256": document["sha256"]}


def _digest(name: str, file: BinaryIO) -> str:
    digest = sha256(name.encode("utf-8", "surrogatepass") + b"\0")
    while block := file.read(BLOCK_BYTES):
        digest.update(block)
    file.seek(0)
    return digest.hexdigest()


async def _upload(
    client: Client, file: File, *, document_id: str | None = None, trust: str | None = None
) -> dict[str, Any]:
    try:
        content = await asyncio.to_thread(file.path.read_bytes)
    except OSError as error:
        return _failed(file, error.strerror or str(error))
    fields = {"name": file.name, "document_id": document_id or file.document_id}
    if trust is not None:
        fields["trust"] = trust
    try:
        document = await client.post(
            "/v1/documents", fields, file=(file.path.name, content), params={"wait": WAIT_EACH_S}
        )
        document = await _ended(client, document)
    except ApiError as error:
        # Without a status nothing answered at all: the other files would fare no better.
        if error.status is None:
            raise
        return _failed(file, str(error))
    return document


def _failed(file: File, reason: str) -> dict[str, Any]:
    return {"document_id": file.document_id, "name": file.name, "status": "failed", "error": reason, "chunks_done": 0}
