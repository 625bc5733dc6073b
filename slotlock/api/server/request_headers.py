"""Headers of requests that are rejected, and the response that rejects them before any application.

The parser (llhttp) rejects wrong lengths, sizes of chunks, folded lines and control characters, but
not all that HTTP forbids. A proxy may read the rest in another way than this server, and pass on as
one request what the server reads as two.
"""

import re
from collections.abc import Sequence
from itertools import chain

import orjson
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from slotlock.api.middleware.response_headers import SECURITY_HEADERS
from slotlock.graphql.transport.http_messages import HttpError
from slotlock.infrastructure.telemetry.request_ids import HEADER, request_id

MAX_HEADER_BYTES = 64 * 1024
TOO_LARGE_MESSAGE = f"A header may have at most {MAX_HEADER_BYTES} bytes."
# Fields with one value. Of several, a proxy may read another one than this server.
SINGLE_FIELDS = (b"host", b"authorization", b"content-type", b"transfer-encoding", b"origin")
# RFC 3986, 3.2.2 and 3.2.3, without the comma: a proxy may have joined several values with it.
HOST = re.compile(
    rb"(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9\-._~!$&'()*+;=]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?[ \t]*"
)


class RejectedRequestError(Exception):
    """A request gets a response with this status and text instead of being processed."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def validate_header(headers: Sequence[tuple[bytes, bytes]], target: bytes, version: str) -> None:
    """Check the size and the fields of a header (RFC 9110, 5.3; RFC 9112, 3.2 and 6.1).

    Raises:
        RejectedRequestError: the request must be rejected.
    """
    if len(target) + sum(map(len, chain(*headers))) + 4 * len(headers) > MAX_HEADER_BYTES:
        raise RejectedRequestError(431, TOO_LARGE_MESSAGE)
    fields = dict(headers)
    if len(fields) < len(headers):
        names = [name for name, _ in headers]
        for name in SINGLE_FIELDS:
            if names.count(name) > 1:
                raise _malformed(f"The field {name.decode()} occurs more than once.")
    if version not in ("1.1", "1.0"):
        raise _malformed("The version is HTTP/1.1 or HTTP/1.0.")
    host = fields.get(b"host")
    if host is None and version == "1.1":
        raise _malformed("A request of HTTP/1.1 needs the field host.")
    if host is not None and HOST.fullmatch(host) is None:
        raise _malformed("The field host is a name or an address, and perhaps a port.")
    coding = fields.get(b"transfer-encoding")
    if coding is not None and (version == "1.0" or coding.strip(b", \t").lower() != b"chunked"):
        raise _malformed("The only transfer coding is chunked, in HTTP/1.1.")
    if b"#" in target:
        raise _malformed("The target of a request has no fragment.")


def _malformed(text: str) -> RejectedRequestError:
    return RejectedRequestError(400, text)


def raw_response(status: int, text: str) -> bytes:
    """Return the bytes of a response with the security headers; the connection closes after it."""
    body = orjson.dumps(HttpError(status, text).body)
    headers = [
        *SECURITY_HEADERS,
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
        (HEADER.encode(), request_id(None).encode()),
    ]
    lines = b"".join(b"%s: %s\r\n" % header for header in headers)
    return STATUS_LINE[status] + lines + b"\r\n" + body
