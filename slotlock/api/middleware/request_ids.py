"""The id of each request over ASGI, in its scope and in its response."""

from collections.abc import Awaitable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from slotlock.graphql.transport.http_requests import parse_headers
from slotlock.infrastructure.telemetry.observed_requests import RequestObserver
from slotlock.infrastructure.telemetry.request_ids import HEADER, request_id

RAW_HEADER = HEADER.encode()
_RESPONSE_STARTS = {"http.response.start", "websocket.http.response.start", "websocket.accept"}


class RequestIdMiddleware:
    """Accepts or creates the id of a request, and returns it with every response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve one request or socket. Each open socket saves the frame of a coroutine here."""
        if scope["type"] not in ("http", "websocket"):
            return self._app(scope, receive, send)
        # Several ids are a list, as for direct requests, which is no valid id.
        sent = b", ".join(value for name, value in scope["headers"] if name == RAW_HEADER)
        scope["request_id"] = request_id(sent.decode("latin-1"))
        send_with_id = _SendWithId(scope["request_id"].encode(), send)
        state = scope.get("state", {}).get("app")
        observer = state and state.graphql_server.observer
        if scope["type"] == "websocket" or not observer:  # a socket's operations are observed
            return self._app(scope, receive, send_with_id)
        return self._serve_observed(scope, receive, send_with_id, observer)

    async def _serve_observed(
        self, scope: Scope, receive: Receive, send: Send, observer: RequestObserver
    ) -> None:
        with observer.observe(
            scope["method"], scope["path"], parse_headers(scope["headers"]), scope["request_id"]
        ) as observed:

            async def send_and_observe(message: Message) -> None:
                if message["type"] == "http.response.start":
                    observed.status = message["status"]
                await send(message)

            await self._app(scope, receive, send_and_observe)


class _SendWithId:
    """Sends messages, and the id with the first one of a response."""

    __slots__ = ("_request_id", "_send")

    def __init__(self, request_id: bytes, send: Send) -> None:
        self._request_id = request_id
        self._send = send

    def __call__(self, message: Message) -> Awaitable[None]:
        if message["type"] in _RESPONSE_STARTS:
            message["headers"] = [*message.get("headers", ()), (RAW_HEADER, self._request_id)]
        return self._send(message)
