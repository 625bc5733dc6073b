"""HTTP connections that reject large and malformed headers.

uvicorn would buffer an endless header. Its parser rejects wrong lengths, sizes of chunks, folded
lines and control characters, but not all that HTTP forbids. A proxy may read that in another way.
"""

import re
from collections.abc import Sequence

from slotlock.api.server.direct_requests import DirectProtocol
from slotlock.api.server.raw_response import raw_response

MAX_HEADER_BYTES = 64 * 1024
TOO_LARGE_MESSAGE = f"A header may have at most {MAX_HEADER_BYTES} bytes."
# A client may send each byte of a body as a chunk of its own, which takes six bytes.
MAX_CHUNK_BYTES_PER_BODY_BYTE = 6
# Fields with one value. Of several, a proxy may read another one than this server.
SINGLE_FIELDS = (b"host", b"authorization", b"content-type", b"transfer-encoding", b"origin")
# RFC 3986, 3.2.2 and 3.2.3, without the comma: a proxy may have joined several values with it.
_HOST = re.compile(
    rb"(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9\-._~!$&'()*+;=]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?[ \t]*"
)


class _MalformedHeaderError(Exception):
    """A header violates HTTP; the text says how."""


class _HeaderTooLargeError(Exception):
    """A complete header is larger than MAX_HEADER_BYTES."""


class HeaderLimitProtocol(DirectProtocol):
    """Closes a connection after more than MAX_HEADER_BYTES that belong to no body.

    Such bytes are headers, trailers and extensions of chunked bodies, and empty lines. Bytes that
    arrived in one read with another request are not counted, as they are in memory already.
    """

    _non_body_bytes = 0
    # The size of the latest read, and how much of it may belong to an earlier request.
    _last_read_bytes = 0
    _previous_request_bytes = 0
    _is_between_requests = True
    _is_header_too_large = False
    # What is wrong with the header at which the parser stopped, if it accepted the header.
    _problem = ""

    def data_received(self, data: bytes) -> None:
        """Parse a read, then check how many bytes belonged to no body."""
        if self._rejection:
            return
        self._last_read_bytes = len(data)
        self._previous_request_bytes = 0 if self._is_between_requests else self._last_read_bytes
        super().data_received(data)
        self._non_body_bytes += self._last_read_bytes
        if self._non_body_bytes > MAX_HEADER_BYTES and not self.transport.is_closing():
            self._reject(raw_response(431, TOO_LARGE_MESSAGE))

    def send_400_response(self, msg: str) -> None:
        """Reject the request at which the parser stopped."""
        if self._is_header_too_large:
            self._reject(raw_response(431, TOO_LARGE_MESSAGE))
        else:
            super().send_400_response(self._problem or msg)

    def on_message_begin(self) -> None:
        """Count from the start of a request, which is in the latest read."""
        super().on_message_begin()
        self._non_body_bytes = -self._previous_request_bytes
        self._previous_request_bytes = self._last_read_bytes
        self._is_between_requests = False

    def on_headers_complete(self) -> None:
        """Reject a malformed or too large header before the application is called."""
        field_bytes = sum(len(name) + len(value) + 4 for name, value in self.headers)
        self._is_header_too_large = len(self.url) + field_bytes > MAX_HEADER_BYTES
        if self._is_header_too_large:
            raise _HeaderTooLargeError
        try:
            _validate_header(self.headers, self.url, self.parser.get_http_version())
        except _MalformedHeaderError as error:
            self._problem = str(error)
            raise
        # The parser appends trailers, which are no part of the header (RFC 9110, 6.5.1).
        self.headers = self.headers.copy()
        self._non_body_bytes = -self._last_read_bytes
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Subtract the bytes of a body, but at most those of the latest read.

        A large body must not make room for large trailers.
        """
        excused_bytes = MAX_CHUNK_BYTES_PER_BODY_BYTE * len(body)
        self._non_body_bytes = max(self._non_body_bytes - excused_bytes, -self._last_read_bytes)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that the next byte starts another request."""
        super().on_message_complete()
        self._is_between_requests = True


def _validate_header(headers: Sequence[tuple[bytes, bytes]], target: bytes, version: str) -> None:
    """Check the header of a request (RFC 9110, 5.3; RFC 9112, 3.2 and 6.1).

    Raises:
        _MalformedHeaderError: the request must be rejected.
    """
    fields = dict(headers)
    if len(fields) < len(headers):
        _validate_single_fields(headers)
    if version not in ("1.1", "1.0"):
        raise _MalformedHeaderError("The version is HTTP/1.1 or HTTP/1.0.")
    host = fields.get(b"host")
    if host is None and version == "1.1":
        raise _MalformedHeaderError("A request of HTTP/1.1 needs the field host.")
    if host is not None and _HOST.fullmatch(host) is None:
        raise _MalformedHeaderError("The field host is a name or an address, and perhaps a port.")
    coding = fields.get(b"transfer-encoding")
    if coding is not None and (version == "1.0" or coding.strip(b", \t").lower() != b"chunked"):
        raise _MalformedHeaderError("The only transfer coding is chunked, in HTTP/1.1.")
    if b"#" in target:
        raise _MalformedHeaderError("The target of a request has no fragment.")


def _validate_single_fields(headers: Sequence[tuple[bytes, bytes]]) -> None:
    names = [name for name, _ in headers]
    for name in SINGLE_FIELDS:
        if names.count(name) > 1:
            raise _MalformedHeaderError(f"The field {name.decode()} occurs more than once.")
