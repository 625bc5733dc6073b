"""HTTP requests and responses in one piece."""

from collections.abc import Mapping
from typing import NamedTuple

from starlette.types import Send

RawHeaders = tuple[tuple[bytes, bytes], ...]


class HttpPost(NamedTuple):
    """A POST whose header and body have arrived as a whole."""

    headers: Mapping[str, str]
    # The type of the response that the client prefers; None if it accepts none.
    media_type: str | None
    body: bytes
    # None if the connection has no address.
    client_host: str | None
    request_id: str = ""


class HttpResponse(NamedTuple):
    """A complete response.

    The server adds `content-length`, and the headers that all responses have.
    """

    status: int
    headers: RawHeaders
    body: bytes


async def send_response(response: HttpResponse, send: Send) -> None:
    """Send a response over ASGI."""
    headers = [*response.headers, (b"content-length", b"%d" % len(response.body))]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})
