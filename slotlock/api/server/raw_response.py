"""Responses that the protocols write themselves, before the application is called."""

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from slotlock.api.middleware.security_headers import SECURITY_HEADERS
from slotlock.infrastructure.telemetry.request_ids import HEADER, request_id


def raw_response(status: int, text: str = "") -> bytes:
    """Return the bytes of a response with the security headers; the connection closes after it."""
    headers = [
        *SECURITY_HEADERS,
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(text.encode())),
        (b"connection", b"close"),
        (HEADER.encode(), request_id(None).encode()),
    ]
    lines = b"".join(b"%s: %s\r\n" % header for header in headers)
    return STATUS_LINE[status] + lines + b"\r\n" + text.encode()
