"""The WebSocket endpoint: checks the origin and the number of streams of an address."""

import re

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from slotlock.graphql.transport.client_info import client_address
from slotlock.graphql.transport.graphql_server import GraphQLServer
from slotlock.graphql.transport.http_messages import HttpError
from slotlock.graphql.transport.websocket import WebSocketSession

RETRY_AFTER_S = 10
# Of the schemes of pages, and of the sockets that apps name as their origin.
DEFAULT_PORTS = {"http": ":80", "ws": ":80", "https": ":443", "wss": ":443"}


class WebSocketEndpoint:
    """The ASGI application for WebSockets at /graphql."""

    def __init__(self, server: GraphQLServer, allowed_origins: str) -> None:
        """Serve programs, pages of this server, and pages whose origin matches the pattern."""
        self._server = server
        self._allowed_origins = re.compile(allowed_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one socket until it closes."""
        websocket = WebSocket(scope, receive, send)
        if not self._allows_origin(websocket.headers):
            text = "Pages of this origin may not open sockets (SLOTLOCK_ALLOWED_ORIGINS)."
            await websocket.send_denial_response(_rejection(HttpError(403, text)))
            return
        with self._server.streams_per_address.acquire(client_address(scope)) as has_room:
            if has_room:
                await WebSocketSession(websocket, self._server).serve()
                return
        text = "Too many sockets are open from this address."
        error = HttpError(429, text, {"Retry-After": str(RETRY_AFTER_S)})
        await websocket.send_denial_response(_rejection(error))

    def _allows_origin(self, headers: Headers) -> bool:
        """Return whether a page of this origin may open a socket; programs send no origin."""
        origin, host = headers.get("origin"), headers.get("host", "")
        if origin is None or self._allowed_origins.fullmatch(origin):
            return True
        # urlsplit would raise for malformed origins.
        scheme, _, address = origin.lower().partition("://")
        address = address.removesuffix(DEFAULT_PORTS.get(scheme, ""))
        # A proxy that ends TLS may send the port at which it listens itself, as nginx does with
        # `Host $host:$server_port`.
        host = host.lower().removesuffix(":443").removesuffix(":80")
        return address != "" and address == host


def _rejection(error: HttpError) -> JSONResponse:
    return JSONResponse(error.body, error.status, error.headers)
