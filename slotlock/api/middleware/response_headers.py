"""The headers of every response, including errors: those for security, and the id of the request.

The proxy adds `Strict-Transport-Security`, as only the proxy knows whether there is TLS.
"""

from base64 import b64encode
from collections.abc import Awaitable
from hashlib import sha256

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from slotlock.graphql.transport.http_messages import parse_headers
from slotlock.infrastructure.telemetry.observed_requests import RequestObserver
from slotlock.infrastructure.telemetry.request_ids import HEADER, request_id

# Pages have policies of their own: failures for browsers and, in development, GraphiQL and `/`.
CONTENT_SECURITY_POLICY = (
    b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", CONTENT_SECURITY_POLICY),
    (b"x-frame-options", b"DENY"),
    # Pages of other sites may not embed a response. Allowed origins call the API by CORS, which
    # this header does not affect (Fetch, 3.7).
    (b"cross-origin-resource-policy", b"same-origin"),
    # Most responses are private; cacheable ones set their own header.
    (b"cache-control", b"no-store"),
)
ID_HEADER = HEADER.encode()
# The second is the response to a rejected handshake.
_RESPONSE_STARTS = {"http.response.start", "websocket.http.response.start"}


def page_policy(style: str) -> str:
    """Return the content security policy of a page that has only this style sheet."""
    style_hash = b64encode(sha256(style.encode()).digest()).decode()
    return f"{CONTENT_SECURITY_POLICY.decode()}; style-src 'sha256-{style_hash}'"


class ResponseHeadersMiddleware:
    """Adds the headers around the whole application, so that its failures have them, too.

    It accepts or creates the id of a request. The server adds the headers to what it sends itself.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve one request or socket. Each open socket saves the frame of a coroutine here."""
        if scope["type"] not in ("http", "websocket"):
            return self._app(scope, receive, send)
        # Several ids are a list, as for direct requests, which is no valid id.
        sent = b", ".join(value for name, value in scope["headers"] if name == ID_HEADER)
        scope["request_id"] = request_id(sent.decode("latin-1"))
        send_with_headers = _SendWithHeaders(scope["request_id"].encode(), send)
        state = scope.get("state", {}).get("app")
        observer = state and state.graphql_server.observer
        if scope["type"] == "websocket" or not observer:  # a socket's operations are observed
            return self._app(scope, receive, send_with_headers)
        return self._serve_observed(scope, receive, send_with_headers, observer)

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


class _SendWithHeaders:
    """Sends messages, and the headers that the first one of a response does not have."""

    __slots__ = ("_request_id", "_send")

    def __init__(self, request_id: bytes, send: Send) -> None:
        self._request_id = request_id
        self._send = send

    def __call__(self, message: Message) -> Awaitable[None]:
        if message["type"] in _RESPONSE_STARTS:
            headers = message.get("headers", ())
            names = {name for name, _ in headers}
            missing = (header for header in SECURITY_HEADERS if header[0] not in names)
            message["headers"] = [*headers, *missing, (ID_HEADER, self._request_id)]
        elif message["type"] == "websocket.accept":
            message["headers"] = [*message.get("headers", ()), (ID_HEADER, self._request_id)]
        return self._send(message)
