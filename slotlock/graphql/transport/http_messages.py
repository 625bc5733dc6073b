"""HTTP requests and responses in one piece, and the error that rejects a request."""

from collections.abc import Iterable, Mapping
from encodings import normalize_encoding
from encodings.aliases import aliases
from functools import lru_cache

import orjson
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Send

from slotlock.domain.shared.value_object import value_object
from slotlock.graphql.core.errors import OUTCOME_UNKNOWN_MESSAGE, ErrorCode, error_body

RawHeaders = tuple[tuple[bytes, bytes], ...]
# Another process, or the next one, serves the client then.
STOPPING_RETRY_AFTER_S = 2
STOPPING_MESSAGE = "The server stopped before it responded. Please try again."

_DEFAULT_CODES: Mapping[int, str] = {
    401: ErrorCode.UNAUTHENTICATED,
    403: ErrorCode.FORBIDDEN,
    404: "NOT_FOUND",
    413: ErrorCode.LIMIT_EXCEEDED,
    429: ErrorCode.RATE_LIMITED,
    431: ErrorCode.LIMIT_EXCEEDED,
    500: ErrorCode.INTERNAL,
    503: ErrorCode.INTERNAL,
}
# Python's names of UTF-8. `codecs.lookup` would cache each unknown name that a client sends.
_UTF_8_NAMES = {"utf_8", *(alias for alias, name in aliases.items() if name == "utf_8")}


@value_object
class HttpRequest:
    """A GET or POST whose header and body have arrived as a whole."""

    headers: Mapping[str, str]
    # The type of the response that the client prefers; None if it accepts none.
    media_type: str | None
    # The body of a POST, or the parameters of a GET.
    content: bytes
    # None if the connection has no address.
    client_host: str | None
    request_id: str = ""
    is_get: bool = False


@value_object
class HttpResponse:
    """A complete response.

    The server adds `content-length`, and the headers that all responses have.
    """

    status: int
    headers: RawHeaders
    body: bytes


def _stopping_response(code: ErrorCode, message: str) -> HttpResponse:
    error = error_body(code, message)
    error["extensions"]["retryAfterMs"] = STOPPING_RETRY_AFTER_S * 1000
    headers = (
        (b"content-type", b"application/json"),
        (b"retry-after", b"%d" % STOPPING_RETRY_AFTER_S),
    )
    return HttpResponse(503, headers, orjson.dumps({"errors": [error]}))


# To requests that a stop cuts off, because they take too long: those that changed nothing, and
# those whose change may still happen.
STOPPING_RESPONSE = _stopping_response(ErrorCode.INTERNAL, STOPPING_MESSAGE)
STOPPING_CHANGE_RESPONSE = _stopping_response(ErrorCode.OUTCOME_UNKNOWN, OUTCOME_UNKNOWN_MESSAGE)


async def send_response(response: HttpResponse, send: Send) -> None:
    """Send a response over ASGI."""
    headers = [*response.headers, (b"content-length", b"%d" % len(response.body))]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})


class HttpError(Exception):
    """Rejects a request with a status, an error code, a message and headers."""

    def __init__(
        self,
        status: int,
        message: str,
        headers: Mapping[str, str] | None = None,
        *,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}
        self.code = code or _DEFAULT_CODES.get(status, ErrorCode.BAD_USER_INPUT)

    @property
    def body(self) -> dict[str, str]:
        """The JSON of the response, as outside of GraphQL."""
        return {"error": str(self), "code": self.code}


def parse_headers(raw_headers: Iterable[tuple[bytes, bytes]]) -> Mapping[str, str]:
    """Return the headers of a request by their lower-case names.

    Several values of a name are a list (RFC 9110, 5.3): the server rejects others.
    """
    headers: dict[str, str] = {}
    for raw_name, raw_value in raw_headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def check_declared_body(headers: Mapping[str, str], media_type: str, *others: str) -> None:
    """Check the declared type of a body before it is read; `others` are accepted, too.

    Raises:
        HttpError: 415 if the body is of another type, not in UTF-8 or compressed.
    """
    content_type, encoding = headers.get("content-type", ""), headers.get("content-encoding", "")
    if not declares(content_type, encoding, media_type, *others):
        raise undeclared_body(media_type)


def undeclared_body(media_type: str) -> HttpError:
    """Return the error for a body that does not declare this type."""
    text = f"Send {media_type} in UTF-8, without compression."
    return HttpError(415, text, {"Accept": media_type})


def check_body_size(size: int, max_bytes: int) -> None:
    """Check the size of a body, declared or received so far.

    Raises:
        HttpError: 413 if it is larger than `max_bytes`.
    """
    if size > max_bytes:
        raise too_large_body(max_bytes)


def too_large_body(max_bytes: int) -> HttpError:
    """Return the error for a body with more bytes."""
    text = f"The body of this request may have at most {max_bytes} bytes."
    return HttpError(413, text, {"Connection": "close"})


async def receive_body(receive: Receive, max_bytes: int) -> bytes:
    """Return the body of a request.

    Raises:
        HttpError: 413 if the body is larger than `max_bytes`.
        ClientDisconnect: the client has gone.
    """
    chunks: list[bytes] = []
    size, has_more = 0, True
    while has_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        check_body_size(size, max_bytes)
        has_more = message.get("more_body", False)
    return b"".join(chunks)


@lru_cache(maxsize=256)
def declares(content_type: str, encoding: str, *media_types: str) -> bool:
    """Return whether headers declare one of these media types in UTF-8 without compression.

    For JSON this also protects against other sites. Before a page of another origin may send such
    a body, its browser sends a preflight request (Fetch standard, CORS).
    """
    declared_type, *parameters = content_type.lower().split(";")
    pairs = (parameter.partition("=") for parameter in parameters)
    values = {name.strip(): value.strip(" \"'") for name, _, value in pairs}
    return (
        declared_type.strip() in media_types
        and normalize_encoding(values.get("charset") or "utf-8") in _UTF_8_NAMES
        and encoding.lower() in ("", "identity")
    )
