"""Who may open a WebSocket: pages of one's own and named origins, as long as there is room."""

from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from slotlock.graphql.addresses import address_of
from slotlock.graphql.conversation import Conversation
from slotlock.graphql.websocket import Socket

RETRY_AFTER_S = 10


class SocketEndpoint:
    """The ASGI application at /graphql for WebSockets."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one socket until it closes."""
        websocket = WebSocket(scope, receive, send)
        headers = websocket.headers
        if not self.conversation.welcomes(headers.get("origin"), headers.get("host")):
            text = "Pages of this origin may open no socket (SLOTLOCK_ALLOWED_ORIGINS)."
            await websocket.send_denial_response(PlainTextResponse(text, 403))
            return
        with self.conversation.streams_per_address.room_for(address_of(scope)) as room:
            if room:
                await Socket(websocket, self.conversation).serve()
            else:
                text = "Too many sockets are open from this address."
                refusal = PlainTextResponse(text, 429, {"Retry-After": str(RETRY_AFTER_S)})
                await websocket.send_denial_response(refusal)
