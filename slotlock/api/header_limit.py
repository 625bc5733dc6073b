"""HTTP connections on which nobody sends headers without end: uvicorn would keep them all."""

from slotlock.api.refusals import refusal
from slotlock.api.upgrades import PlainProtocol

MAX_HEADER = 64 * 1024
TOO_LARGE = f"A header has at most {MAX_HEADER} bytes."
# A byte of a body may come as a chunk of its own, of six.
BYTES_A_BYTE = 6


class _HeaderTooLargeError(Exception):
    """A header is whole, and larger than it may be."""


class BoundedProtocol(PlainProtocol):
    """A connection that ends when more comes that is no body than a header may have.

    That is a header, the trailers and extensions of a chunked body, or empty lines. What came in
    one piece with another request is let through: it is in memory already.
    """

    _surplus = 0
    # Bytes of the piece that came last, and how many of it may belong to an earlier request.
    _piece = 0
    _earlier = 0
    _between = True
    _too_large = False

    def data_received(self, data: bytes) -> None:
        """Take what comes, and look what it was."""
        self._piece = len(data)
        self._earlier = 0 if self._between else self._piece
        super().data_received(data)
        self._surplus += self._piece
        if self._surplus > MAX_HEADER and not self.transport.is_closing():
            self._refuse()

    def _refuse(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(refusal(431, TOO_LARGE))
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Refuse what the parser stopped at."""
        if self._too_large:
            self._refuse()
        else:
            super().send_400_response(msg)

    def on_message_begin(self) -> None:
        """A request begins in the piece that came last."""
        super().on_message_begin()
        self._surplus, self._earlier, self._between = -self._earlier, self._piece, False

    def on_headers_complete(self) -> None:
        """A header is whole: nothing is begun that cannot be answered."""
        fields = sum(len(name) + len(value) + 4 for name, value in self.headers)
        self._too_large = len(self.url) + fields > MAX_HEADER
        if self._too_large:
            raise _HeaderTooLargeError
        self._surplus = -self._piece
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of a body, which is counted where it is read.

        It excuses no more than what came in its piece: no trailers, however large it was.
        """
        self._surplus = max(self._surplus - BYTES_A_BYTE * len(body), -self._piece)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A request is whole."""
        super().on_message_complete()
        self._between = True
