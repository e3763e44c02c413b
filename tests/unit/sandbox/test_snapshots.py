"""Snapshots are loaded by who may, unchanged, or not at all."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from wayline.sandbox import (
    OtherInterpreter,
    OtherOwner,
    Program,
    ProgramCall,
    SnapshotKeys,
    SnapshotOwner,
    Suspended,
    WrongSignature,
    make_stubs,
    read_snapshot,
    snapshots,
    write_snapshot,
)

PROGRAM = Program("await t()", make_stubs([]), datetime(2026, 1, 1, tzinfo=UTC), "seed")
OWNER = SnapshotOwner("acme", "job_1", 3, "1")
WAITING = Suspended(b"state", (ProgramCall(2, "t", {"a": [1.5]}),), {2: 7}, 2, "printed é")
OLD, NEW = ("2026-01", b"o" * 32), ("2026-02", b"n" * 32)


def test_a_snapshot_is_read_as_it_was_written():
    snapshot = write_snapshot(WAITING, PROGRAM, OWNER, SnapshotKeys([OLD]))

    assert read_snapshot(snapshot, PROGRAM, OWNER, SnapshotKeys([OLD])) == WAITING


def test_the_newest_key_signs_and_older_ones_verify():
    before = write_snapshot(WAITING, PROGRAM, OWNER, SnapshotKeys([OLD]))
    after = write_snapshot(WAITING, PROGRAM, OWNER, SnapshotKeys([NEW, OLD]))

    assert read_snapshot(before, PROGRAM, OWNER, SnapshotKeys([NEW, OLD])) == WAITING
    assert read_snapshot(after, PROGRAM, OWNER, SnapshotKeys([NEW])) == WAITING
    with pytest.raises(WrongSignature):
        read_snapshot(before, PROGRAM, OWNER, SnapshotKeys([NEW]))


def test_every_changed_bit_is_refused():
    keys = SnapshotKeys([OLD])
    snapshot = write_snapshot(WAITING, PROGRAM, OWNER, keys)

    for place in range(len(snapshot)):
        changed = bytearray(snapshot)
        changed[place] ^= 1
        with pytest.raises(WrongSignature):
            read_snapshot(bytes(changed), PROGRAM, OWNER, keys)


def test_nothing_is_parsed_before_the_signature_is_verified(monkeypatch: pytest.MonkeyPatch):
    snapshot = write_snapshot(WAITING, PROGRAM, OWNER, SnapshotKeys([OLD]))
    monkeypatch.setattr(snapshots, "_header", lambda _: pytest.fail("parsed"))

    with pytest.raises(WrongSignature):
        read_snapshot(snapshot, PROGRAM, OWNER, SnapshotKeys([NEW]))


@pytest.mark.parametrize("cut", [b"", b"x", b"WLPROG1\n"])
def test_what_is_no_snapshot_is_refused(cut: bytes):
    with pytest.raises(WrongSignature):
        read_snapshot(cut, PROGRAM, OWNER, SnapshotKeys([OLD]))


def test_every_shorter_snapshot_is_refused():
    keys = SnapshotKeys([OLD])
    snapshot = write_snapshot(WAITING, PROGRAM, OWNER, keys)

    for size in range(len(snapshot)):
        with pytest.raises(WrongSignature):
            read_snapshot(snapshot[:size], PROGRAM, OWNER, keys)


@pytest.mark.parametrize(
    ("owner", "named"),
    [
        (replace(OWNER, tenant="other"), "another tenant"),
        (replace(OWNER, job_id="job_2"), "another job"),
        (replace(OWNER, step=4), "another step"),
        (replace(OWNER, call="2"), "another call"),
    ],
)
def test_another_owner_is_refused(owner: SnapshotOwner, named: str):
    keys = SnapshotKeys([OLD])
    snapshot = write_snapshot(WAITING, PROGRAM, OWNER, keys)

    with pytest.raises(OtherOwner, match=named):
        read_snapshot(snapshot, PROGRAM, owner, keys)


@pytest.mark.parametrize(
    "changed", [{"code": "await u()"}, {"seed": "other"}, {"now": datetime(2027, 1, 1, tzinfo=UTC)}]
)
def test_another_program_is_refused(changed: dict[str, object]):
    keys = SnapshotKeys([OLD])
    snapshot = write_snapshot(WAITING, PROGRAM, OWNER, keys)

    with pytest.raises(OtherOwner, match="another program"):
        read_snapshot(snapshot, replace(PROGRAM, **changed), OWNER, keys)


def test_another_interpreter_is_refused(monkeypatch: pytest.MonkeyPatch):
    keys = SnapshotKeys([OLD])
    snapshot = write_snapshot(WAITING, PROGRAM, OWNER, keys)
    monkeypatch.setattr(snapshots, "INTERPRETER", "1.5.0")

    with pytest.raises(OtherInterpreter, match=r"written by interpreter 1\.4"):
        read_snapshot(snapshot, PROGRAM, OWNER, keys)


@pytest.mark.parametrize("keys", [[], [("a", b"short")], [("a", b"x" * 32), ("a", b"y" * 32)]])
def test_keys_that_protect_nothing_are_refused(keys: list[tuple[str, bytes]]):
    with pytest.raises(ValueError, match="key"):
        SnapshotKeys(keys)
