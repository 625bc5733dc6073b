"""Reading HTTP requests, and the error that rejects one."""

from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.requests import Request

from slotlock.graphql.core.errors import ErrorCode

_DEFAULT_CODES: Mapping[int, str] = {
    401: ErrorCode.UNAUTHENTICATED,
    403: ErrorCode.FORBIDDEN,
    404: "NOT_FOUND",
    413: ErrorCode.LIMIT_EXCEEDED,
    503: ErrorCode.INTERNAL,
}


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


async def read_body(
    request: Request, media_type: str, max_bytes: int, *, reject_by_length: bool = False
) -> bytes:
    """Return the body of a request.

    With `reject_by_length` a large Content-Length is rejected before the body arrives. For files
    it must stay off: a client that is still sending would see a broken connection, no response.

    Raises:
        HttpError: 415 if the body is of another type, not in UTF-8 or compressed; 413 if it is
            larger than `max_bytes`.
    """
    if not _declares(request.headers, media_type):
        text = f"Send {media_type} in UTF-8, without compression."
        raise HttpError(415, text, {"Accept": media_type})
    if reject_by_length and int(request.headers.get("content-length", 0)) > max_bytes:
        raise _too_large(max_bytes)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            raise _too_large(max_bytes)
    return bytes(body)


def _declares(headers: Headers, media_type: str) -> bool:
    """Return whether the headers declare this media type in UTF-8 without compression.

    For JSON this also protects against other sites. Before a page of another origin may send such
    a body, its browser sends a preflight request (Fetch standard, CORS).
    """
    content_type, *parameters = headers.get("content-type", "").lower().split(";")
    pairs = (parameter.partition("=") for parameter in parameters)
    values = {name.strip(): value.strip(' "') for name, _, value in pairs}
    return (
        content_type.strip() == media_type
        and values.get("charset", "utf-8") == "utf-8"
        and headers.get("content-encoding", "identity").lower() == "identity"
    )


def _too_large(max_bytes: int) -> HttpError:
    text = f"The body of this request may have at most {max_bytes} bytes."
    return HttpError(413, text, {"Connection": "close"})
