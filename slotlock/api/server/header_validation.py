"""Headers that the parser accepts but HTTP forbids. A proxy may read them in another way.

The parser itself rejects wrong lengths, sizes of chunks, folded lines and control characters.
"""

import re
from collections.abc import Sequence

# Fields with one value. Of several, a proxy may read another one than this server.
SINGLE_FIELDS = (b"host", b"authorization", b"content-type", b"transfer-encoding", b"origin")
# RFC 3986, 3.2.2 and 3.2.3, without the comma: a proxy may have joined several values with it.
_HOST = re.compile(
    rb"(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9\-._~!$&'()*+;=]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?[ \t]*"
)


class MalformedHeaderError(Exception):
    """A header violates HTTP; the text says how."""


def validate_header(headers: Sequence[tuple[bytes, bytes]], target: bytes, version: str) -> None:
    """Check the header of a request (RFC 9110, 5.3; RFC 9112, 3.2 and 6.1).

    Raises:
        MalformedHeaderError: the request must be rejected.
    """
    fields = dict(headers)
    if len(fields) < len(headers):
        _validate_single_fields(headers)
    if version not in ("1.1", "1.0"):
        raise MalformedHeaderError("The version is HTTP/1.1 or HTTP/1.0.")
    host = fields.get(b"host")
    if host is None and version == "1.1":
        raise MalformedHeaderError("A request of HTTP/1.1 needs the field host.")
    if host is not None and _HOST.fullmatch(host) is None:
        raise MalformedHeaderError("The field host is a name or an address, and perhaps a port.")
    coding = fields.get(b"transfer-encoding")
    if coding is not None and (version == "1.0" or coding.strip(b", \t").lower() != b"chunked"):
        raise MalformedHeaderError("The only transfer coding is chunked, in HTTP/1.1.")
    if b"#" in target:
        raise MalformedHeaderError("The target of a request has no fragment.")


def _validate_single_fields(headers: Sequence[tuple[bytes, bytes]]) -> None:
    names = [name for name, _ in headers]
    for name in SINGLE_FIELDS:
        if names.count(name) > 1:
            raise MalformedHeaderError(f"The field {name.decode()} occurs more than once.")
