"""POSTs to /graphql that the server reads without its parser and serves without ASGI.

The parser calls a Python function for each field of a header. ASGI describes a request in a
dictionary, and passes its body and its response in several awaited events. A usual POST that
arrives in one read needs none of that. All others take the long way, which alone rejects requests.
"""

import re
from collections.abc import Callable, Coroutine, Mapping
from functools import lru_cache
from typing import Any, cast

from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from slotlock.api.middleware.load_shedding import ProcessLimit
from slotlock.api.middleware.response_headers import SECURITY_HEADERS
from slotlock.api.server.request_headers import HOST
from slotlock.graphql.transport.http import HttpEndpoint
from slotlock.graphql.transport.http_messages import HttpRequest, HttpResponse, RawHeaders
from slotlock.infrastructure.telemetry.observed_requests import RequestObserver

REQUEST_LINE = b"POST /graphql HTTP/1.1\r\n"
HEADER_END = b"\r\n\r\n"
# The parser reads longer headers. Browsers send about 1 KB, with a token.
MAX_HEADER_BYTES = 8 * 1024
# The fields of a header, each in its usual form. This is stricter than the parser.
_FIELDS = re.compile(
    rb"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]++: ?+"
    rb"(?:[!-~\x80-\xff][\t -~\x80-\xff]*+(?<![\t ]))?+\r\n)++"
)
_FIELD = re.compile(r"([^:]+): ?(.*)\r\n")
# Fields by which a request is more than a header and a body of a declared length.
_UNUSUAL_FIELDS = frozenset({"expect", "proxy-connection", "transfer-encoding", "upgrade"})

Respond = Callable[[HttpRequest], Coroutine[Any, Any, HttpResponse]]


class DirectPosts:
    """The endpoint of /graphql and the limit of the process, for POSTs that bypass middleware."""

    def __init__(
        self,
        endpoint: HttpEndpoint,
        limit: ProcessLimit,
        observer: RequestObserver | None = None,
        *,
        has_cors: bool,
    ) -> None:
        # No response is an event stream, as the protocol leaves them to ASGI.
        self._respond = cast("Respond", endpoint.respond)
        self._observer = observer
        self.respond = self._respond if observer is None else self._respond_observed
        self.limit = limit
        # Whether middleware adds headers to responses for pages of other origins.
        self.has_cors = has_cors

    async def _respond_observed(self, post: HttpRequest) -> HttpResponse:
        if self._observer is None:
            raise RuntimeError("only an observer makes requests observed")
        with self._observer.observe("POST", "/graphql", post.headers, post.request_id) as observed:
            response = await self._respond(post)
            observed.status = response.status
            return response


def find_post(data: bytes) -> tuple[Mapping[str, str], bytes] | None:
    """Return the fields and the body of a read that is exactly one usual POST to /graphql.

    None if the parser has to read it. Nothing may depend on who reads it: it must end where its
    only length says, and no other field may decide where it ends.
    """
    if not data.startswith(REQUEST_LINE):
        return None
    fields_end = data.find(HEADER_END, 0, MAX_HEADER_BYTES) + 2
    if _FIELDS.fullmatch(data, len(REQUEST_LINE), fields_end) is None:
        return None
    fields = _FIELD.findall(data[len(REQUEST_LINE) : fields_end].decode("latin-1"))
    names, values = zip(*fields, strict=True)
    headers = dict(zip(map(str.lower, names), values, strict=True))
    body = data[fields_end + 2 :]
    if (
        headers.get("content-length") != str(len(body))
        or len(headers) < len(fields)
        or not _UNUSUAL_FIELDS.isdisjoint(headers)
        or headers.get("connection", "keep-alive") != "keep-alive"
        or HOST.fullmatch(headers.get("host", ",").encode("latin-1")) is None
    ):
        return None
    return headers, body


@lru_cache(maxsize=256)
def response_head(status: int, headers: RawHeaders) -> bytes:
    """Return the status line, the headers of a response and the security headers."""
    shown = [header for header in headers if header != CLOSE_HEADER]
    names = {name for name, _ in headers}
    missing = (header for header in SECURITY_HEADERS if header[0] not in names)
    return STATUS_LINE[status] + b"".join(b"%s: %s\r\n" % each for each in (*shown, *missing))
