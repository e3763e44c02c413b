"""Parse HTTP fast, and hold no more of a request's head than a limit: the parser itself has none."""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_MAX_BYTES = 64 * 1024
"""Of the request line and the headers, and of the trailers behind a body; one read of the socket may go beyond it."""


class BoundedHttp(HttpToolsProtocol):
    """A connection that is closed when a request's head or trailers do not end."""

    _head_bytes = 0
    """Received since the last piece of a body, or since the last request ended."""

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes <= HEAD_MAX_BYTES or self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete:
            self.send_400_response(f"The headers of a request have at most {HEAD_MAX_BYTES} bytes.")
        else:
            # An answer is being written: another one in the middle of it would be read as a part of it.
            self.transport.close()

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._head_bytes = 0
        super().on_message_complete()
