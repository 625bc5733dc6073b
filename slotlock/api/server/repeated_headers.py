"""Headers that a client repeats: with each request on a connection, but for the length of its body.

The parser calls a dozen functions for a header. Comparing it with the one before costs much less.
"""

from slotlock.graphql.transport.http_messages import HttpPost
from slotlock.infrastructure.telemetry.request_ids import HEADER, request_id

REQUEST_LINE = b"POST /graphql HTTP/1.1\r\n"
HEADER_END = b"\r\n\r\n"
LENGTH_FIELD = b"\r\ncontent-length:"
MAX_LENGTH_DIGITS = 9
# Longer headers are always parsed: each connection stores one.
MAX_HEADER_BYTES = 4 * 1024


class RepeatedHeader:
    """The header of a request that the parser has read and all checks of headers have passed."""

    __slots__ = ("_after_length", "_before_length", "_post")

    def __init__(self, before_length: bytes, after_length: bytes, post: HttpPost) -> None:
        self._before_length = before_length
        self._after_length = after_length
        self._post = post._replace(body=b"")

    def find_post(self, data: bytes) -> HttpPost | None:
        """Return the request if the read is exactly this header and a body of its length."""
        if not data.startswith(self._before_length):
            return None
        length_start = len(self._before_length)
        length_end = data.find(b"\r", length_start, length_start + MAX_LENGTH_DIGITS + 1)
        if length_end < 0 or not data.startswith(self._after_length, length_end):
            return None
        length = data[length_start:length_end]
        body_start = length_end + len(self._after_length)
        # `isdigit` accepts ASCII digits only, and no empty text.
        if not length.isdigit() or len(data) - body_start != int(length):
            return None
        headers = {**self._post.headers, "content-length": length.decode()}
        return HttpPost(
            headers,
            self._post.media_type,
            data[body_start:],
            self._post.client_host,
            request_id(headers.get(HEADER)),
        )


def repeatable_header(data: bytes, post: HttpPost) -> RepeatedHeader | None:
    """Return the header of a request that was read; None if the read is not that request alone.

    The body in the read is the one that the parser found, so the parser ended the header where
    `HEADER_END` is, and it found no chunks.
    """
    if not data.startswith(REQUEST_LINE):
        return None
    body_start = data.find(HEADER_END) + len(HEADER_END)
    fields = data[:body_start].lower()
    if (
        body_start > MAX_HEADER_BYTES
        or data[body_start:] != post.body
        or fields.count(LENGTH_FIELD) != 1
    ):
        return None
    length_start = fields.index(LENGTH_FIELD) + len(LENGTH_FIELD)
    if fields.startswith(b" ", length_start):
        length_start += 1
    length_end = fields.index(b"\r", length_start)
    if not fields[length_start:length_end].isdigit():
        return None
    return RepeatedHeader(data[:length_start], data[length_end:body_start], post)
