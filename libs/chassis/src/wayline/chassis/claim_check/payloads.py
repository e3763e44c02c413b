"""The object stores `PAYLOADS` and `UPLOADS`: in the format of NATS' own object stores, used with fewer rights.

The client library's object store creates a push consumer to read and purges to write. A consumer delivers on whatever
subject its creator names and a purge takes what is not its own, so no service may create one, and nobody may purge
`PAYLOADS`: the router alone may erase single messages of it. Retrieval may erase those of `UPLOADS`, which holds
nothing but uploads of documents.
"""

from __future__ import annotations

import asyncio
import secrets
from base64 import b64decode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from hashlib import sha256
from io import BytesIO
from typing import Any

import orjson
from nats import errors as nats_errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.errors import APIError, NotFoundError

from wayline.chassis.nats_client.direct_get import read_batch
from wayline.chassis.topology import PAYLOADS

CHUNK_BYTES = 128 * 1024
READS_MAX = 100
READ_MAX_BYTES = 8 * 1024 * 1024
"""Of one bulk read: what a reader may have to hold at once."""
TIMEOUT_S = 2.0
INFO_TIMEOUT_S = 0.5
"""For how full a store is: without that it is used all the same."""
NO_MESSAGE = 10037
NOT_DELETED, NOT_THERE = 10057, "no message found"
BEHIND_RETRY_S = 0.05
"""The pause before another look for a chunk that has not come: a replica may be behind, or the chunk is gone."""
DIGEST = "SHA-256="

Ask = Callable[..., Awaitable[Msg]]


