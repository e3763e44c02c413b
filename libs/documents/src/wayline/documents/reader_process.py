"""Read documents of strangers, as a process of its own: `python -I -m wayline.documents.reader_process MEMORY_BYTES`.

What parses hostile bytes may hang, use all memory or crash. Here that harms nothing else: the pool ends
this process and starts another. It sees no settings, keeps nothing, writes no file, and ends when its input does, when
the process that started it ends, or when a document has used the processor for longer than it may.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, BinaryIO

from wayline.documents.errors import Unreadable
from wayline.documents.readable import HELLO, LENGTH_BYTES, PageTimeout, ReadableDocument, ReadLimits

FILES_MAX = 64
CPU_GRACE_S = 5
"""Beyond a document's time, before the system ends this process, where its pool has not."""
PR_SET_PDEATHSIG = 1


def main(incoming: BinaryIO, outgoing: BinaryIO, memory_max_bytes: int) -> None:
    """Answer one document after the other: a length and JSON, then a length and the bytes."""
    _confine(memory_max_bytes)
    # Ready: only from here on a document's time counts.
    outgoing.write(HELLO)
    outgoing.flush()
    while (about := _frame(incoming)) is not None and (content := _frame(incoming)) is not None:
        answer = _read(json.loads(about), content)
        encoded = json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace")
        outgoing.write(len(encoded).to_bytes(LENGTH_BYTES, "big") + encoded)
        outgoing.flush()


def _confine(memory_max_bytes: int) -> None:
    # uvloop leaves copies of the starting process's files open.
    os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    for what, most in (
        (resource.RLIMIT_AS, memory_max_bytes),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, FILES_MAX),
    ):
        resource.setrlimit(what, (most, most))
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit(1)


def _frame(incoming: BinaryIO) -> bytes | None:
    head = incoming.read(LENGTH_BYTES)
    if len(head) < LENGTH_BYTES:
        return None
    return incoming.read(int.from_bytes(head, "big"))


def _read(about: dict[str, Any], content: bytes) -> dict[str, Any]:
    limits = ReadLimits(**about["limits"])
    _bound_cpu(limits.document_s)
    try:
        from wayline.documents.decode_file import FileToRead, decode_file

        file = FileToRead(content, about["charset"], about["url"], links=about["links"])
        with _alarms():
            return asdict(_checked(decode_file(file, about["kind"], limits, lambda _: _page_clock(limits.page_s))))
    except Unreadable as error:
        return {"error": str(error)}
    except MemoryError:
        # It may be in pieces now: another process reads the next document.
        return {"error": "Reading the document takes more memory than it may: split it.", "ends": True}


def _checked(found: ReadableDocument) -> ReadableDocument:
    """Encode the texts once: what fails here is told as the document's fault."""
    for page in found.pages:
        page.text.encode()
    return found


def _bound_cpu(seconds: float) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime + seconds) + CPU_GRACE_S
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


@contextmanager
def _alarms() -> Iterator[None]:
    def ring(*_: object) -> None:
        raise PageTimeout

    before = signal.signal(signal.SIGALRM, ring)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _page_clock(seconds: float) -> Iterator[None]:
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer, int(sys.argv[1]))
