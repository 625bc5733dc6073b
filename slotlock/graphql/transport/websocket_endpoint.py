"""Who may open a WebSocket: pages of one's own and named origins, as long as there is room."""

from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from slotlock.graphql.transport.client_info import client_address
from slotlock.graphql.transport.server import GraphQLServer
from slotlock.graphql.transport.websocket import WebSocketSession

RETRY_AFTER_S = 10


class WebSocketEndpoint:
    """The ASGI application at /graphql for WebSockets."""

    def __init__(self, server: GraphQLServer) -> None:
        self.server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one socket until it closes."""
        websocket = WebSocket(scope, receive, send)
        headers = websocket.headers
        if not self.server.allows_origin(headers.get("origin"), headers.get("host")):
            text = "Pages of this origin may open no socket (SLOTLOCK_ALLOWED_ORIGINS)."
            await websocket.send_denial_response(PlainTextResponse(text, 403))
            return
        with self.server.streams_per_address.acquire(client_address(scope)) as room:
            if room:
                await WebSocketSession(websocket, self.server).serve()
            else:
                text = "Too many sockets are open from this address."
                refusal = PlainTextResponse(text, 429, {"Retry-After": str(RETRY_AFTER_S)})
                await websocket.send_denial_response(refusal)
