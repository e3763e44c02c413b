"""A suspended program as bytes that any process may load, if it has the key and is the right one to do so.

The interpreter trusts what it loads. So a snapshot is signed, and nothing of it is parsed before its signature has been
verified.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from pydantic_monty import __version__ as INTERPRETER

from wayline.sandbox.errors import OtherInterpreter, OtherOwner, WrongSignature
from wayline.sandbox.program import Program, ProgramCall, Suspended

FORMAT = b"WLPROG1\n"
KEY_BYTES_MIN = 32
_SIGNATURE_BYTES = sha256().digest_size
_LENGTH_BYTES = 4


@dataclass(frozen=True, slots=True)
class SnapshotOwner:
    """Whose program a snapshot is of."""

    tenant: str
    job_id: str
    step: int
    call: str


class SnapshotKeys:
    """Keys that sign snapshots. The first signs; all verify, so that a key can be replaced while snapshots exist."""

    def __init__(self, keys: Sequence[tuple[str, bytes]]) -> None:
        if not keys:
            raise ValueError("no key is given")
        for name, key in keys:
            if len(key) < KEY_BYTES_MIN:
                raise ValueError(f"the key {name!r} has {len(key)} bytes; it needs at least {KEY_BYTES_MIN}")
        self._keys = dict(keys)
        if len(self._keys) < len(keys):
            raise ValueError("two keys have the same id")
        self.newest = keys[0][0]

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the ids of all keys, the one that signs first."""
        return tuple(self._keys)

    def sign(self, name: str, body: bytes) -> bytes | None:
        """Return the signature of `body`; None where the key is not known."""
        key = self._keys.get(name)
        return hmac.digest(key, FORMAT + body, "sha256") if key is not None else None

    def verify(self, signature: bytes, body: bytes) -> bool:
        """Return whether one of the keys signed `body`: each is tried, because its id stands in the body itself."""
        return any(
            hmac.compare_digest(signature, hmac.digest(key, FORMAT + body, "sha256")) for key in self._keys.values()
        )


def write_snapshot(suspended: Suspended, program: Program, owner: SnapshotOwner, keys: SnapshotKeys) -> bytes:
    """Return a suspended program as signed bytes."""
    fields = {
        "key": keys.newest,
        "interpreter": INTERPRETER,
        "owner": asdict(owner),
        "program": program.hash,
        "pending": [asdict(call) for call in suspended.pending],
        "handles": [[number, handle] for number, handle in suspended.handles.items()],
        "asked": suspended.asked,
        "printed": suspended.printed,
    }
    header = json.dumps(fields).encode()
    body = len(header).to_bytes(_LENGTH_BYTES, "big") + header + suspended.dump
    signature = keys.sign(keys.newest, body)
    assert signature is not None
    return FORMAT + signature + body


def read_snapshot(snapshot: bytes, program: Program, owner: SnapshotOwner, keys: SnapshotKeys) -> Suspended:
    """Return the suspended program in a snapshot.

    Raises WrongSignature, OtherInterpreter and OtherOwner: run the program again instead.
    """
    start = len(FORMAT) + _SIGNATURE_BYTES
    signature, body = snapshot[len(FORMAT) : start], snapshot[start:]
    known = snapshot.startswith(FORMAT) and keys.verify(signature, body)
    header = _header(body) if known else None
    if header is None:
        raise WrongSignature("the snapshot was changed or cut, or its key is not known here")
    if header["interpreter"] != INTERPRETER:
        raise OtherInterpreter(wrote=header["interpreter"], reads=INTERPRETER)
    for field, value in asdict(owner).items():
        if header["owner"].get(field) != value:
            raise OtherOwner(field={"job_id": "job"}.get(field, field))
    if header["program"] != program.hash:
        raise OtherOwner(field="program")
    return Suspended(
        dump=body[_LENGTH_BYTES + int.from_bytes(body[:_LENGTH_BYTES], "big") :],
        pending=tuple(ProgramCall(**call) for call in header["pending"]),
        handles=dict(header["handles"]),
        asked=header["asked"],
        printed=header["printed"],
    )


def _header(body: bytes) -> dict[str, Any] | None:
    length = int.from_bytes(body[:_LENGTH_BYTES], "big")
    try:
        header = json.loads(body[_LENGTH_BYTES : _LENGTH_BYTES + length])
    except (ValueError, RecursionError):
        return None
    return header if isinstance(header, dict) else None
