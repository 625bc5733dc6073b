"""HTTP connections on which nobody sends headers without end: uvicorn would keep them all."""

from slotlock.api.server.raw_response import raw_response
from slotlock.api.server.upgrades import NoUpgradeProtocol

MAX_HEADER_BYTES = 64 * 1024
TOO_LARGE_MESSAGE = f"A header has at most {MAX_HEADER_BYTES} bytes."
# A byte of a body may come as a chunk of its own, of six.
MAX_CHUNK_BYTES_PER_BODY_BYTE = 6


class _HeaderTooLargeError(Exception):
    """A header is whole, and larger than it may be."""


class HeaderLimitProtocol(NoUpgradeProtocol):
    """A connection that ends when more comes that is no body than a header may have.

    That is a header, the trailers and extensions of a chunked body, or empty lines. What came in
    one piece with another request is let through: it is in memory already.
    """

    _non_body_bytes = 0
    # Bytes of the piece that came last, and how many of it may belong to an earlier request.
    _last_read_bytes = 0
    _previous_request_bytes = 0
    _is_between_requests = True
    _is_header_too_large = False

    def data_received(self, data: bytes) -> None:
        """Take what comes, and look what it was."""
        self._last_read_bytes = len(data)
        self._previous_request_bytes = 0 if self._is_between_requests else self._last_read_bytes
        super().data_received(data)
        self._non_body_bytes += self._last_read_bytes
        if self._non_body_bytes > MAX_HEADER_BYTES and not self.transport.is_closing():
            self._reject_large_header()

    def _reject_large_header(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(raw_response(431, TOO_LARGE_MESSAGE))
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Refuse what the parser stopped at."""
        if self._is_header_too_large:
            self._reject_large_header()
        else:
            super().send_400_response(msg)

    def on_message_begin(self) -> None:
        """A request begins in the piece that came last."""
        super().on_message_begin()
        self._non_body_bytes, self._previous_request_bytes, self._is_between_requests = (
            -self._previous_request_bytes,
            self._last_read_bytes,
            False,
        )

    def on_headers_complete(self) -> None:
        """A header is whole: nothing is begun that cannot be answered."""
        fields = sum(len(name) + len(value) + 4 for name, value in self.headers)
        self._is_header_too_large = len(self.url) + fields > MAX_HEADER_BYTES
        if self._is_header_too_large:
            raise _HeaderTooLargeError
        self._non_body_bytes = -self._last_read_bytes
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of a body, which is counted where it is read.

        It excuses no more than what came in its piece: no trailers, however large it was.
        """
        self._non_body_bytes = max(
            self._non_body_bytes - MAX_CHUNK_BYTES_PER_BODY_BYTE * len(body), -self._last_read_bytes
        )
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A request is whole."""
        super().on_message_complete()
        self._is_between_requests = True
