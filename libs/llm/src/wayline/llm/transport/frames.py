"""A streamed answer cut where its pieces end; no provider can fill the memory with one that does not."""

from __future__ import annotations

from wayline.llm.model import ModelError

LINE_END = b"\n"
EVENT_END = b"\n\n"
FRAME_MAX_BYTES = 16 * 1024 * 1024
"""More than any provider says at once."""
ANSWER_MAX_BYTES = 128 * 1024 * 1024
"""More than any answer takes with all that is said around it: some providers say a kilobyte a token."""
BLANK_MAX_BYTES = 64 * 1024
"""White space before an answer, by which some servers keep a connection alive; what says no more is a stream."""
ERROR_MAX_BYTES = 64 * 1024
"""More than anybody reads of a body that says what went wrong."""


class Frames:
    """What stands between two ends, once it is whole; lines may end as they do in HTTP."""

    def __init__(self, end: bytes) -> None:
        self._end = end
        self._begun = bytearray()
        """What has not ended yet; it holds no end."""
        self._return = b""
        """A carriage return that came last: a line end may follow."""
        self._bytes = 0

    @property
    def rest(self) -> bytes:
        """Return what has not ended yet."""
        return bytes(self._begun) + self._return

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the frames that this chunk completes. Raises ModelError above FRAME_MAX_BYTES or ANSWER_MAX_BYTES."""
        self._bytes += len(chunk)
        whole = self._split(self._with_line_ends(chunk))
        if len(self._begun) > FRAME_MAX_BYTES:
            raise too_much(FRAME_MAX_BYTES)
        if self._bytes > ANSWER_MAX_BYTES:
            raise too_much(ANSWER_MAX_BYTES)
        return whole

    def _with_line_ends(self, chunk: bytes) -> bytes:
        if self._return:
            chunk, self._return = self._return + chunk, b""
        if b"\r" not in chunk:
            return chunk
        if chunk.endswith(b"\r"):
            chunk, self._return = chunk[:-1], b"\r"
        # A carriage return alone ends a line too; within JSON it is white space.
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _split(self, data: bytes) -> list[bytes]:
        if not self._begun:
            *whole, rest = data.split(self._end)
            self._begun += rest
            return whole
        # Only where an end may be new is looked for one: a long frame may come in very many small pieces.
        seen = len(self._begun) - len(self._end) + 1
        self._begun += data
        if self._begun.find(self._end, max(0, seen)) < 0:
            return []
        *whole, rest = bytes(self._begun).split(self._end)
        self._begun = bytearray(rest)
        return whole


def too_much(most: int) -> ModelError:
    return ModelError("unreadable", f"the provider says more than {most} bytes at once", retryable=False, billable=True)
