"""The id of each request over ASGI, in its scope and in its response."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from slotlock.graphql.transport.http_requests import parse_headers
from slotlock.infrastructure.telemetry.request_ids import HEADER, request_id

RAW_HEADER = HEADER.encode()
_RESPONSE_STARTS = {"http.response.start", "websocket.http.response.start", "websocket.accept"}


class RequestIdMiddleware:
    """Accepts or creates the id of a request, and returns it with every response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or socket."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        sent = next((value for name, value in scope["headers"] if name == RAW_HEADER), None)
        scope["request_id"] = request_id(None if sent is None else sent.decode("latin-1"))

        async def send_with_id(message: Message) -> None:
            if message["type"] in _RESPONSE_STARTS:
                header = (RAW_HEADER, scope["request_id"].encode())
                message["headers"] = [*message.get("headers", ()), header]
            await send(message)

        state = scope.get("state", {}).get("app")
        observer = state and state.graphql_server.observer
        if scope["type"] == "websocket" or not observer:  # a socket's operations are observed
            await self._app(scope, receive, send_with_id)
            return
        with observer.observe(
            scope["method"], scope["path"], parse_headers(scope["headers"]), scope["request_id"]
        ) as observed:

            async def send_and_observe(message: Message) -> None:
                if message["type"] == "http.response.start":
                    observed.status = message["status"]
                await send_with_id(message)

            await self._app(scope, receive, send_and_observe)
