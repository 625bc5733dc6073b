"""Security headers of every response, including errors.

The proxy adds `Strict-Transport-Security`, as only the proxy knows whether there is TLS.
"""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

# No response is a page, except two in development, GraphiQL and `/`, with policies of their own.
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
# The second is the response to a rejected handshake.
_RESPONSE_STARTS = {"http.response.start", "websocket.http.response.start"}


class SecurityHeadersMiddleware:
    """Adds the headers around the whole application, so that its failures have them, too.

    `server.raw_response` and `server.websockets` add them to responses before the application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; headers that the response has already stay as they are."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] in _RESPONSE_STARTS:
                headers = message.get("headers", ())
                names = {name for name, _ in headers}
                missing = (header for header in SECURITY_HEADERS if header[0] not in names)
                message["headers"] = [*headers, *missing]
            await send(message)

        await self._app(scope, receive, send_with_headers)
