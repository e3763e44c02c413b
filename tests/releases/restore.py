"""Put the recording of a release onto a bus and into a database, as if its processes had just stopped."""

from __future__ import annotations

import base64
import io
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import asyncpg
from nats.js import JetStreamContext

from wayline.standalone.services import MEMBERS
from wayline.store import migrate
from wayline.testkit.databases import PASSWORD, Database, role_of

HERE: Final = Path(__file__).parent
NOT_AGAIN: Final = {"LATER", "KV_PROVIDERS"}
"""Streams that are read and not filled again: what they have is due by now, or of processes that are gone."""
REFUSED_HEADERS: Final = {"Nats-Rollup", "Nats-Expected-Last-Subject-Sequence", "Nats-Msg-Id"}
"""What told the server to do something when the message was stored."""
OPEN: Final = {f"events.default.{job_id}" for job_id in ("parked", "program", "queued")}
"""The logs of jobs that go on: they would be over by now. Those of ended ones stay: a session knows their hashes."""
MOMENT: Final = re.compile(rb"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")
FILLER: Final = b"{}"


@dataclass(frozen=True)
class StoredMessage:
    """A message as a release left it in a stream."""

    stream: str
    sequence: int
    subject: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class StoredTable:
    """The rows of a table as a release left them, in COPY's text format."""

    name: str
    columns: dict[str, str]
    rows: list[bytes]


@dataclass(frozen=True)
class Release:
    """The recording of one release."""

    directory: Path

    @property
    def version(self) -> str:
        return self.directory.name

    @property
    def about(self) -> dict[str, str]:
        return json.loads((self.directory / "about.json").read_text())

    @property
    def recorded_at(self) -> datetime:
        return datetime.fromisoformat(self.about["recorded_at"])

    def migrations(self) -> set[tuple[str, str]]:
        """Return the schema and the file of each of its migrations."""
        lines = (line.split() for line in (self.directory / "migrations.txt").read_text().splitlines())
        return {(schema, file) for _, schema, file in lines}

    def messages(self) -> Iterator[StoredMessage]:
        """Yield every message of every stream, by stream and sequence."""
        for line in (self.directory / "bus.jsonl").read_text().splitlines():
            one = json.loads(line)
            body = one["text"].encode() if "text" in one else base64.b64decode(one["base64"])
            yield StoredMessage(one["stream"], one["seq"], one["subject"], one["headers"], body)

    def tables(self) -> Iterator[StoredTable]:
        """Yield the tables that had rows."""
        head: dict[str, Any] | None = None
        rows: list[bytes] = []
        for line in (self.directory / "tables.txt").read_bytes().splitlines(keepends=True):
            if line.startswith(b"# {"):
                if head is not None:
                    yield StoredTable(head["table"], head["columns"], rows)
                head, rows = json.loads(line[2:]), []
            else:
                rows.append(line)
        assert head is not None
        yield StoredTable(head["table"], head["columns"], rows)


def releases() -> list[Release]:
    """Return the releases that were recorded, the newest last."""
    found = [Release(path.parent) for path in HERE.glob("*/bus.jsonl")]
    return sorted(found, key=lambda one: tuple(int(part) for part in one.version.split(".")))


async def migrate_as_then(database: Database, release: Release, workplace: Path) -> None:
    """Make the tables that a release had: its migrations are among today's, with the same text."""
    known = release.migrations()
    for member in MEMBERS:
        if member.schema is None:
            continue
        folder = workplace / member.schema / "migrations"
        folder.mkdir(parents=True)
        for file in member.migrations().glob("*.sql"):
            if (member.schema, file.name) in known:
                shutil.copy(file, folder)
        role = role_of(member.identity)
        await migrate(
            database.dsn, schema=member.schema, role=role, password=PASSWORD, directory=folder, vector=member.vector
        )


async def fill_tables(conn: asyncpg.Connection, release: Release) -> None:
    """Write a release's rows, as old as if it had stopped less than a day ago: what is kept for days is not over."""
    shift = timedelta(days=(datetime.now(UTC) - release.recorded_at).days)
    await conn.execute("SET session_replication_role = replica")
    await conn.fetch("SELECT * FROM tracing.keep_partitions(3)")
    for table in release.tables():
        rows = b"".join(_later(row, list(table.columns.values()), shift) for row in table.rows)
        schema, name = table.name.split(".")
        # What a migration has put there stands among the rows.
        await conn.execute(f"DELETE FROM {table.name}")
        await conn.copy_to_table(
            name, schema_name=schema, source=io.BytesIO(rows), columns=list(table.columns), format="text"
        )
        for column in table.columns:
            await conn.execute(
                f"""SELECT setval(pg_get_serial_sequence('{table.name}', '{column}'), max("{column}")::bigint)
                FROM {table.name} WHERE pg_get_serial_sequence('{table.name}', '{column}') IS NOT NULL
                HAVING max("{column}") IS NOT NULL"""
                if table.columns[column] in {"bigint", "integer"}
                else "SELECT 1"
            )


def _later(row: bytes, types: list[str], shift: timedelta) -> bytes:
    cells = row.rstrip(b"\n").split(b"\t")
    for at, (cell, kind) in enumerate(zip(cells, types, strict=True)):
        if cell == rb"\N" or not shift:
            continue
        if kind == "timestamp with time zone" and cell not in {b"infinity", b"-infinity"}:
            text = cell.decode()
            moment = datetime.fromisoformat(text if text[-6] in "+-" else f"{text}:00")
            cells[at] = (moment + shift).isoformat().encode()
        elif kind == "date":
            cells[at] = (datetime.fromisoformat(cell.decode()) + shift).date().isoformat().encode()
    return b"\t".join(cells) + b"\n"


async def fill_streams(js: JetStreamContext, release: Release) -> None:
    """Store a release's messages under the sequences that they had: tickets and logs name each other by those."""
    passed = datetime.now(UTC) - release.recorded_at
    for message in release.messages():
        if message.stream in NOT_AGAIN:
            continue
        last = (await js.stream_info(message.stream)).state.last_seq
        while last < message.sequence - 1:
            gap = (await js.publish(message.subject, FILLER)).seq
            await js.delete_msg(message.stream, gap)
            last = gap
        headers = {name: value for name, value in message.headers.items() if name not in REFUSED_HEADERS}
        body = _moved(message.body, passed) if message.subject in OPEN or message.stream == "RUN" else message.body
        stored = await js.publish(message.subject, body, headers=headers or None)
        assert stored.seq == message.sequence, f"{message.stream} {stored.seq} is not {message.sequence}"


def _moved(body: bytes, passed: timedelta) -> bytes:
    """Return a record, or a ticket that has one in it, with every moment in it so much later."""

    def later(found: re.Match[bytes]) -> bytes:
        return (datetime.fromisoformat(found[0].decode()) + passed).isoformat().encode()

    return MOMENT.sub(later, body)
