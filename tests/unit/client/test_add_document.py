"""A document's file is sent in blocks, whatever its size."""

from __future__ import annotations

import asyncio
import io
import json

from wayline.client import Address, Client
from wayline.client.documents import add_document

BLOCK_MAX_BYTES = 1024 * 1024


class Counted(io.BytesIO):
    """A file that notes how much was read of it at a time."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.asked: list[int] = []

    def read(self, size: int | None = -1, /) -> bytes:
        self.asked.append(-1 if size is None else size)
        return super().read(size)


async def test_an_open_file_is_sent_in_blocks():
    bodies = list[bytes]()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        [length] = [line.partition(": ")[2] for line in head.splitlines() if line.startswith("content-length")]
        bodies.append(await reader.readexactly(int(length)))
        answer = json.dumps({"document_id": "d1"}).encode()
        writer.write(b"HTTP/1.1 202 Accepted\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(answer) + answer)
        await writer.drain()
        writer.close()

    file = Counted(b"line\n" * 600_000)
    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with Client(Address(url)) as client:
            said = {"name": "a.txt", "audience": ["ann"]}
            added = await add_document(client, said, file=("a.txt", file, "text/plain"))

    assert added == {"document_id": "d1"}
    assert len(file.asked) > 1 and all(0 < size <= BLOCK_MAX_BYTES for size in file.asked)
    assert b'name="audience"\r\n\r\n["ann"]' in bodies[0] and bodies[0].count(b"line\n") == 600_000
