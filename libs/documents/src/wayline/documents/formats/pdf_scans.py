"""Read the text of a scanned page with tesseract, which gets the page's pictures on its input and writes no file."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from wayline.documents.readable import ReadLimits

PICTURES_MAX = 32
"""Of one page: some scanners cut pages into stripes."""
PIXELS_MAX = 100_000_000
SIDE_MIN = 32
"""Smaller pictures are ornaments."""
CLOCK_GRACE_S = 1.0
PR_SET_PDEATHSIG = 1


def scanned_text(page: Any, limits: ReadLimits) -> str:
    """Return the text in a page's pictures; empty where there is none, or none that can be read. Blocking.

    The program is bound by what binds this process: its memory, and the time of a page, after which it is killed.
    """
    return "\n".join(text for picture in _pictures(page) if (text := _recognised(picture, limits).strip()))


def _recognised(picture: bytes, limits: ReadLimits) -> str:
    command = (limits.ocr_program, "stdin", "stdout", "-l", limits.ocr_languages)
    # The operator's program, without a shell.
    done = subprocess.run(
        command,
        input=picture,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # The page's own clock ends it first.
        timeout=limits.page_s + CLOCK_GRACE_S,
        check=False,
        env={"LC_ALL": "C.UTF-8", "OMP_THREAD_LIMIT": "1"},
        preexec_fn=_end_with_parent,  # this process has one thread
    )
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


def _end_with_parent() -> None:
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def _pictures(page: Any) -> Iterator[bytes]:
    """Yield the pictures of a page as files, in the formats that need no library to be written."""
    resources = page.get("/Resources")
    found = resources.get_object().get("/XObject") if resources is not None else None
    for one in list(found.get_object().values())[:PICTURES_MAX] if found is not None else ():
        picture = one.get_object()
        if picture.get("/Subtype") == "/Image" and (encoded := _encoded(picture)) is not None:
            yield encoded


def _encoded(picture: Any) -> bytes | None:
    width, height = int(picture.get("/Width", 0)), int(picture.get("/Height", 0))
    if min(width, height) < SIDE_MIN or width * height > PIXELS_MAX:
        return None
    filters = picture.get("/Filter")
    names = [filters] if isinstance(filters, str) else list(filters or ())
    if names == ["/DCTDecode"]:
        return picture._data  # the bytes of the JPEG; `get_data` would decode them
    if names == ["/CCITTFaxDecode"]:
        # Comes as a TIFF.
        return picture.get_data()
    if names in ([], ["/FlateDecode"], ["/LZWDecode"]):
        return _portable(picture, width, height)
    return None


def _portable(picture: Any, width: int, height: int) -> bytes | None:
    """Return grey or coloured dots as a portable pixmap; None: of another depth or colour space."""
    data, bits = picture.get_data(), int(picture.get("/BitsPerComponent", 8))
    size = width * height
    if bits == 1 and len(data) >= (row := (width + 7) // 8) * height:
        # In a PDF one is white, in a bitmap black.
        return b"P4 %d %d\n" % (width, height) + bytes(byte ^ 0xFF for byte in data[: row * height])
    if bits == 8 and len(data) >= 3 * size and picture.get("/ColorSpace") == "/DeviceRGB":
        return b"P6 %d %d 255\n" % (width, height) + data[: 3 * size]
    return b"P5 %d %d 255\n" % (width, height) + data[:size] if bits == 8 and len(data) == size else None
