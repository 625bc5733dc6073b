"""Responses in one piece, and requests that have arrived as a whole.

ASGI passes a body and a response in several events, each of which is awaited. Most requests arrive
in one read, and their responses fit into one write. A server that can do both at once offers it as
an extension of the scope.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from starlette.types import Scope, Send

EXTENSION = "slotlock.http.exchange"

RawHeaders = tuple[tuple[bytes, bytes], ...]


class HttpResponse(NamedTuple):
    """A complete response.

    The server adds `content-length`, and the headers that all responses have.
    """

    status: int
    headers: RawHeaders
    body: bytes


class HttpExchange:
    """The body of a request that has arrived as a whole, and the function that responds to it.

    `respond` bypasses the `send` of middleware, so that it must not have headers of its own.
    """

    __slots__ = ("body", "respond")

    def __init__(self, body: bytes, respond: Callable[[HttpResponse], Awaitable[None]]) -> None:
        self.body = body
        self.respond = respond


def find_exchange(scope: Scope) -> HttpExchange | None:
    """Return the exchange of a scope.

    None if the server does not offer it, or if the body of the request is still arriving.
    """
    extensions = scope.get("extensions")
    exchange = extensions.get(EXTENSION) if extensions else None
    return exchange if isinstance(exchange, HttpExchange) else None


async def send_response(response: HttpResponse, scope: Scope, send: Send) -> None:
    """Send a response, at once if the server can."""
    exchange = find_exchange(scope)
    if exchange is not None:
        await exchange.respond(response)
        return
    headers = [*response.headers, (b"content-length", b"%d" % len(response.body))]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})


def without_exchange(scope: Scope) -> Scope:
    """Return a copy of the scope for middleware that has to see each part of a response."""
    extensions = scope.get("extensions") or {}
    others = {name: value for name, value in extensions.items() if name != EXTENSION}
    return {**scope, "extensions": others}