class Payloads:
    """Objects of a bucket by name; the caller bounds how long a read may take."""

    def __init__(self, nc: Client, api: str, ask: Ask, *, bucket: str = PAYLOADS, timeout_s: float = TIMEOUT_S) -> None:
        self._nc = nc
        self._api = api
        self._ask = ask
        self._bucket = bucket
        self._stream = f"OBJ_{bucket}"
        self._metas = f"$O.{bucket}.M."
        self._timeout_s = timeout_s

    async def has(self, name: str) -> bool:
        """Return whether there is an object of this name."""
        return await self._find(name) is not None

    async def size(self, name: str) -> int:
        """Return the bytes of an object. Raises NotFoundError where there is none."""
        meta = await self._find(name)
        if meta is None:
            raise NotFoundError
        return int(meta["size"])

    async def put(self, name: str, data: bytes) -> None:
        """Store an object. Raises nats-py's errors, APIError where the store refuses."""
        await self.put_pieces(name, _chunks_of(data))

    async def put_pieces(self, name: str, pieces: AsyncIterator[bytes]) -> None:
        """Store an object of pieces of CHUNK_BYTES at most, one in memory at a time. Raises as `put` does."""
        nuid, digest, size, chunks = secrets.token_hex(11), sha256(), 0, 0
        async for piece in pieces:
            digest.update(piece)
            size, chunks = size + len(piece), chunks + 1
            await self._publish(self._chunks(nuid), piece)
        # Its name comes last: an object that is there is whole.
        meta = {
            "name": name,
            "bucket": self._bucket,
            "nuid": nuid,
            "size": size,
            "chunks": chunks,
            "digest": DIGEST + urlsafe_b64encode(digest.digest()).decode(),
            "mtime": datetime.now(UTC).isoformat(),
            "options": {"max_chunk_size": CHUNK_BYTES},
        }
        await self._publish(self._meta(name), orjson.dumps(meta))

    async def get(self, name: str) -> bytes:
        """Read an object; waits for chunks that are not there. Raises NotFoundError where it has no name."""
        meta = await self._find(name)
        if meta is None:
            raise NotFoundError
        # It gives away what it holds: joined from a list, an object would be in memory twice.
        whole = BytesIO()
        size, after = 0, 0
        while size < meta["size"]:
            found = await self._read(self._chunks(meta["nuid"]), after=after)
            if not found:
                await asyncio.sleep(BEHIND_RETRY_S)
            for sequence, chunk in found:
                whole.write(chunk)
                size, after = size + len(chunk), sequence
        return whole.getvalue()

    async def delete(self, name: str) -> None:
        """Erase an object: its bytes are overwritten. Raises NotFoundError where there is none.

        The chunks go first: after a crash its name is still there, and with it what they are called.
        """
        metas = await self._stored(self._meta(name))
        if not metas:
            raise NotFoundError
        for _, body in metas:
            chunks = self._chunks(orjson.loads(body)["nuid"])
            for sequence, _ in await self._stored(chunks):
                await self._erase(sequence)
        for sequence, _ in metas:
            await self._erase(sequence)

    async def names(self) -> AsyncIterator[str]:
        """Yield the name of every object."""
        offset = 0
        while True:
            request = {"subjects_filter": f"{self._metas}*", "offset": offset}
            answer = await self._call(f"{self._api}.STREAM.INFO.{self._stream}", request)
            subjects = (answer or {}).get("state", {}).get("subjects") or {}
            for subject in subjects:
                yield urlsafe_b64decode(subject.rpartition(".")[2]).decode()
            offset += len(subjects)
            if not subjects or offset >= (answer or {}).get("total", 0):
                return

    async def _stored(self, subject: str) -> list[tuple[int, bytes]]:
        """Return every message of a subject with its sequence, as the leader knows them."""
        found: list[tuple[int, bytes]] = []
        request = {"seq": 1, "next_by_subj": subject}
        while answer := await self._call(f"{self._api}.STREAM.MSG.GET.{self._stream}", request, missing=True):
            message = answer["message"]
            body = b64decode(message.get("data", "")) if subject.startswith(self._metas) else b""
            found.append((message["seq"], body))
            request["seq"] = message["seq"] + 1
        return found

    async def _erase(self, sequence: int) -> None:
        """Overwrite one message. A purge would take it out of the stream and leave its bytes in the files."""
        request = {"seq": sequence, "no_erase": False}
        await self._call(f"{self._api}.STREAM.MSG.DELETE.{self._stream}", request, missing=True)

    async def fill(self) -> float | None:
        """Return how full the store is, from 0 to 1; None where that cannot be told, or where it has no limit."""
        try:
            info = await self._call(f"{self._api}.STREAM.INFO.{self._stream}", {}, within_s=INFO_TIMEOUT_S)
        except (TimeoutError, nats_errors.Error):
            return None
        most = info["config"].get("max_bytes", -1) if info else -1
        return info["state"]["bytes"] / most if info and most > 0 else None

    async def _find(self, name: str) -> dict[str, Any] | None:
        """Read the newest metadata of a name from the leader: a record is read as soon as it is stored."""
        request = {"last_by_subj": self._meta(name)}
        answer = await self._call(f"{self._api}.STREAM.MSG.GET.{self._stream}", request, missing=True)
        meta = orjson.loads(b64decode(answer["message"].get("data", ""))) if answer else None
        return None if meta is None or meta.get("deleted") else meta

    async def _read(self, subject: str, *, after: int) -> list[tuple[int, bytes]]:
        request = {"seq": after + 1, "next_by_subj": subject, "batch": READS_MAX, "max_bytes": READ_MAX_BYTES}
        got = await read_batch(self._nc, f"{self._api}.DIRECT.GET.{self._stream}", request, timeout_s=self._timeout_s)
        if got is None:
            raise nats_errors.TimeoutError
        return [(int((message.headers or {})["Nats-Sequence"]), message.data) for message in got.messages]

    async def _publish(self, subject: str, body: bytes) -> None:
        _raise_refusal(orjson.loads((await self._ask(subject, body, timeout_s=self._timeout_s)).data))

    async def _call(
        self, subject: str, request: dict[str, Any], *, missing: bool = False, within_s: float | None = None
    ) -> dict[str, Any] | None:
        """Ask JetStream; None: `missing` is allowed and there is no such message."""
        timeout_s = self._timeout_s if within_s is None else within_s
        answer = orjson.loads((await self._ask(subject, orjson.dumps(request), timeout_s=timeout_s)).data)
        if missing and is_missing(answer):
            return None
        _raise_refusal(answer)
        return answer

    def _chunks(self, nuid: str) -> str:
        return f"$O.{self._bucket}.C.{nuid}"

    def _meta(self, name: str) -> str:
        return f"{self._metas}{urlsafe_b64encode(name.encode()).decode()}"


def is_missing(answer: dict[str, Any]) -> bool:
    """Return whether JetStream says that there is no such message, to read or to delete."""
    error = answer.get("error", {})
    return error.get("err_code") == NO_MESSAGE or (
        error.get("err_code") == NOT_DELETED and error.get("description") == NOT_THERE
    )


async def _chunks_of(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), CHUNK_BYTES):
        yield data[start : start + CHUNK_BYTES]


def _raise_refusal(answer: dict[str, Any]) -> None:
    if "error" in answer:
        APIError.from_error(answer["error"])
