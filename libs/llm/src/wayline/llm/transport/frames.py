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
        self.rest = b""
        """What has not ended yet."""
        self._end = end
        self._bytes = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the frames that this chunk completes. Raises ModelError above FRAME_MAX_BYTES or ANSWER_MAX_BYTES."""
        self._bytes += len(chunk)
        data = self.rest + chunk if self.rest else chunk
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        *whole, self.rest = data.split(self._end)
        if len(self.rest) > FRAME_MAX_BYTES:
            raise too_much(FRAME_MAX_BYTES)
        if self._bytes > ANSWER_MAX_BYTES:
            raise too_much(ANSWER_MAX_BYTES)
        return whole


def too_much(most: int) -> ModelError:
    return ModelError("unreadable", f"the provider says more than {most} bytes at once", retryable=False, billable=True)
