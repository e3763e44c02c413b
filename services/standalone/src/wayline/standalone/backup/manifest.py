"""What a backup says of itself; written last, so that one without it was never finished."""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from typing import Any, Final

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from wayline.standalone.errors import BackupInvalid

FORMAT: Final = 1
FILE: Final = "manifest.json"


class BackupPart(BaseModel):
    """One file of a backup."""

    model_config = ConfigDict(frozen=True)

    bytes: int
    sha256: str


class StreamPart(BaseModel):
    """A stream as it was when its snapshot began."""

    model_config = ConfigDict(frozen=True)

    name: str
    config: dict[str, Any]
    state: dict[str, Any]
    consumers: list[dict[str, Any]] = Field(description="Their configurations; all are durable.")
    heard: dict[str, int] = Field(description="By consumer, the sequence up to which all was acked before the backup.")
    last_sequence: int = Field(description="The stream's last sequence at the end of the backup.")

    @property
    def part(self) -> str:
        return f"streams/{self.name}"


class Manifest(BaseModel):
    """The table of contents of a backup."""

    model_config = ConfigDict(frozen=True)

    format: int = FORMAT
    wayline: str = Field(description="The version that took it.")
    began_at: datetime
    ended_at: datetime
    schemas: list[str]
    dumped_by: int = Field(description="The version of the `pg_dump` that read the tables.")
    logs_before: int = Field(description="The last sequence of the logs before the tables were read.")
    streams: list[StreamPart] = Field(description="In the order in which they were taken.")
    database: str = Field(default="", description="Of which server and database the tables are; empty: not told.")
    credentials: bool = Field(description="Whether keys, seeds and passwords are inside.")
    parts: dict[str, BackupPart]

    def encode(self) -> bytes:
        """Return the manifest as its file holds it: with its own hash."""
        body = self.model_dump(mode="json")
        return orjson.dumps({"sha256": _hash(body), "manifest": body}, option=orjson.OPT_INDENT_2) + b"\n"

    @classmethod
    def decode(cls, text: bytes, *, where: str) -> Manifest:
        """Read a manifest. Raises BackupInvalid where it is damaged or of another format."""
        try:
            file = orjson.loads(text)
            body, told = file["manifest"], file["sha256"]
        except (ValueError, KeyError, TypeError):
            raise BackupInvalid(f"{where}: its manifest cannot be read. Take another backup.") from None
        found = body.get("format") if isinstance(body, dict) else None
        if isinstance(found, int) and found > FORMAT:
            raise BackupInvalid(
                f"{where} has format {found}, and this Wayline reads {FORMAT}: restore it with the version that took "
                f"it ({body.get('wayline')}) or a newer one."
            )
        if told != _hash(body):
            raise BackupInvalid(f"{where}: its manifest is damaged. Take another backup.")
        if found != FORMAT:
            raise BackupInvalid(
                f"{where} has format {found}, which this Wayline no longer reads: restore it with version "
                f"{body.get('wayline')}, then upgrade."
            )
        try:
            return cls.model_validate(body)
        except ValidationError:
            raise BackupInvalid(f"{where}: its manifest is not one of format {FORMAT}. Take another backup.") from None


def _hash(body: Any) -> str:
    return sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()
